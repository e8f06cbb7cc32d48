"""What is written by random histories of every learner, as digests: `python -m tests.compiled.written` prints them.

The same lines are printed wherever the same bits are written.
"""

from hashlib import sha256
from random import Random

from structlog.testing import capture_logs

from tests.core.support.every_kind import CASES
from tests.core.support.histories import History

HISTORIES = 12
"""Of each learner in each form."""


def main() -> None:
    """A line for each learner in each form: name, records written, digest of them and of the positions."""
    for name, case in CASES.items():
        digest, count = sha256(), 0
        for seed in range(HISTORIES):
            history = History(Random(seed), case)
            with capture_logs():
                history.run()
            for records in history.log.records.values():
                count += len(records)
                digest.update(repr(records).encode())
            digest.update(repr(sorted(history.log.positions.items())).encode())
        print(f"{name}: {count} records, {digest.hexdigest()}")


main()
