"""Files of labelled data name their tenants: in a column, in a member, or in a feature."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.support.command_line import ok, run

CROSS = ("--set", "learner.kind=perceptron", "--set", "features.cross=/who/shop")
CSV = "id,shop,a,label\n1,books,1,1\n2,shoes,1,0\n3,books,1,1\n"
ROWS = [
    {"id": 1, "shop": "books", "features": {"a": 1}, "label": True},
    {"id": 2, "shop": "shoes", "features": {"a": 1}, "label": False},
    {"id": 3, "shop": "books", "features": {"a": 1}, "label": True},
]


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def replayed(name: str, text: str, *arguments: str) -> dict[str, Any]:
    Path(name).write_text(text)
    told = ok("replay", name, "-q", "--json", "--max-invalid=9", *CROSS, *arguments, log=None)
    report: dict[str, Any] = json.loads(told.stdout)
    return report


def examples(report: dict[str, Any]) -> dict[str | None, int]:
    return {one["tenant"]: one["examples"] for one in report["tenants"]}


@pytest.mark.parametrize(("name", "text"), [("rows.csv", CSV), ("rows.jsonl", lines(ROWS))])
def test_the_tenant_is_where_the_pointers_last_name_says(name: str, text: str) -> None:
    """It is no feature then: two shops have two weights for `a`, and two for BIAS."""
    report = replayed(name, text)
    assert examples(report) == {"books": 2, "shoes": 1}
    assert report["model"]["features"] == 4
    assert report["mistakes"] == 1  # as two worlds, each with one kind of label


@pytest.mark.parametrize(
    ("name", "text"),
    [("rows.csv", CSV.replace("shop", "seller")), ("rows.jsonl", lines(ROWS).replace("shop", "seller"))],
)
def test_the_tenant_is_where_the_option_says(name: str, text: str) -> None:
    """Where the file calls it otherwise."""
    assert examples(replayed(name, text, "--tenant", "seller")) == {"books": 2, "shoes": 1}


def test_a_tenant_that_is_a_feature_stays_one() -> None:
    """The column is then learned, too."""
    report = replayed("rows.csv", CSV, "--set", "features.cross=/features/shop")
    assert examples(report) == {"books": 2, "shoes": 1}
    assert report["model"]["features"] == 6


@pytest.mark.parametrize(
    ("name", "text"),
    [("rows.csv", CSV + "4,,1,1\n"), ("rows.jsonl", lines([*ROWS, {"features": {"a": 1}, "label": True}]))],
)
def test_a_row_of_nobody_is_rejected_by_its_line(name: str, text: str) -> None:
    """As its example would be on the stream."""
    (rejected,) = replayed(name, text, "--set", "labels.remember=1")["rejected"]
    assert (rejected["reason"], rejected["count"]) == ("missing-tenant", 1)
    assert rejected["first"]["line"] == text.count("\n")
    assert rejected["detail"] == "no tenant at /who/shop; send one there, or change features.cross"


def test_a_missing_column_is_named_with_its_option() -> None:
    """Before anything is read."""
    Path("rows.csv").write_text(CSV.replace("shop", "seller"))
    told = run("replay", "rows.csv", *CROSS, log=None)
    assert told.exit_code == 2
    assert "no column `shop`" in told.stderr
    assert "--tenant" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["rows.csv", "--tenant", "shop"], "features.cross is unset"),
        (["rows.csv", "--tenant", "shop", "--set", "features.cross=/features/shop"], "one of the features"),
        (["rows.svm", "--set", "features.cross=/shop"], "svmlight line names no tenant"),
        (["rows.svm", "--tenant", "shop"], "--tenant: an svmlight line"),
    ],
)
def test_a_tenant_that_means_nothing_is_refused(arguments: list[str], why: str) -> None:
    """With what to do."""
    Path("rows.csv").write_text(CSV)
    Path("rows.svm").write_text("1 1:1\n")
    told = run("replay", *arguments, log=None)
    assert told.exit_code == 2
    assert why in told.stderr
