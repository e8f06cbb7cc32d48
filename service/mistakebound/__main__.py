"""The command `mistakebound`, also `python -m mistakebound`."""

from mistakebound.commands.app import app


def main() -> None:
    """Run the command line; ends the process with an exit code of `mistakebound.exit_codes`."""
    app(prog_name="mistakebound")


if __name__ == "__main__":
    main()
