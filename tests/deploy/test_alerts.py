"""The rules rest on metrics that exist, every alert can be acted upon, and has fired and been quiet."""

import re
import shutil
import subprocess

import pytest

from tests.deploy.support.deployed import PROMETHEUS, ROOT, alerts, read_yaml, rules
from tests.worker.support.pages import worker_page
from tests.worker.support.promtool import MISSING

RUNBOOK = (ROOT / "deploy" / "runbook.md").read_text()
NAME = re.compile(r"(?<![:\w])mistakebound_\w+")
TESTS = read_yaml(PROMETHEUS / "rules_test.yml")["tests"]


def promtool(*arguments: str) -> None:
    """Run it beside the rules; it must find nothing."""
    program = shutil.which("promtool")
    assert program is not None, MISSING
    done = subprocess.run(
        [program, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.promtool
def test_promtool_finds_nothing_in_the_rules() -> None:
    """Not even duplicates."""
    promtool("check", "rules", "--lint=all", "--lint-fatal", "rules.yml")


@pytest.mark.promtool
def test_promtool_accepts_the_configuration() -> None:
    """With the rules that it names."""
    promtool("check", "config", "prometheus.yml")


@pytest.mark.long
@pytest.mark.promtool
def test_every_rule_says_what_its_examples_expect() -> None:
    """Alerts fire and stay quiet, recorded series have their values: promtool's own unit tests."""
    promtool("test", "rules", "rules_test.yml")


def test_every_metric_in_the_rules_is_on_a_workers_page() -> None:
    """A typing error in a rule would be an alert that never fires."""
    named = {name for rule in rules() for name in NAME.findall(rule["expr"])}

    assert len(named) > 15
    assert named - {"mistakebound_state"} <= worker_page().keys()


def test_every_label_a_rule_selects_by_is_one_of_its_metric() -> None:
    """With `job` and `instance`, which Prometheus adds."""
    page = worker_page()
    wrong = [
        (name, label)
        for rule in rules()
        for name, selector in re.findall(r"(?<![:\w])(mistakebound_\w+){([^}]*)}", rule["expr"])
        for label in re.findall(r'(\w+)=~?"', selector)
        if label not in page[name] | {"job", "instance"}
    ]

    assert wrong == []


def test_no_rule_adds_up_two_models() -> None:
    """A model is a namespace, a job and a prefix: every sum keeps them, and every comparison is within them."""
    model = {"namespace", "job", "prefix"}
    for rule in rules():
        kept = re.findall(r"\b(?:by|on) \(([^)]*)\)", rule["expr"])
        assert all(model <= set(labels.split(", ")) for labels in kept), rule
        assert len(re.findall(r"\b(?:sum|max|min|group|count)(?: by)? ?\(", rule["expr"])) == rule[
            "expr"
        ].count("by ("), rule


def test_every_recorded_series_an_alert_reads_is_recorded() -> None:
    """Names with colons come from the rules themselves."""
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    read = {name for rule in rules() for name in re.findall(r"\w+:mistakebound_\w+(?::\w+)+", rule["expr"])}

    assert read <= recorded


def test_every_metric_in_the_runbook_is_on_a_workers_page_or_recorded() -> None:
    """Queries that are copied in an emergency must work."""
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    # A histogram may be named without the ending of its samples.
    page = {re.sub(r"_bucket$", "", name) for name in worker_page()} | worker_page().keys()

    assert set(NAME.findall(RUNBOOK)) <= page
    assert set(re.findall(r"\w+:mistakebound_\w+(?::\w+)+", RUNBOOK)) <= recorded


@pytest.mark.parametrize("name", alerts())
def test_an_alert_says_what_is_wrong_and_what_to_do(name: str) -> None:
    """Our name, a severity, a fixed summary, a description, and a section of the runbook with four parts."""
    alert = alerts()[name]
    file, _, anchor = alert["annotations"]["runbook_url"].partition("#")
    section = RUNBOOK.partition(f"\n## {name}\n")[2].partition("\n## ")[0]

    assert re.fullmatch("Mistakebound([A-Z][a-z]+)+", name)
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    assert "{{" not in alert["annotations"]["summary"]
    assert (ROOT / file, anchor) == (ROOT / "deploy" / "runbook.md", name.lower())
    assert re.findall(r"^\*\*(\w+)\.\*\*", section, re.MULTILINE) == [
        "Meaning",
        "Impact",
        "Diagnosis",
        "Mitigation",
    ]


@pytest.mark.parametrize("name", alerts())
def test_an_alert_has_fired_in_a_test_and_not_fired_in_one(name: str) -> None:
    """Both cases are among promtool's unit tests."""
    cases = [case for test in TESTS for case in test.get("alert_rule_test", ()) if case["alertname"] == name]

    assert {bool(case.get("exp_alerts")) for case in cases} == {True, False}


def test_the_runbook_has_no_section_without_an_alert() -> None:
    """An alert that was renamed takes its section along."""
    assert re.findall(r"^## (\w+)$", RUNBOOK, re.MULTILINE) == list(alerts())
