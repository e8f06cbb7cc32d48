"""What an example costs every contender, and how many it labels a second, interleaved on one broker."""

import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from mistakebound.commands.topics.rules import wanted_config
from mistakebound.core.records import Outgoing
from mistakebound.log import open_log
from mistakebound.settings import LogSettings, Settings
from tests.benchmarks.environments import compiled_checkout, python
from tests.benchmarks.workload import Workload, class_names, span_ms, stream
from tests.support.project import ROOT

PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Contender:
    """A program of `contenders`, with options of its own; of ours perhaps in a checkout with compiled modules."""

    name: str
    program: str
    options: dict[str, Any]
    compiled: bool = False


LIMIT = Contender("the limit: transactional pass-through", "limit", {})
OURS = Contender("mistakebound", "ours", {})
COMPILED = replace(OURS, name="mistakebound, compiled", compiled=True)
USERS = Contender("users' loop, at least once", "users_loop", {})
QUIX = Contender("Quix Streams + River, exactly once", "quix", {"guarantee": "exactly-once"})
CONFLUENT_LIMIT = Contender("the limit: pass-through, confluent-kafka", "confluent_limit", {})
CONFLUENT = Contender("mistakebound, confluent-kafka", "ours", {"scheme": "kafka+confluent"})
CONFLUENT_COMPILED = replace(CONFLUENT, name="mistakebound, confluent-kafka, compiled", compiled=True)

CONTENDERS = (
    LIMIT,
    OURS,
    COMPILED,
    Contender("mistakebound, averaged perceptron", "ours", {"learner": {"kind": "averaged-perceptron"}}),
    USERS,
    QUIX,
    Contender("Quix Streams + River, at least once", "quix", {"guarantee": "at-least-once"}),
    Contender("Faust + River, at least once", "faust_river", {}),
    Contender("Bytewax + River, at least once", "bytewax_river", {}),
)
STREAMS = Contender("Kafka Streams, exactly once", "kafka_streams", {"tuned": False, "commit_ms": 100})
STREAMS_TUNED = Contender(
    "Kafka Streams, exactly once, tuned", "kafka_streams", {"tuned": True, "commit_ms": 1_000}
)
JVM_CONTENDERS = (OURS, COMPILED, CONFLUENT, CONFLUENT_COMPILED, STREAMS, STREAMS_TUNED, QUIX)
"""Both clients and both builds beside a compiler that takes its time to warm up: in a long run."""

GOALS = {LIMIT.name: 0.65, USERS.name: 1.5, QUIX.name: 1.8}
"""How many times as fast ours is to be."""

CONFLUENT_CONTENDERS = (CONFLUENT_LIMIT, CONFLUENT, CONFLUENT_COMPILED, QUIX)
JVM_GOALS = {STREAMS_TUNED.name: 1.2}
CONFLUENT_GOALS = {CONFLUENT_LIMIT.name: 0.5, QUIX.name: 3.0}


def send(bootstrap: str, work: Workload, prefix: str) -> Settings:
    """Write the stream into `<prefix>examples` and `<prefix>labels`."""
    settings = Settings(log=LogSettings(url=f"kafka://{bootstrap}", prefix=prefix))
    began = round(time.time() * 1000) - span_ms(work)
    with open_log(settings) as log:
        log.create_topics(work.partitions, wanted_config(settings))
        log.append(
            Outgoing("labels" if topic == "labels" else "examples", partition, key, value, (), began + now)
            for topic, partition, now, key, value in stream(work)
        )
    return settings


def run(contender: Contender, bootstrap: str, work: Workload, inputs: Settings) -> dict[str, Any]:
    """Work the stream off once, with outputs and a group of its own."""
    prefix = f"run-{uuid.uuid4().hex[:8]}."
    names = {"examples": inputs.topic_name("examples"), "labels": inputs.topic_name("labels")}
    settings = Settings.model_validate(
        {"log": {"url": f"kafka://{bootstrap}", "prefix": prefix}, "topics": names}
    )
    with open_log(settings) as log:
        log.create_topics(work.partitions, wanted_config(settings))
    with tempfile.TemporaryDirectory() as folder:
        task = {
            "bootstrap": bootstrap,
            "prefix": prefix,
            **names,
            "records": work.records,
            "options": {**contender.options, "folder": folder, "partitions": work.partitions},
        }
        program = f"tests.benchmarks.contenders.{contender.program}"
        done = subprocess.run(
            [python(contender.program), "-m", program, json.dumps(task)],
            check=False,
            cwd=compiled_checkout() if contender.compiled else ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    if done.returncode != 0:
        raise RuntimeError(
            f"{contender.name} ended with {done.returncode}:\n{done.stdout}\n{done.stderr[-4_000:]}"
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if result.get("compiled", False) is not contender.compiled:
        raise RuntimeError(f"{contender.name}: not the build that was to be measured")
    if result["labelled"] != work.records:
        raise RuntimeError(f"{contender.name} labelled {result['labelled']} of {work.records}")
    return result


def interleaved(
    contenders: Sequence[Contender],
    bootstrap: str,
    work: Workload,
    rounds: int,
    broker_pid: int | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """Every contender once a round, each round in another order; before them the first, to warm up the broker.

    With the broker's process known, results tell `brokercpu_seconds`, too: it takes its share of the same cores.
    """
    inputs = send(bootstrap, work, f"in-{uuid.uuid4().hex[:8]}.")
    run(contenders[0], bootstrap, work, inputs)
    found: dict[str, list[dict[str, Any]]] = {each.name: [] for each in contenders}
    for number in range(rounds):
        turn = number % len(contenders)
        for each in (*contenders[turn:], *contenders[:turn]):
            before = cpu_seconds(broker_pid)
            result = run(each, bootstrap, work, inputs)
            if broker_pid is not None:
                result["brokercpu_seconds"] = cpu_seconds(broker_pid) - before
            found[each.name].append(result)
            rate = result["labelled"] / result["seconds"]
            cpu = result["cpu_seconds"] / result["labelled"] * 1e6
            print(
                f"  round {number + 1} {each.name}: {rate:,.0f}/s, {cpu:.1f} us CPU {_more(result)}",
                flush=True,
            )
    return found


def suited(contender: Contender, work: Workload) -> Contender | None:
    """With the options that the workload needs; None for one that cannot take it."""
    if contender.program == "ours" and work.classes > 2:
        return replace(contender, options=contender.options | {"labels": {"classes": class_names(work)}})
    rivers = contender.program not in ("limit", "confluent_limit", "ours")
    return None if rivers and (work.classes > 2 or work.sparse) else contender


def cpu_seconds(pid: int | None) -> float:
    """Of a process so far, in all its threads."""
    if pid is None:
        return 0.0
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _more(result: dict[str, Any]) -> str:
    return " ".join(
        f"{name} {result[name]}" for name in ("mistakes", "updates", "transactions") if name in result
    )


def table(found: dict[str, list[dict[str, Any]]], ours: str) -> str:
    """Markdown: medians and spreads; first what an example costs, since the cores are shared; ratios round by round."""
    lines = [
        "| | CPU us/example | ours takes, times less | spread | in the second half | broker's CPU us/example "
        "| labelled examples/s | spread | in the second half | ours is, times as fast | spread | mistakes "
        "| transactions |",
        "|---" * 13 + "|",
    ]
    rates, costs = rates_of(found), costs_of(found)
    for name, results in found.items():
        faster = ratios(rates.get(ours, rates[name]), rates[name])
        less = ratios(costs[name], costs.get(ours, costs[name]))
        halves = [one for one in results if one["half_labelled"]]
        later = [one["half_labelled"] / one["half_seconds"] for one in halves]
        cost_later = [one["half_cpu_seconds"] / one["half_labelled"] * 1e6 for one in halves]
        cells = (
            f"{median(costs[name]):.1f}",
            f"{median(less):.2f}",
            f"{min(less):.2f} to {max(less):.2f}",
            _median(cost_later, ".1f"),
            _median([each / 1e-6 for each in _each(results, "brokercpu_seconds")], ".1f"),
            f"{median(rates[name]):,.0f}",
            f"{min(rates[name]):,.0f} to {max(rates[name]):,.0f}",
            _median(later, ",.0f"),
            f"{median(faster):.2f}",
            f"{min(faster):.2f} to {max(faster):.2f}",
            _median([one["mistakes"] for one in results if "mistakes" in one], ",.0f"),
            _median([one["transactions"] for one in results if "transactions" in one], ",.0f"),
        )
        lines.append(f"| {' | '.join((name, *cells))} |")
    return "\n".join(lines)


def _each(results: Sequence[dict[str, Any]], seconds: str) -> list[float]:
    """Seconds for each labelled example, of the rounds that tell them."""
    return [one[seconds] / one["labelled"] for one in results if seconds in one]


def _median(values: Sequence[float], form: str) -> str:
    return f"{median(values):{form}}" if values else ""


def costs_of(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[float]]:
    """CPU us of the contender's own for each labelled example, round by round."""
    return {name: [each / 1e-6 for each in _each(results, "cpu_seconds")] for name, results in found.items()}


def rates_of(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[float]]:
    """Labelled examples a second, round by round."""
    return {name: [one["labelled"] / one["seconds"] for one in results] for name, results in found.items()}


def ratios(mine: Sequence[float], others: Sequence[float]) -> list[float]:
    """Of each round."""
    return [one / other for one, other in zip(mine, others, strict=True)]


def against(found: dict[str, list[dict[str, Any]]], ours: str, goals: dict[str, float]) -> str:
    """Markdown: each ratio that has a goal, beside it."""
    lines = [f"| {ours}, times as fast as | median | spread | goal, at least |", "|---|---|---|---|"]
    rates = rates_of(found)
    for name, goal in goals.items():
        if name in rates and ours in rates:
            faster = ratios(rates[ours], rates[name])
            lines.append(
                f"| {name} | {median(faster):.2f} | {min(faster):.2f} to {max(faster):.2f} | {goal:g} |"
            )
    return "\n".join(lines)
