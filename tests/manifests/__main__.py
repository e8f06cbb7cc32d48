"""`python -m tests.manifests`: write what is made from other files: the PrometheusRule, and most of the Helm chart."""

import sys

from tests.manifests.made import CHART, made
from tests.support.project import ROOT


def main(arguments: list[str]) -> int:
    """The exit code."""
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    for path, content in made().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        print(path.relative_to(ROOT))
    for path in (CHART / "files").iterdir():
        if path not in made():
            path.unlink()
    return 0


sys.exit(main(sys.argv[1:]))
