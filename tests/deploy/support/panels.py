"""The dashboards as data: their panels, and their queries with the variables put in as Grafana does it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.deploy.support.deployed import GRAFANA

FOLDER = GRAFANA / "dashboards"
ONE, ALL = "mistakebound", "mistakebound-models"
"""Of one model, or several beside each other; and which of all models needs somebody."""
VARIABLE = re.compile(r"\$(?:{(\w+)}|(\w+))")
SELECTOR = re.compile(r"([A-Za-z_:][\w:]*){([^}]*)}")


class Query(NamedTuple):
    """One query of a panel."""

    expr: str
    legend: str
    """With `{{label}}` for a label's value."""
    instant: bool
    """Asked for one moment; else for the time shown."""

    @property
    def name(self) -> str:
        """The legend without the model's name, which is added to tell several models apart."""
        return self.legend.removesuffix("{{namespace}} {{prefix}}").rstrip()


class Panel(NamedTuple):
    """One panel below its row."""

    row: str
    """Empty where the dashboard has none."""
    title: str
    queries: tuple[Query, ...]
    source: Mapping[str, Any]
    """As the file has it."""


def dashboard(name: str = ONE) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def panels(name: str = ONE) -> list[Panel]:
    """Every panel but the rows, in order."""
    found: list[Panel] = []
    row = ""
    for each in dashboard(name)["panels"]:
        if each["type"] == "row":
            row = each["title"]
        else:
            queries = (
                Query(target["expr"], target["legendFormat"], target.get("instant", False))
                for target in each["targets"]
            )
            found.append(Panel(row, each["title"], tuple(queries), each))
    return found


def panel(title: str, name: str = ONE) -> Panel:
    """The panel of this title."""
    (found,) = (each for each in panels(name) if each.title == title)
    return found


def variables(name: str = ONE) -> dict[str, dict[str, Any]]:
    """A dashboard's variables by name."""
    return {each["name"]: each for each in dashboard(name)["templating"]["list"]}


def annotations() -> list[str]:
    """The queries of the annotations."""
    return [each["expr"] for each in dashboard()["annotations"]["list"]]


def filled(
    expr: str, chosen: Mapping[str, Sequence[str]], *, step_s: float, scrape_s: float, range_s: float
) -> str:
    """A query as Grafana sends it.

    `chosen` are the values of `prefix`, `instance` ... that the user picked; a variable that is not among them
    has its `current` value of the file. Raises KeyError for a variable that does not exist.
    """
    built_in = {
        "__interval": _duration(step_s),
        "__rate_interval": _duration(max(step_s + scrape_s, 4 * scrape_s)),
        "__range": _duration(range_s),
    }

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name in built_in:
            return built_in[name]
        if name in chosen:
            values = [_escaped(each) for each in chosen[name]]
            return values[0] if len(values) == 1 else f"({'|'.join(values)})"
        variable = variables()[name]
        current = variable["current"]["value"]
        return str(variable["allValue"] if current == ["$__all"] else current)

    return VARIABLE.sub(value, expr)


def _duration(seconds: float) -> str:
    """As Prometheus reads it, which knows no fractions."""
    return f"{seconds:.0f}s" if seconds == round(seconds) else f"{seconds * 1000:.0f}ms"


def _escaped(value: str) -> str:
    """A value within a regular expression within a PromQL string."""
    return re.sub(r"[$^*{}\[\]'+?.()|]", r"\\\\\g<0>", value.replace("\\", "\\\\\\\\"))


def selectors(expr: str) -> Iterator[tuple[str, str]]:
    """(metric, what is between its braces)."""
    for found in SELECTOR.finditer(expr):
        yield found[1], found[2]


def table(title: str, columns: Mapping[str, Mapping[float, float]]) -> str:
    """A panel's data as text: a line for each moment (in s, from the first one), a column for each series."""
    moments = sorted({at for values in columns.values() for at in values})
    head = ["s", *columns]
    lines = [
        [f"{at - moments[0]:.0f}", *(_cell(values.get(at)) for values in columns.values())] for at in moments
    ]
    widths = [max(len(line[place]) for line in [head, *lines]) for place in range(len(head))]
    return "\n".join(
        [
            title,
            *(
                "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
                for line in [head, *lines]
            ),
        ]
    )


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
