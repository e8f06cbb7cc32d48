"""The command `mistakebound`, also `python -m mistakebound`."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - told plainly to whoever runs the sources with an older one
    found = ".".join(map(str, sys.version_info[:3]))
    sys.stderr.write(f"mistakebound needs Python 3.11 or newer, and {sys.executable} is {found}\n")
    sys.exit(2)

from mistakebound.worker import early_stop

WORKERS = ("run", "demo")
"""Verbs that end well when they are told to stop."""


def main() -> None:
    """Run the command line; ends the process with an exit code of `mistakebound.exit_codes`."""
    works = sys.argv[1:2] != [] and sys.argv[1] in WORKERS
    if works:
        early_stop.install()
    else:
        early_stop.end_on_interrupt()
    try:
        from mistakebound.commands.app import app  # takes its time

        if not works:
            early_stop.hear_interrupts()
        app(prog_name="mistakebound")
    finally:
        if works:
            early_stop.ignore()


if __name__ == "__main__":
    main()
