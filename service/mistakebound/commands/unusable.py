"""When a file cannot be learned from: nothing in it was judged, or more of it was rejected than is allowed."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from typer import Option

if TYPE_CHECKING:
    from mistakebound.core.reporting.report import Rejected

MaxInvalid = Annotated[
    int | None,
    Option(
        "--max-invalid",
        min=0,
        metavar="N",
        help="Exit 3 where more records are rejected; default 0 for labelled data, no limit for a recording.",
    ),
]


def reasons_against(
    examples: int,
    used: int,
    rejected: "Sequence[Rejected]",
    most: int | None,
    *,
    recording: bool,
    nothing: str = "no label could be applied, so nothing was judged",
) -> Iterator[str]:
    """Why the result must not pass for one; nothing where it may. `used`: of the examples, how many came to
    something, and `nothing` is said if none did. `most`: rejected records allowed, if given.

    A live stream has dead letters, and its recording repeats them; whoever made a file of rows meant each of them.
    """
    from mistakebound.commands.output import number_of
    from mistakebound.commands.render_report import render_rejected

    count = sum(one.count for one in rejected)
    allowed = most if most is not None else count if recording else 0
    if used and count <= allowed:
        return
    if not used:
        why = "" if examples else ": there is no example"
        yield nothing + why
    else:
        were, them = ("was", "it") if count == 1 else ("were", "them")
        rejections = f"{number_of(count, 'record')} {were} rejected"
        yield f"{rejections}; correct {them}, or allow as many with --max-invalid {count}"
    if rejected:
        yield f"most often: {render_rejected(max(rejected, key=lambda one: one.count))}"
