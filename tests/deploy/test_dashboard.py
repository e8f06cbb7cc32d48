"""The dashboards ask for metrics that exist, as Prometheus wants to be asked, and say what they show.

Their queries are put to a real Prometheus in `tests/faults/test_dashboard_live.py`.
"""

import re
from itertools import pairwise

import pytest
import yaml

from tests.deploy.support.deployed import GRAFANA, PROMETHEUS, ROOT, alerts
from tests.deploy.support.panels import (
    ALL,
    FOLDER,
    ONE,
    Panel,
    annotations,
    dashboard,
    filled,
    panels,
    selectors,
    table,
    variables,
)
from tests.worker.support.pages import worker_page

ROWS = ["Is it right?", "Are labels coming?", "Is it keeping up?", "Is it safe?", "Model and bounds"]
UNITS = {"percentunit", "short", "none", "cps", "s", "bytes"}
"""Of Grafana's: share of 1, number, as it is, events a second, seconds, bytes of 1024."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
PROMETHEUS_OWN = {"ALERTS"}
FROM_PROMETHEUS = {"namespace", "job", "instance"}
"""Labels that it adds; the first where it watches a Kubernetes."""
MODEL = "namespace, job, prefix"
NOT_SHOWN = {
    "mistakebound_assigned_partitions",  # the lag and the waiting are by what is assigned
    "mistakebound_parked_limit",  # parked labels are few; an alert would show too many as unmatched
}
KINDS = {"stat", "timeseries", "table", "heatmap", "state-timeline"}

EVERY = [*panels(ONE), *panels(ALL)]
each_panel = pytest.mark.parametrize("panel", EVERY, ids=[each.title for each in EVERY])
each_dashboard = pytest.mark.parametrize("name", [ONE, ALL])


def every_query(*names: str) -> list[str]:
    found = [query.expr for name in names or (ONE, ALL) for each in panels(name) for query in each.queries]
    return found if names == (ALL,) else found + annotations()


def test_there_are_two_dashboards() -> None:
    """Of one model, and of all."""
    assert {path.stem for path in FOLDER.iterdir()} == {ONE, ALL}


def test_the_rows_are_the_questions() -> None:
    """In the order in which they are asked."""
    assert [each["title"] for each in dashboard()["panels"] if each["type"] == "row"] == ROWS
    assert list(dict.fromkeys(each.row for each in panels())) == ROWS


@each_panel
def test_a_panel_says_what_it_shows(panel: Panel) -> None:
    """Title, description, unit, at least one query, and the data source that was chosen."""
    source = panel.source

    assert panel.title
    assert source["type"] in KINDS
    assert re.fullmatch(r"[A-Z`].{15,}\.", source["description"])
    assert source["fieldConfig"]["defaults"]["unit"] in UNITS
    assert source["datasource"] == SOURCE
    assert panel.queries


@each_panel
def test_a_panels_series_can_be_told_apart(panel: Panel) -> None:
    """Several queries have a legend each, and overrides speak of a legend or column that there is."""
    legends = [query.legend for query in panel.queries]
    columns = {"job", "prefix"}
    for each in panel.source.get("transformations", ()):
        columns |= set(each["options"].get("renameByName", {}).values())

    if panel.source["type"] != "table":
        assert len(set(legends)) == len(legends)
        assert len(legends) == 1 or all(legends)
    for each in panel.source["fieldConfig"]["overrides"]:
        matcher, named = each["matcher"]["id"], each["matcher"]["options"]
        if matcher == "byName":
            assert panel.source["type"] == "table"
            assert named in columns
        else:
            assert (matcher, named[:2], named[-6:]) == ("byRegexp", "/^", "( |$)/")
            assert named[2:-6] in {query.name for query in panel.queries}


@each_dashboard
def test_titles_and_ids_are_used_once(name: str) -> None:
    """A person, and Grafana, can name a panel."""
    titles = [each.title for each in panels(name)]
    ids = [each["id"] for each in dashboard(name)["panels"]]

    assert len(set(titles)) == len(titles)
    assert len(set(ids)) == len(ids)


@each_dashboard
def test_the_panels_lie_side_by_side(name: str) -> None:
    """Every line is as wide as the page, and the lines follow each other without a gap."""
    lines: dict[int, list[tuple[int, int, int]]] = {}
    for each in dashboard(name)["panels"]:
        place = each["gridPos"]
        lines.setdefault(place["y"], []).append((place["x"], place["w"], place["h"]))

    for line in lines.values():
        assert [x + w for x, w, _ in line] == [*(x for x, _, _ in line[1:]), 24]
        assert len({h for *_, h in line}) == 1
    assert all(above + lines[above][0][2] == below for above, below in pairwise(sorted(lines)))


def test_every_selector_is_of_the_chosen_workers() -> None:
    """By the variables. An alert may be of a whole job, without a prefix: it is everybody's who looks at the job."""
    of_model = ['namespace=~"$namespace"', 'job=~"$job"', 'prefix=~"$prefix"']
    of_alert = ['namespace=~"|$namespace"', 'job=~"$job"', 'prefix=~"|$prefix"']
    for name, of_worker in ((ONE, [*of_model, 'instance=~"$instance"']), (ALL, of_model)):
        for expr in every_query(name):
            found = list(selectors(expr))
            assert found, expr
            for metric, matchers in found:
                wanted = of_alert if metric == "ALERTS" else of_worker
                assert all(each in matchers.split(", ") for each in wanted), (metric, matchers)


def test_no_panel_adds_up_two_models() -> None:
    """Sums and comparisons keep what makes a model; only counts of models, workers and alerts go over all, and the
    heat map, which can show one distribution."""
    over_all = {"Models", "Models with an alert", "Models worse than always-majority", "Workers not ready"}
    over_all |= {"Alerts firing", "Distance from the threshold"}
    for each in EVERY:
        for query in each.queries:
            kept = re.findall(r"\b(?:by|on) \(([^)]*)\)", query.expr)
            aggregations = len(re.findall(r"\b(?:sum|max|min|group|count)(?: by)? ?\(", query.expr))
            if each.title in over_all:
                continue
            assert all(labels.startswith(MODEL) for labels in kept), query.expr
            assert aggregations == query.expr.count("by ("), query.expr


def test_every_metric_and_label_is_on_a_workers_page() -> None:
    """A typing error would be a panel that is empty for ever."""
    page = worker_page()
    for expr in every_query():
        named = set(re.findall(r"\b(?:mistakebound|process|python)_\w+(?={)", expr))
        bare = set(re.findall(r"\bmistakebound_\w+", re.sub(r"{[^}]*}", "{}", expr))) - named
        assert named <= page.keys(), expr
        assert not bare, f"{bare} without a selector"
        assert {metric for metric, _ in selectors(expr)} <= page.keys() | PROMETHEUS_OWN
        for metric, matchers in selectors(expr):
            labels = set(re.findall(r"(\w+)=~?\"", matchers))
            assert metric in PROMETHEUS_OWN or labels <= page[metric] | FROM_PROMETHEUS, expr


def test_every_metric_of_a_worker_is_on_the_dashboard() -> None:
    """What is measured and never looked at would be a question that nobody can answer."""
    bare = re.compile("_(bucket|count|sum)$")
    asked = {bare.sub("", metric) for expr in every_query() for metric, _ in selectors(expr)}
    told = {bare.sub("", name) for name in worker_page() if name.startswith("mistakebound_")}

    assert told - asked == NOT_SHOWN


def test_labels_in_legends_and_groups_are_on_the_page() -> None:
    """Otherwise they would stay empty."""
    known = set().union(*worker_page().values()) | FROM_PROMETHEUS
    for each in EVERY:
        for query in each.queries:
            grouped = re.findall(r"(?:by|on|ignoring|group_left) \(([\w, ]*)\)", query.expr)
            names = {name for names in grouped for name in names.split(", ") if name}
            assert names | set(re.findall(r"{{(\w+)}}", query.legend)) <= known, query.expr


def test_a_counter_is_only_read_over_a_window() -> None:
    """It starts at zero with the process. Windows fit the zoom, unless the panel's title names its own."""
    windows = re.compile(r"(?:rate|increase)\((\w+){[^}]*}\[([^]]+)\](?: offset \$delay)?\)")
    for expr in every_query():
        over = windows.findall(expr)
        counters = re.findall(r"\b\w+(?:_total|_bucket|_count|_sum)(?={)", expr)
        assert sorted(name for name, _ in over) == sorted(counters), expr
        assert {window for _, window in over} <= {"$__rate_interval", "$__range", "1h"}, expr


@each_dashboard
def test_the_variables_narrow_each_other_down(name: str) -> None:
    """From the data source to the worker; several values at once, asked for again when the time shown changes. A
    namespace or a prefix may be missing, so `All` must fit nothing at all, too."""
    found = variables(name)
    chain = {"namespace": ".*", "job": ".+", "prefix": ".*"} | ({"instance": ".+"} if name == ONE else {})

    assert list(found) == ["datasource", *chain, *(["delay"] if name == ONE else [])]
    assert (found["datasource"]["type"], found["datasource"]["query"]) == ("datasource", "prometheus")
    chosen: list[str] = []
    for variable, all_of_them in chain.items():
        one = found[variable]
        assert (one["type"], one["datasource"], one["label"]) == ("query", SOURCE, variable)
        assert (one["multi"], one["includeAll"], one["allValue"], one["refresh"]) == (
            True,
            True,
            all_of_them,
            2,
        )
        assert one["query"]["query"] == one["definition"]
        selector = "{" + ", ".join(chosen) + "}" if chosen else ""
        assert one["definition"] == f"label_values(mistakebound_build_info{selector}, {variable})"
        chosen.append(f'{variable}=~"${variable}"')


def test_one_of_the_usual_delays_is_chosen() -> None:
    """Labels are compared with the predictions so long ago."""
    found = variables()
    delays = found["delay"]
    assert [each["value"] for each in delays["options"]] == delays["query"].split(",")
    assert [each["value"] for each in delays["options"] if each["selected"]] == [delays["current"]["value"]]


def test_every_alert_has_a_panel_that_shows_it() -> None:
    """The table in the runbook names panels that there are, in the order of the alerts."""
    runbook = (ROOT / "deploy" / "runbook.md").read_text()
    told = re.findall(r"^\| (Mistakebound\w+) \| (.+) \| (.+) \|$", runbook, re.MULTILINE)

    assert [name for name, *_ in told] == list(alerts())
    assert {(row, title) for _, row, title in told} <= {(each.row, each.title) for each in panels()}


@pytest.mark.parametrize(("name", "every", "since"), [(ONE, "5s", "now-15m"), (ALL, "30s", "now-6h")])
def test_a_dashboard_moves_and_is_a_file(name: str, every: str, since: str) -> None:
    """It is loaded again by itself, shows the recent past, and cannot be edited away from its file."""
    found = dashboard(name)

    assert (found["editable"], found["uid"], found["refresh"]) == (False, name, every)
    assert found["time"] == {"from": since, "to": "now"}
    assert "id" not in found, "Grafana gives it"


@each_dashboard
def test_the_dashboards_lead_to_each_other(name: str) -> None:
    """With what was chosen, and the time."""
    (link,) = dashboard(name)["links"]
    assert (link["tags"], link["includeVars"], link["keepTime"]) == (dashboard(name)["tags"], True, True)


def test_a_line_of_the_table_leads_to_its_model() -> None:
    """The links of its cells name the other dashboard, and variables that it has."""
    (table_of_models,) = (each for each in panels(ALL) if each.title == "Which model needs me?")
    links = [
        link["url"]
        for override in table_of_models.source["fieldConfig"]["overrides"]
        for each in override["properties"]
        if each["id"] == "links"
        for link in each["value"]
    ]

    assert len(links) == 2
    for link in links:
        assert link.startswith(f"/d/{ONE}/")
        assert (
            set(re.findall(r"var-(\w+)=", link)) | set(re.findall(r"\{(\w+):queryparam", link))
            <= variables().keys()
        )


def test_the_shortest_window_of_a_rate_follows_from_the_scrape_interval() -> None:
    """Grafana asks the data source for it; wrong, rates would be empty or too coarse."""
    scraping = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["global"]
    provisioned = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())
    (source,) = provisioned["datasources"]

    assert source["jsonData"]["timeInterval"] == scraping["scrape_interval"]
    assert (source["type"], source["uid"], source["isDefault"]) == (
        "prometheus",
        "mistakebound-prometheus",
        True,
    )


def test_variables_are_put_in_as_grafana_does_it() -> None:
    """All: the variable's own expression; one or several: escaped for a regular expression in a string."""
    expr = 'x{job=~"$job", instance=~"${instance}"}[$__rate_interval] offset $delay'
    times = {"step_s": 1, "scrape_s": 5, "range_s": 900}

    assert filled(expr, {}, **times) == 'x{job=~".+", instance=~".+"}[20s] offset 10s'
    one = {"job": ["a"], "instance": ["127.0.0.1:1"]}
    assert filled(expr, one, **times) == r'x{job=~"a", instance=~"127\\.0\\.0\\.1:1"}[20s] offset 10s'
    two = {"job": ["a", "b"], "instance": ["w"]}
    assert filled(expr, two, **{**times, "step_s": 60}) == 'x{job=~"(a|b)", instance=~"w"}[65s] offset 10s'
    with pytest.raises(KeyError):
        filled("$nobody", {}, **times)


def test_a_panels_data_can_be_read_as_a_table() -> None:
    """A moment a line; what a series lacks is left empty."""
    assert table("Lag", {"a": {5.0: 1, 6.0: 0.123456}, "bb": {6.0: 2}}).splitlines() == [
        "Lag",
        "s       a  bb",
        "0       1    ",
        "1  0.1235   2",
    ]
