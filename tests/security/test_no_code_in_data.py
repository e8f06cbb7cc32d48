"""Nothing that the service reads can run as code: no pickle, no eval, nowhere."""

import ast

from tests.support.project import ROOT

SERVICE = ROOT / "service"
MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "jsonpickle"}
CALLS = {"eval", "exec", "compile", "__import__", "system", "popen"}
LOADING = {"load", "loads", "fromfile"}
"""Of numpy: its own format may hold pickles."""


def offences(source: str) -> list[str]:
    """What a file does that could run data."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [each.name for each in names if each.name.split(".")[0] in MODULES]
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in MODULES:
                found.append(module)
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                found.append(name)
            case ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id=owner))):
                if (owner in ("np", "numpy") and name in LOADING) or (owner == "os" and name in CALLS):
                    found.append(f"{owner}.{name}")
            case ast.keyword(arg="allow_pickle", value=ast.Constant(value=True)):
                found.append("allow_pickle")
            case ast.keyword(arg="shell", value=ast.Constant(value=True)):
                found.append("shell=True")
    return found


def test_nothing_runs_what_it_reads() -> None:
    """Checkpoints, records and settings are data in JSON, msgpack or TOML, each checked by its definition."""
    found = {str(path): offences(path.read_text()) for path in SERVICE.rglob("*.py")}
    assert {path: each for path, each in found.items() if each} == {}


def test_the_search_finds_what_it_looks_for() -> None:
    """Otherwise it could pass without ever finding anything."""
    source = (
        "import pickle\nfrom joblib import load\neval('1')\nnumpy.load(f)\n"
        "f(allow_pickle=True)\nrun(x, shell=True)\nos.system('x')"
    )
    assert len(offences(source)) == 7
