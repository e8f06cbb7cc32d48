"""`learners`: every learner by name: its source, the settings it reads, its bound, and who may share it."""

from typing import TYPE_CHECKING, Annotated

from typer import Option

from mistakebound.commands.options import Json

if TYPE_CHECKING:
    from mistakebound.commands.json_forms import ConceptClass, LearnerShown
    from mistakebound.core.learners import Kind


def learners(
    concepts: Annotated[
        bool, Option("--concepts", help="List the concept classes that learner.concepts can name.")
    ] = False,
    markdown: Annotated[bool, Option("--markdown", help="Print the table of learners as Markdown.")] = False,
    json: Json = False,
) -> None:
    """List the learners: source, settings, bound, and whether partitions and workers may share one.

    Bounds are for zero delay and one worker: U updates, M mistakes on published predictions, R the longest
    example updated on, gamma the margin of a separator of length 1, n features, |C| concepts.
    """
    from mistakebound.commands.output import print_form, render_table
    from mistakebound.core.learners import KINDS

    if concepts:
        found = concept_classes()
        if json:
            print_form(found)
        else:
            rows = [(one.name, ", ".join(one.learners), one.meaning) for one in found]
            print(render_table(("learner.concepts", "learners", "meaning"), *rows))
    elif json:
        print_form([_described(name, kind) for name, kind in KINDS.items()])
    elif markdown:
        print(as_markdown(), end="")
    else:
        print("\n\n".join(_as_text(name, kind) for name, kind in KINDS.items()))


def concept_classes() -> "list[ConceptClass]":
    """Each name that `learner.concepts` takes, the learners that take it, and what it means."""
    from mistakebound.commands.json_forms import ConceptClass
    from mistakebound.core.learners import KINDS
    from mistakebound.core.learners.concepts import NAMES
    from mistakebound.core.learners.elimination import CLASSES

    meanings = NAMES | {
        "monotone-disjunctions": "disjunctions of variables, by De Morgan",
        "disjunctions": "disjunctions of literals, by De Morgan",
    }
    takers = {
        name: CLASSES if kind.concepts_left is None else NAMES
        for name, kind in KINDS.items()
        if "concepts" in kind.parameters
    }
    return [
        ConceptClass(name, [one for one, known in takers.items() if name in known], meaning)
        for name, meaning in meanings.items()
    ]


def _described(name: str, kind: "Kind") -> "LearnerShown":
    from mistakebound.commands.json_forms import LearnerShown

    return LearnerShown(
        kind=name,
        source=kind.source,
        parameters=list(kind.parameters),
        needs=list(kind.needs),
        bound=kind.bound,
        bounds=kind.bounds,
        shared=kind.shared,
        features=_features(kind),
        classes="two" if kind.many is None else "two or more",
        issued=kind.no_issued is None,
    )


def _features(kind: "Kind") -> str:
    if kind.boolean:
        return "0 or 1, features.bias = false"
    return 'any, features.normalize = "unit"' if kind.unit else "any"


def _as_text(name: str, kind: "Kind") -> str:
    needed = [f"{key} (required)" if key in kind.needs else key for key in kind.parameters]
    rows = {
        "source": kind.source,
        "parameters": ", ".join(needed),
        "bound": f"{kind.bound}, on {kind.bounds}",
        "shared by": kind.shared,
        "features": _features(kind),
        "classes": "two" if kind.many is None else "two or more",
        "policies": "rescore, issued" if kind.no_issued is None else "rescore",
    }
    return "\n".join([name, *(f"  {head:<10}  {value}" for head, value in rows.items())])


def as_markdown() -> str:
    """The table of deploy/learners.md: a row for each learner."""
    from mistakebound.core.learners import KINDS

    lines = [
        "| `learner.kind` | source | reads of `learner` (**required**) | bound | it bounds | shared by | features |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, kind in KINDS.items():
        reads = ", ".join(f"**`{key}`**" if key in kind.needs else f"`{key}`" for key in kind.parameters)
        cells = (f"`{name}`", kind.source, reads, kind.bound, kind.bounds, kind.shared, _features(kind))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
