"""The image itself: built from the Dockerfile, and run as it is meant to be run: read-only, and as its own user."""

import json
import re
import urllib.request
from collections.abc import Iterator

import pytest

from tests.deploy.support.pages import README, blocks
from tests.faults.support.children import until
from tests.image.conftest import TAG, arguments
from tests.image.engine import CONFINED, Engine
from tests.log.support.broker import free_ports

pytestmark = [pytest.mark.image, pytest.mark.long, pytest.mark.timeout(1_800)]

READ_ONLY = (
    "--read-only",
    "--read-only-tmpfs=false",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
)
PATIENCE_S = 90.0


def ran(engine: Engine, *command: str, options: tuple[str, ...] = ()) -> str:
    """What a command of the image prints; it must succeed."""
    done = engine.podman("run", "--rm", "--no-healthcheck", *CONFINED, *READ_ONLY, *options, TAG, *command)
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout


def python(engine: Engine, code: str) -> str:
    """What the image's interpreter prints."""
    return ran(engine, "-c", code, options=("--entrypoint", "python")).strip()


class Worker:
    """A container with `run`, in the background."""

    def __init__(self, engine: Engine, url: str, prefix: str) -> None:
        self._engine = engine
        self.name = prefix.rstrip(".")
        (port,) = free_ports(1)
        self._address = f"127.0.0.1:{port}"
        own = {"LOG__URL": url, "LOG__PREFIX": prefix, "LABELS__MAX_DELAY": "P1D", "WORKER__SLOT": "one"}
        self.variables = tuple(f"--env=MISTAKEBOUND_{name}={value}" for name, value in own.items())
        served = f"--env=MISTAKEBOUND_HTTP__ADDRESS={self._address}"
        ran(engine, "topics", "create", options=self.variables)
        started = engine.podman(
            "run", "--detach", "--name", self.name, *CONFINED, *READ_ONLY, *self.variables, served, TAG
        )
        assert started.returncode == 0, started.stderr

    def learned(self) -> float:
        """How many labels are applied; 0 while nothing is served yet."""
        try:
            with urllib.request.urlopen(f"http://{self._address}/metrics", timeout=5) as answer:
                page = answer.read().decode()
        except OSError:
            return 0
        applied = re.findall(
            r'^mistakebound_labels_total{[^}]*outcome="applied"[^}]*} (\S+)$', page, re.MULTILINE
        )
        return sum(map(float, applied))

    def is_healthy(self) -> bool:
        """By what the image has as its check; the engine's own limit of time is too short for a busy machine."""
        check = json.loads(self.inspected("{{json .Config.Healthcheck.Test}}"))
        assert check[0] == "CMD"
        return self._engine.podman("exec", self.name, *check[1:]).returncode == 0

    def said(self) -> str:
        """Its log."""
        done = self._engine.podman("logs", self.name)
        return done.stdout + done.stderr

    def inspected(self, form: str) -> str:
        return self._engine.podman("inspect", "--format", form, self.name).stdout.strip()


@pytest.fixture(params=["kafka", "kafka+confluent"])
def worker(
    engine: Engine, kafka_bootstrap: str, prefix: str, request: pytest.FixtureRequest
) -> Iterator[Worker]:
    """On the real broker, with each client."""
    started = Worker(engine, f"{request.param}://{kafka_bootstrap}", prefix)
    yield started
    engine.podman("rm", "--force", "--volumes", started.name)


def test_a_worker_learns_is_healthy_and_stops_when_it_is_told_to(
    engine: Engine, worker: Worker, kafka_bootstrap: str, prefix: str
) -> None:
    """Its health by what the image has for HEALTHCHECK; SIGTERM as `podman stop` sends it; a checkpoint in the volume."""
    variables = worker.variables
    sender = f"{worker.name}-producer"
    produced = (
        "demo",
        "--only-producer",
        "--rate",
        "200",
        "--late",
        "1",
        "--log",
        f"kafka://{kafka_bootstrap}",
    )
    own = ("--yes", "--set", f"log.prefix={prefix}")
    options = ("run", "--detach", "--no-healthcheck", "--name", sender, *CONFINED, *READ_ONLY)
    started = engine.podman(*options, TAG, *produced, *own)
    assert started.returncode == 0, started.stderr
    try:
        until(lambda: worker.learned() >= 100, PATIENCE_S, "labels are applied")
        until(worker.is_healthy, PATIENCE_S, "it is healthy")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{worker.said()[-3_000:]}") from None
    finally:
        engine.podman("rm", "--force", sender)

    stopped = engine.podman("stop", "--time", "20", worker.name)

    assert stopped.returncode == 0, stopped.stderr
    assert worker.inspected("{{.State.ExitCode}}") == "0", worker.said()[-3_000:]
    last = json.loads(worker.said().strip().splitlines()[-1])
    assert (last["event"], last["reason"]) == ("stopped", "SIGTERM")
    status = json.loads(ran(engine, "status", "--json", options=variables))
    assert status["labels"]["applied"] >= 100
    volume = worker.inspected("{{range .Mounts}}{{.Name}}{{end}}")
    kept = ran(
        engine, "checkpoint", "list", options=(*variables, "--volume", f"{volume}:/var/lib/mistakebound")
    )
    assert ".checkpoint" in kept


def test_the_demo_runs_in_the_image(engine: Engine) -> None:
    """To the digest that the README shows, on a log in the one folder that can be written."""
    printed = next(block for block in blocks(README, "text") if "always majority" in block)

    found = ran(engine, "demo", "--once")

    assert found == printed[printed.index("learner ") :]


def test_it_runs_as_a_user_who_is_not_root_and_owns_only_the_volume(engine: Engine) -> None:
    """By number, and nothing below the root can be written by it."""
    code = (
        "import os; print(os.getuid(), os.getgid(), *sorted(place for place, _, _ in os.walk('/') "
        "if os.access(place, os.W_OK) and not place.startswith(('/proc', '/dev', '/sys'))))"
    )
    found = engine.podman(
        "run", "--rm", "--no-healthcheck", *CONFINED, "--entrypoint", "python", TAG, "-c", code
    )

    assert found.returncode == 0, found.stderr
    assert found.stdout.split()[:2] == ["10001", "10001"]
    writable = set(found.stdout.split()[2:])
    assert "/var/lib/mistakebound" in writable
    assert {place for place in writable if not place.startswith(("/tmp", "/var/tmp", "/run"))} == {
        "/var/lib/mistakebound"
    }


def test_nothing_in_it_installs_packages(engine: Engine) -> None:
    """Neither the environment nor the interpreter below it has pip, or can make it."""
    code = (
        "import subprocess, sys; from importlib.util import find_spec; "
        "names = ('pip', 'setuptools', 'wheel', 'ensurepip'); "
        "print([name for name in names if find_spec(name)]); "
        "base = sys.base_prefix + '/bin/python3'; "
        "asked = f'import importlib.util as u; print([n for n in {names} if u.find_spec(n)])'; "
        "print(subprocess.run([base, '-c', asked], capture_output=True, text=True, check=True).stdout)"
    )

    assert re.findall(r"\[.*?\]", python(engine, code)) == ["[]", "[]"]


def test_what_its_extras_bring_can_be_imported(engine: Engine) -> None:
    """Nothing that one of them needs was taken away again."""
    brought = {
        "confluent": ("confluent_kafka",),
        "registry": (
            "confluent_kafka.schema_registry",
            "fastavro",
            "google.protobuf",
            "grpc_tools.protoc",
            "jsonschema",
        ),
        "msk": ("aws_msk_iam_sasl_signer",),
        "kerberos": ("gssapi",),
        "otel": ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http"),
    }
    modules = [module for extra in arguments()["EXTRAS"].split(",") if extra for module in brought[extra]]
    code = f"from importlib import import_module; [import_module(each) for each in {modules}]; print('all')"

    assert python(engine, code) == "all"


def test_its_environment_holds_no_tests(engine: Engine) -> None:
    """Of no package."""
    code = "import pathlib, sys; print(*pathlib.Path(sys.prefix).rglob('tests'))"

    assert python(engine, code) == ""
