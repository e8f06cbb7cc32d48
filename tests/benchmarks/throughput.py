"""Labelled examples a second of every contender, interleaved on one broker: medians, spreads, ratios."""

import json
import subprocess
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from service.commands.topic_rules import wanted_config
from service.core.records import Outgoing
from service.log import open_log
from service.settings import LogSettings, Settings
from tests.benchmarks.environments import python
from tests.benchmarks.workload import Workload, span_ms, stream

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300


@dataclass(frozen=True, slots=True)
class Contender:
    """A program of `contenders`, with options of its own."""

    name: str
    program: str
    options: dict[str, Any]


CONTENDERS = (
    Contender("the limit: transactional pass-through", "limit", {}),
    Contender("mistakebound, perceptron", "ours", {}),
    Contender("mistakebound, averaged perceptron", "ours", {"learner": {"kind": "averaged-perceptron"}}),
    Contender("users' loop, at least once", "users_loop", {}),
    Contender("Quix Streams + River, exactly once", "quix", {"guarantee": "exactly-once"}),
    Contender("Quix Streams + River, at least once", "quix", {"guarantee": "at-least-once"}),
)


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
            "options": {**contender.options, "folder": folder},
        }
        program = f"tests.benchmarks.contenders.{contender.program}"
        done = subprocess.run(
            [python(contender.program), "-m", program, json.dumps(task)],
            check=False,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    if done.returncode != 0:
        raise RuntimeError(
            f"{contender.name} ended with {done.returncode}:\n{done.stdout}\n{done.stderr[-4_000:]}"
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if result["labelled"] != work.records:
        raise RuntimeError(f"{contender.name} labelled {result['labelled']} of {work.records}")
    return result


def interleaved(
    contenders: Sequence[Contender], bootstrap: str, work: Workload, rounds: int
) -> dict[str, list[dict[str, Any]]]:
    """Every contender once a round, each round in another order."""
    inputs = send(bootstrap, work, f"in-{uuid.uuid4().hex[:8]}.")
    found: dict[str, list[dict[str, Any]]] = {each.name: [] for each in contenders}
    for number in range(rounds):
        turn = number % len(contenders)
        for each in (*contenders[turn:], *contenders[:turn]):
            result = run(each, bootstrap, work, inputs)
            found[each.name].append(result)
            rate = result["labelled"] / result["seconds"]
            cpu = result["cpu_seconds"] / result["labelled"] * 1e6
            print(
                f"  round {number + 1} {each.name}: {rate:,.0f}/s, {cpu:.1f} us CPU {_more(result)}",
                flush=True,
            )
    return found


def _more(result: dict[str, Any]) -> str:
    return " ".join(f"{name} {result[name]}" for name in ("mistakes", "updates") if name in result)


def table(found: dict[str, list[dict[str, Any]]], ours: str) -> str:
    """Markdown: medians, spreads, and how many times as fast ours is, round by round."""
    lines = [
        "| | labelled examples/s | spread | ours is, times as fast | spread | CPU us/example | ours takes, times less |",
        "|---|---|---|---|---|---|---|",
    ]
    rates = {name: [one["labelled"] / one["seconds"] for one in results] for name, results in found.items()}
    costs = {
        name: [one["cpu_seconds"] / one["labelled"] * 1e6 for one in results]
        for name, results in found.items()
    }
    for name, rate in rates.items():
        faster = [mine / other for mine, other in zip(rates.get(ours, rate), rate, strict=True)]
        less = [other / mine for mine, other in zip(costs.get(ours, costs[name]), costs[name], strict=True)]
        lines.append(
            f"| {name} | {median(rate):,.0f} | {min(rate):,.0f} to {max(rate):,.0f} | {median(faster):.2f} | "
            f"{min(faster):.2f} to {max(faster):.2f} | {median(costs[name]):.1f} | {median(less):.2f} |"
        )
    return "\n".join(lines)
