"""One row for each workload: ours beside the limit, on features, tokens, hashed names, mistakes and classes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from tests.benchmarks.throughput import LIMIT, OURS, interleaved, rates_of, ratios, suited
from tests.benchmarks.workload import Workload, waiting_bytes

HASH_BITS = 18
MOST_FEATURES = 4_000_000
"""Of a whole stream: with many features an example, fewer examples are sent."""


def workloads(plain: Workload) -> dict[str, Workload]:
    """By name. Shares of mistakes are those that a perceptron makes, as measured."""
    tokens = replace(plain, sparse=True)
    return {
        "10 named": plain,
        "3 named": replace(plain, features=3),
        "100 tokens": replace(tokens, features=100),
        "1,000 tokens": replace(tokens, features=1_000),
        "10 named, hashed": replace(plain, hash_bits=HASH_BITS),
        "100 tokens, hashed": replace(tokens, features=100, hash_bits=HASH_BITS),
        "10 named, about 1 % mistakes": replace(plain, noise=0.0, margin=2.0),
        "10 named, about 10 % mistakes": replace(plain, noise=0.02),
        "10 named, about 40 % mistakes": replace(plain, noise=0.23),
        "10 named, 10 classes": replace(plain, classes=10),
    }


def table(bootstrap: str, plain: Workload, rounds: int, report: Callable[[str], None]) -> str:
    """Markdown. `report` gets each row as soon as it is measured."""
    lines = [
        "| workload | examples | bytes each | mistakes | ours, labelled examples/s | spread "
        "| limit | ours / limit | spread | ours, CPU us/example |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, given in workloads(plain).items():
        work = replace(given, records=min(given.records, MOST_FEATURES // given.features))
        lines.append(_row(name, bootstrap, work, rounds))
        report(lines[-1])
    return "\n".join(lines)


def _row(name: str, bootstrap: str, work: Workload, rounds: int) -> str:
    chosen = [each for one in (LIMIT, OURS) if (each := suited(one, work)) is not None]
    found = interleaved(chosen, bootstrap, work, rounds)
    rates = rates_of(found)
    ours, limit = rates[OURS.name], rates[LIMIT.name]
    results = found[OURS.name]
    mistakes = median(one["mistakes"] / one["labelled"] for one in results)
    cost = median(one["cpu_seconds"] / one["labelled"] * 1e6 for one in results)
    return (
        f"| {name} | {work.records:,} | {waiting_bytes(work):,} | {mistakes:.1%} | {median(ours):,.0f} "
        f"| {_spread(ours, ',.0f')} | {median(limit):,.0f} | {median(ratios(ours, limit)):.2f} "
        f"| {_spread(ratios(ours, limit), '.2f')} | {cost:.1f} |"
    )


def _spread(values: Sequence[float], form: str) -> str:
    return f"{min(values):{form}} to {max(values):{form}}"
