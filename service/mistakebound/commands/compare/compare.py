"""`compare`: which of two streams of predictions on the same ids is better, and on what evidence."""

from typing import TYPE_CHECKING, Annotated

from typer import Argument

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Config, Json, LogUrl, Sets, read_log_settings

if TYPE_CHECKING:
    from pathlib import Path

    from mistakebound.commands.compare.sides import OpenSide
    from mistakebound.core.messages.costs import Costs


def compare(
    first: Annotated[
        str,
        Argument(
            metavar="A", help="A prefix on the log ('' for none), a recording, or what replay --judged wrote."
        ),
    ],
    second: Annotated[str, Argument(metavar="B", help="Likewise.")],
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
    json: Json = False,
) -> None:
    """Pair the predictions of A and B by id, and say which made fewer mistakes and whether that can be chance.

    Needs no worker and writes nothing. Evidence of 20 or more is reached by equally good streams with a probability
    of at most 1/20, however often one looks.
    """
    from contextlib import ExitStack

    from mistakebound.commands.compare.promotion import promotion
    from mistakebound.commands.compare.render import render_comparison
    from mistakebound.commands.compare.sides import must_differ, open_side
    from mistakebound.commands.output import print_json
    from mistakebound.core.comparison import comparison
    from mistakebound.exit_codes import ExitCode

    settings = read_log_settings(config, sets, log)
    must_differ(first, second)
    with ExitStack() as held:
        one = held.enter_context(open_side(first, settings, second))
        two = held.enter_context(open_side(second, settings, first))
        learners = one.learner, two.learner
        try:
            costs = _costs(one, config, sets, log) or _costs(two, config, sets, log)
            found = comparison.compare((first, second), learners, one.judged, two.judged, costs)
        except comparison.NotComparable as error:
            raise CommandError(str(error), ExitCode.CHECK_FAILED) from None
    found = promotion(found, one, two, settings)
    if json:
        print_json(found.as_dict())
    else:
        print(render_comparison(found))


def _costs(
    side: "OpenSide", config: "Path | None", sets: list[str] | None, log: str | None
) -> "Costs | None":
    """What mistakes cost: as it is set now, else as the side's epoch fixed it. Raises ConfigurationError."""
    import os

    from mistakebound.config.load import load_in_epoch
    from mistakebound.core.messages.costs import costs_of

    labels = {} if side.settings is None else side.settings.get("labels", {})
    found = load_in_epoch(config, sets or (), log, os.environ, 0, {"labels": labels})
    return costs_of(found.settings.labels)
