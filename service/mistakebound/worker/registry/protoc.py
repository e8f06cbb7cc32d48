"""Protobuf schemas compiled to descriptors, by protoc itself, which the package grpcio-tools ships: one parser of the
language that is complete, and is maintained by who defines it. It runs as a process of its own, once for each schema.

A registry keeps a file's text, or, from some clients, its descriptor in base64.
"""

import base64
import binascii
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

from mistakebound.core.messages.formats.schema_text import Reference

OWN = "mistakebound-schema.proto"
"""How the schema's own file is called; registries know no name."""
COMPILE_S = 60.0


def compiled(
    text: str, references: Iterable[Reference], folder: Path | None = None
) -> tuple[str | None, str | None]:
    """(a FileDescriptorSet in base64, the file of `text` last; None) or (None, what is wrong).

    `references` are the files it may import, by the names in its imports; `folder` may hold others.
    """
    descriptors: Any = import_module("google.protobuf.descriptor_pb2")
    files = {one.name: one.text for one in references}
    given = descriptors.FileDescriptorSet()
    with tempfile.TemporaryDirectory(prefix="mistakebound-protoc-") as name:
        scratch = Path(name)
        for path, content in {**files, OWN: text}.items():
            if (descriptor := _descriptor(content)) is not None:
                descriptor.name = path
                given.file.append(descriptor)
            elif not _stays_inside(path):
                return None, f"it imports {path!r}"
            else:
                place = scratch / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(content, "utf-8")
        return _run(scratch, given, folder)


def _run(scratch: Path, given: Any, folder: Path | None) -> tuple[str | None, str | None]:
    known, made = scratch / "given.binpb", scratch / "made.binpb"
    with_own = any(one.name == OWN for one in given.file)
    places = [f"-I{scratch}", *([] if folder is None else [f"-I{folder}"]), f"-I{_well_known()}"]
    if given.file:
        _complete(given)
        known.write_bytes(given.SerializeToString())
        places.append(f"--descriptor_set_in={known}")
    options = ["--include_imports", f"--descriptor_set_out={made}", OWN]
    command = [sys.executable, "-m", "grpc_tools.protoc", *places, *options]
    try:
        done = subprocess.run(command, capture_output=True, timeout=COMPILE_S, check=False, cwd=scratch)  # noqa: S603
    except subprocess.TimeoutExpired:
        return None, "protoc did not end"
    if done.returncode != 0 or not made.exists():
        said = done.stderr.decode(errors="replace").replace(str(scratch), "").strip()
        return None, f"{'its descriptor' if with_own else 'protoc'}: {said[:300]}"
    return base64.b64encode(made.read_bytes()).decode(), None


def _descriptor(text: str) -> Any:
    """The descriptor that a text is in base64; None where it is a file's text."""
    descriptors: Any = import_module("google.protobuf.descriptor_pb2")
    messages: Any = import_module("google.protobuf.message")
    try:
        found = descriptors.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, messages.DecodeError):
        return None
    return found if found.name or found.message_type else None


def _complete(given: Any) -> None:
    """Add the well-known files: protoc takes what descriptors import from descriptors alone."""
    there = {one.name for one in given.file}
    wanted = [name for one in given.file for name in one.dependency]
    while wanted:
        name = wanted.pop()
        if name in there or not name.startswith("google/protobuf/"):
            continue
        module = name.removesuffix(".proto").replace("/", ".") + "_pb2"
        file = given.file.add()
        import_module(module).DESCRIPTOR.CopyToProto(file)
        there.add(name)
        wanted += file.dependency


def _stays_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path


def _well_known() -> Path:
    """The folder of `google/protobuf/*.proto`."""
    return Path(str(import_module("grpc_tools").__file__)).parent / "_proto"
