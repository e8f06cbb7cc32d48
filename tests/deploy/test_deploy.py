"""The image and the compose project are what they must be; no container engine is asked."""

import base64
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, requires
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from packaging.requirements import Requirement

from mistakebound.commands.app import VERBS
from mistakebound.config.checks import require_for_run
from mistakebound.config.load import load
from mistakebound.core.records import INPUTS, TOPICS
from mistakebound.worker.http.server import parse_address
from mistakebound.worker.process import DRAIN_S
from tests.deploy.support import deployed
from tests.deploy.support.deployed import (
    GRAFANA,
    PROMETHEUS,
    ROOT,
    compose,
    environment_of,
    image,
    image_exec,
    services,
)
from tests.deploy.support.panels import FOLDER, ONE

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = ("topics", "worker", "challenger-topics", "challenger", "producer")
LASTING = [name for name, service in services().items() if service["restart"] != "no"]
MOST_BYTES = 200_000_000


def mounts(service: str) -> dict[str, str]:
    """Target -> source."""
    return {
        target: source
        for source, target, *_ in (each.split(":") for each in services()[service].get("volumes", ()))
    }


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


# The image


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    """Its rules, none left out."""
    program = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [program, "--no-color", deployed.DOCKERFILE], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_has_two_stages_on_one_interpreter() -> None:
    """The environment is copied from the first: its scripts name the interpreter by path."""
    assert [stage[0].rest for stage in deployed.stages()] == ["${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"]
    assert "--from=build /opt/mistakebound /opt/mistakebound" in image("COPY")
    version = re.search(
        r"^ARG PYTHON_IMAGE=python:(\d+\.\d+)-slim", deployed.DOCKERFILE.read_text(), re.MULTILINE
    )
    assert version is not None
    assert tuple(map(int, version[1].split("."))) >= (3, 11)


def test_the_image_runs_the_worker_directly_and_not_as_root() -> None:
    """A shell in between would not pass SIGTERM on; only a user given by number can be seen not to be root."""
    (user,) = image("USER")

    assert (image_exec("ENTRYPOINT"), image_exec("CMD")) == (["mistakebound"], ["run"])
    assert all(int(number) > 0 for number in user.split(":"))
    assert image("STOPSIGNAL") == ["SIGTERM"]


def test_the_image_asks_the_worker_how_it_is() -> None:
    """By the verb that judges progress, within the time that the verb itself allows."""
    (check,) = image("HEALTHCHECK")
    options, _, command = check.partition(" CMD ")

    assert yaml.safe_load(command) == ["mistakebound", "health"]
    timeout = re.search(r"--timeout=(\d+)s", options)
    assert timeout is not None
    assert int(timeout[1]) > 3


def test_the_only_writable_place_is_the_checkpoints_volume() -> None:
    """It exists in the image with the worker's user as its owner, and the worker is told of it."""
    (volume,) = image_exec("VOLUME")
    (made,) = image("RUN")

    assert deployed.image_environment()["MISTAKEBOUND_CHECKPOINT__URL"] == volume
    assert re.search(rf"install -d -o 10001 -g 10001 -m 0750 {volume}\b", made)
    assert image("USER") == ["10001:10001"]


def test_the_settings_in_the_image_are_valid() -> None:
    """They load, and others in the container's network can reach the metrics at the exposed port."""
    settings = load(None, (), None, deployed.image_environment()).settings

    assert parse_address(settings.http.address) == ("0.0.0.0", int(image("EXPOSE")[0]))


def test_every_file_the_image_is_made_of_is_given_to_the_builder() -> None:
    """What is copied exists, and .dockerignore lets it and nothing else through."""
    copied = {
        word
        for stage in deployed.stages()
        for each in stage
        if each.name == "COPY" and "--from" not in each.rest
        for word in each.rest.split()[:-1]
    }
    lines = (ROOT / ".dockerignore").read_text().splitlines()

    assert all((ROOT / each).exists() for each in copied)
    assert {line[1:] for line in lines if line.startswith("!")} == copied
    assert lines[1] == "*"


def test_what_the_image_installs_is_what_was_locked() -> None:
    """Of each dependency the very file; the test extra is not among them (`tests/gates/test_locks.py`)."""
    build = "\n".join(each.rest for each in deployed.stages()[0])
    assert "install --no-cache-dir --require-hashes -r requirements.hashes" in build


def needed() -> set[str]:
    """The distributions that the worker needs, here and now, by name."""
    found: set[str] = set()
    missing = [Requirement(each) for each in PROJECT["dependencies"]]
    while missing:
        one = missing.pop()
        if one.name in found:
            continue
        found.add(one.name)
        for text in requires(one.name) or ():
            requirement = Requirement(text)
            extras = one.extras or {""}
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in extras):
                missing.append(requirement)
    return found


def test_the_installed_environment_is_small() -> None:
    """Under 200 MB, with the compiled files."""
    files = [Path(str(file.locate())) for name in needed() for file in distribution(name).files or ()]

    assert sum(file.stat().st_size for file in files if file.is_file()) < MOST_BYTES


# The compose project


def test_the_project_is_as_the_specification_wants_it() -> None:
    """By the Compose Specification's own schema, which knows every key; a wrong one is found."""
    schema = json.loads((ROOT / "tests/deploy/compose-spec/compose-spec.json").read_text())
    Draft7Validator.check_schema(schema)
    validator = Draft7Validator(schema)
    misspelt = compose()
    misspelt["services"]["worker"]["mem_limt"] = "512m"

    assert [f"{each.json_path}: {each.message}" for each in validator.iter_errors(compose())] == []
    assert not validator.is_valid(misspelt)


@pytest.mark.parametrize("name", services())
def test_a_service_is_confined(name: str) -> None:
    """No capability, no new privilege, a reaper, bounded memory, processes and logs, a pinned image."""
    service = services()[name]
    tag = service["image"].rpartition(":")[2]

    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["init"] is True
    assert {"mem_limit", "pids_limit"} <= service.keys()
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    assert name in OURS or re.fullmatch(r"v?\d+\.\d+\.\d+", tag)
    assert service.get("read_only") is (None if name == "kafka" else True)


@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_service_comes_back_and_is_given_time_to_end(name: str) -> None:
    """More than the 10 s that the worker allows itself."""
    assert services()[name]["restart"] == "unless-stopped"
    assert seconds(services()[name]["stop_grace_period"]) > DRAIN_S


@pytest.mark.parametrize("name", services())
def test_a_service_is_asked_how_it_is_or_ends_by_itself(name: str) -> None:
    """By a command, not by an open port; only what serves nothing is not asked."""
    check = services()[name]["healthcheck"]

    if name in ("topics", "challenger-topics", "producer"):
        assert check == {"disable": True}
    else:
        assert check["test"][0] == "CMD"
        assert {"interval", "timeout", "retries", "start_period"} <= check.keys()


def test_services_start_when_what_they_need_is_ready() -> None:
    """The broker healthy before anybody connects, the topics made before anybody reads or writes;
    Prometheus, which watches them, waits for none of them, and Grafana for Prometheus."""
    order = {
        name: {other: how["condition"] for other, how in service.get("depends_on", {}).items()}
        for name, service in services().items()
    }

    ready = {"kafka": "service_healthy"}
    both = {**ready, "topics": "service_completed_successfully"}
    assert order == {
        "kafka": {},
        "topics": ready,
        "worker": both,
        "challenger-topics": both,
        "challenger": {**ready, "challenger-topics": "service_completed_successfully"},
        "producer": both,
        "prometheus": {},
        "grafana": {"prometheus": "service_healthy"},
    }


def test_a_challenger_runs_only_where_it_is_asked_for_and_shares_the_inputs_alone() -> None:
    """The worker's examples and labels; every other topic, and the group, are its own."""
    ours, theirs = (load(None, (), None, environment_of(name)).settings for name in ("worker", "challenger"))
    shared = [topic for topic in TOPICS if ours.topic_name(topic) == theirs.topic_name(topic)]

    assert sorted(shared) == sorted(INPUTS)
    assert ours.group != theirs.group
    assert ours.learner.kind != theirs.learner.kind
    for name in services():
        assert ("profiles" in services()[name]) is name.startswith("challenger")


def test_every_mount_has_a_source() -> None:
    """Volumes are declared and used; folders exist."""
    sources = {source for name in services() for source in mounts(name).values()}

    assert {each for each in sources if not each.startswith(".")} == set(compose()["volumes"])
    assert all((ROOT / each).is_dir() for each in sources if each.startswith("."))


def test_every_mount_is_where_its_process_looks() -> None:
    """Checkpoints, the broker's data, Prometheus' data and configuration."""
    options = dict(each.removeprefix("--").split("=", 1) for each in services()["prometheus"]["command"])
    configuration = PurePosixPath(options["config.file"])

    assert mounts("worker") == {environment_of("worker")["MISTAKEBOUND_CHECKPOINT__URL"]: "checkpoints"}
    assert mounts("kafka") == {services()["kafka"]["environment"]["KAFKA_LOG_DIRS"]: "kafka"}
    assert mounts("prometheus")[options["storage.tsdb.path"]] == "prometheus"
    folder = ROOT / mounts("prometheus")[str(configuration.parent)]
    assert (folder / configuration.name).samefile(PROMETHEUS / "prometheus.yml")


@pytest.mark.parametrize("name", OURS)
def test_every_variable_of_ours_is_a_setting(name: str) -> None:
    """They load without a problem, suffice for `run`, and name the broker's internal listener."""
    settings = load(None, (), None, environment_of(name)).settings
    require_for_run(settings)
    internal = services()["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")[0]

    assert settings.log.url == internal.replace("INTERNAL://", "kafka://")
    assert services()[name]["command"][0] in VERBS


def test_the_broker_is_asked_for_metadata_on_its_internal_listener() -> None:
    """The one that the workers use; a wrong advertised name is found here."""
    environment = services()["kafka"]["environment"]
    test = services()["kafka"]["healthcheck"]["test"]
    internal = environment["KAFKA_ADVERTISED_LISTENERS"].split(",")[0].removeprefix("INTERNAL://")

    assert test[1:] == ["/opt/kafka/bin/kafka-topics.sh", "--bootstrap-server", internal, "--list"]


def test_the_clusters_id_is_one() -> None:
    """16 bytes in base64, as the broker's storage wants them."""
    text = services()["kafka"]["environment"]["CLUSTER_ID"]
    held = base64.urlsafe_b64decode(text + "==")

    assert len(held) == 16
    assert base64.urlsafe_b64encode(held).decode().rstrip("=") == text


def test_workers_can_be_scaled() -> None:
    """No name, host name, slot or published port that two of them would fight over."""
    worker = services()["worker"]

    assert not {"container_name", "hostname", "ports"} & worker.keys()
    assert "MISTAKEBOUND_WORKER__SLOT" not in environment_of("worker")


def test_nothing_is_published_beyond_this_machine() -> None:
    """The broker takes anybody's word, and Prometheus and Grafana show everything."""
    published = [port for service in services().values() for port in service.get("ports", ())]

    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_prometheus_scrapes_every_worker() -> None:
    """By the service's name, one address for each, at the port that the worker serves."""
    document: dict[str, Any] = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    (job,) = document["scrape_configs"]
    (found,) = job["dns_sd_configs"]
    _, port = parse_address(environment_of("worker")["MISTAKEBOUND_HTTP__ADDRESS"])

    assert (found["names"], found["type"], found["port"]) == (["worker"], "A", port)
    assert job["job_name"] == "mistakebound"
    assert document["rule_files"] == ["rules.yml"]


def test_grafana_finds_the_dashboard_and_opens_with_it() -> None:
    """The provider's folder and the home page are where the dashboard is mounted."""
    found = {PurePosixPath(target): ROOT / source for target, source in mounts("grafana").items()}
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/mistakebound.yml").read_text())[
        "providers"
    ]
    home = PurePosixPath(services()["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])

    assert found[PurePosixPath("/etc/grafana/provisioning")] == GRAFANA / "provisioning"
    assert home.parent == PurePosixPath(provider["options"]["path"])
    assert (found[home.parent] / home.name).samefile(FOLDER / f"{ONE}.json")
    assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
    assert mounts("grafana")["/var/lib/grafana"] == "grafana"


def test_grafana_asks_the_projects_prometheus() -> None:
    """By the service's name, at the port that its health check asks too."""
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    *_, asked = services()["prometheus"]["healthcheck"]["test"]

    assert source["url"].replace("prometheus:", "127.0.0.1:") + "/-/ready" == asked
    assert (source["access"], source["editable"]) == ("proxy", False)


def test_grafana_lets_anybody_look_and_nobody_change() -> None:
    """No click before the dashboard, no password to guess, nothing fetched from outside."""
    environment = services()["grafana"]["environment"]

    assert environment["GF_AUTH_ANONYMOUS_ENABLED"] == "true"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert environment["GF_AUTH_BASIC_ENABLED"] == "false"
    assert environment["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    assert environment["GF_PLUGINS_PREINSTALL_DISABLED"] == "true"
    assert all(value == "false" for name, value in environment.items() if name.startswith("GF_ANALYTICS_"))


def test_the_demo_can_be_made_to_drift_as_the_project_says() -> None:
    """The commands in its head are ones that `demo` takes, at the producer's own rate."""
    head = (ROOT / "docker-compose.yml").read_text().partition("\nname:")[0]
    told = re.findall(r"run --rm producer (.+)", head)
    producer = " ".join(services()["producer"]["command"])

    assert [each.removeprefix(producer) for each in told] == [" --flip-labels", " --withhold-labels"]
