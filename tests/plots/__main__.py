"""`python -m tests.plots winnow [FILE]`: run the experiment, write the plot, print its figures."""

import sys
from pathlib import Path

from tests.plots import winnow
from tests.support.project import ROOT

DEFAULT = ROOT / "deploy" / "winnow.svg"


def main(arguments: list[str]) -> int:
    """The exit code."""
    if arguments[:1] != ["winnow"] or len(arguments) > 2:
        print(__doc__, file=sys.stderr)
        return 2
    path = Path(arguments[1]) if len(arguments) == 2 else DEFAULT
    found = winnow.experiment(winnow.SIZES)
    path.write_text(winnow.svg(found))
    print(winnow.table(found))
    print(winnow.table_of_active(winnow.by_active()))
    return 0


sys.exit(main(sys.argv[1:]))
