"""The command: `python -m tests.gates.mutations`."""

import argparse
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from tests.gates import mutations
from tests.gates.mutations.guards import GUARDS
from tests.gates.mutations.learners import MUTATIONS, tests_of
from tests.gates.mutations.mutation import Guard, Mutation, Selected
from tests.gates.mutations.trial import broken, copy_to, first_failure

QUICK = ("-m", "not kafka")
WIDTH = 68


def main() -> int:
    """Run the mutations asked for; 1 where one survived."""
    parser = argparse.ArgumentParser(
        description=mutations.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = ("guards", *MUTATIONS)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(kinds)}; default all")
    parser.add_argument("--seed", type=int, help="decides the order of the guards; default a fresh one")
    parser.add_argument("--most", type=int, help="so many guards at most, the first ones in that order")
    parser.add_argument("--match", default="", metavar="TEXT", help="only guards whose name holds this")
    parser.add_argument("--table", type=Path, help="also write the table there")
    asked = parser.parse_args()
    unknown = sorted(set(asked.kinds) - set(kinds))
    if unknown:
        parser.error(f"{', '.join(unknown)}: no such kind")
    if not any(asked.match in guard.what for guard in GUARDS):
        parser.error(f"no guard's name holds {asked.match!r}")
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    lines: list[str] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        copy_to(copy)
        for kind in asked.kinds or kinds:
            of_guards = kind == "guards"
            if of_guards:
                print(f"guards, in the order of seed {seed}")
            for line in (
                _guards(copy, _chosen(seed, asked.match, asked.most)) if of_guards else _kind(copy, kind)
            ):
                lines.append(line)
                print(line, flush=True)
    survivors = [line for line in lines if "SURVIVED" in line]
    lines.append(f"{len(lines) - len(survivors)} of {len(lines)} mutations were noticed.")
    print(f"{lines[-1]} ({time.monotonic() - began:.0f} s)", *survivors, sep="\n")
    if asked.table is not None:
        asked.table.write_text("\n".join(lines) + "\n")
    return 1 if survivors else 0


def _chosen(seed: int, text: str, most: int | None) -> Sequence[Guard]:
    chosen = [guard for guard in GUARDS if text in guard.what]
    Random(seed).shuffle(chosen)
    return chosen[:most]


def _guards(copy: Path, chosen: Sequence[Guard]) -> Iterator[str]:
    tests = [Selected(test) for test in dict.fromkeys(guard.test for guard in chosen)]
    by = first_failure(copy, tests, *QUICK)
    if by:
        yield f"{'(no mutation)':{WIDTH}} fails already: {by}: SURVIVED"
        return
    for guard in chosen:
        verdict = _verdict(copy, guard.mutation, [Selected(guard.test)], *QUICK)
        yield f"{guard.what:{WIDTH}} {verdict}"


def _kind(copy: Path, kind: str) -> Iterator[str]:
    by = first_failure(copy, tests_of(kind), "--long")
    if by:
        yield f"{kind:28} {'(no mutation)':36} fails already: {by}: SURVIVED"
        return
    for one in MUTATIONS[kind]:
        yield f"{kind:28} {one.what:36} {_verdict(copy, one, tests_of(kind), '--long')}"


def _verdict(copy: Path, one: Mutation, tests: Sequence[Selected], *options: str) -> str:
    began = time.monotonic()
    try:
        with broken(copy, one):
            by = first_failure(copy, tests, *options)
    except ValueError as error:
        return f"SURVIVED: {error}"
    return f"{by or 'SURVIVED'} ({time.monotonic() - began:.0f} s)"


if __name__ == "__main__":
    import confluent_kafka  # noqa: F401 - loaded once, for all children
    import numpy as np  # noqa: F401
    import pytest  # noqa: F401
    import river.datasets  # noqa: F401
    import scipy.optimize  # noqa: F401
    import sklearn.linear_model  # noqa: F401

    sys.exit(main())
