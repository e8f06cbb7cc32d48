"""Everything that `--json` prints is as `--schema` says, and holds no key that the schema does not know."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mistakebound.commands.json_schemas import PRINTED
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run
from tests.commands.support.epochs import work_on
from tests.commands.test_help import VERBS
from tests.worker.support.working import altered, opened

pytestmark = pytest.mark.usefixtures("quiet")

ROWS = "id,label,x\n" + "".join(f"{n},{str(n % 2 == 0).lower()},{n % 2}.5\n" for n in range(8))
WORKED = {
    "status": "status --json",
    "status, with its model": "status --model --json",
    "audit": "audit --json",
    "compare": "compare day.jsonl again.jsonl --json",
    "tail": "tail outcomes --from beginning -c 1 --json",
    "topics check": "topics check --json",
    "checkpoint list": "checkpoint list --json",
    "reset": "reset --json --set learner.kind=perceptron",
    "config show": "config show --json",
    "replay": "replay rows.csv --json --compare",
    "replay, of a recording with what cannot be used": "replay day.jsonl --json",
    "seed": "seed rows.csv --json --dry-run --set learner.kind=perceptron",
    "learners": "learners --json",
    "learners, its concepts": "learners --concepts --json",
    "teach": "teach nature --concept x1 --variables 3 --json",
    "demo": "demo --once --json --set http.address=127.0.0.1:0",
}
WITHOUT_LOG = ("replay", "learners", "teach", "demo")


def strict(schema: Any) -> Any:
    """The same schema, which allows no key beside those it describes."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    told = {key: strict(value) for key, value in schema.items()}
    return {**told, "additionalProperties": False} if isinstance(told.get("properties"), dict) else told


@pytest.mark.parametrize("case", WORKED)
def test_what_is_printed_is_as_its_schema_says(case: str, settings: Settings) -> None:
    """Each verb, on a log with an epoch, labels, mistakes and a checkpoint."""
    other = altered(settings, checkpoint={"url": "kept"}, labels={"max_delay": 86_400})
    place = ["--set", "checkpoint.url=kept", "--set", f"log.prefix={settings.log.prefix}"]
    place += ["--set", "labels.max_delay=P1D"]
    with opened(other) as log:
        work_on(log, other)
    Path("rows.csv").write_text(ROWS)
    for file in ("day.jsonl", "again.jsonl"):
        ok("record", file, *place, log=settings.log.url)
    verb = case.partition(",")[0]
    flags = [] if verb in WITHOUT_LOG else place
    printed = run(*WORKED[case].split(), *flags, log=None if verb in WITHOUT_LOG else settings.log.url)
    assert printed.stdout, printed.stderr
    schema = json.loads(ok(*verb.split(), "--schema", log=None).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(printed.stdout), strict(schema))


def test_every_verb_with_json_has_a_schema_and_a_case_above() -> None:
    """And no other has one."""
    with_json = {" ".join(path) for path in VERBS if "--json" in ok(*path, "--help", log=None).stdout.split()}
    assert set(PRINTED) == with_json == {case.partition(",")[0] for case in WORKED}


def test_a_schema_needs_no_arguments_no_settings_and_no_log() -> None:
    """As `--help` does not."""
    Path("mistakebound.toml").write_text("nonsense")
    assert json.loads(ok("replay", "--schema", log=None).stdout)["title"] == "replay"
