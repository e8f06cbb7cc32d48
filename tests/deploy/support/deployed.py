"""What the files under `deploy` and the compose project say, as data."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.support.project import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
PROMETHEUS = ROOT / "deploy" / "prometheus"
GRAFANA = ROOT / "deploy" / "grafana"


class Instruction(NamedTuple):
    """One line of a Dockerfile, continued lines joined."""

    name: str
    rest: str


def stages() -> list[list[Instruction]]:
    """The stages of the image, each from its FROM on; what comes before the first is left out."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found: list[list[Instruction]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append(Instruction(name, rest.strip()))
    return found


def image(name: str) -> list[str]:
    """What follows an instruction in the final stage, one for each time that it is there."""
    return [each.rest for each in stages()[-1] if each.name == name]


def image_exec(name: str) -> list[str]:
    """ENTRYPOINT, CMD or VOLUME in their form as a list."""
    (rest,) = image(name)
    words: list[str] = json.loads(rest)
    return words


def image_environment() -> dict[str, str]:
    """The image's ENV."""
    return dict(pair.split("=", 1) for rest in image("ENV") for pair in rest.split())


def read_yaml(path: Path) -> Any:
    """One document, read in C: in Python it takes a second in all."""
    return yaml.load(path.read_text(), yaml.CSafeLoader)


def compose() -> dict[str, Any]:
    """The compose project, anchors and merges resolved."""
    found: dict[str, Any] = read_yaml(ROOT / "docker-compose.yml")
    return found


def services() -> dict[str, dict[str, Any]]:
    """The compose project's services by name."""
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def environment_of(service: str) -> dict[str, str]:
    """What the process of a service made of our image finds, as texts: the image's, then the service's."""
    own = {name: str(value) for name, value in services()[service]["environment"].items()}
    return {**image_environment(), **own}


def rules() -> list[dict[str, Any]]:
    """Every recording and alert rule."""
    document = read_yaml(PROMETHEUS / "rules.yml")
    return [rule for group in document["groups"] for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    """The alert rules by name."""
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}
