"""Which column of a file is what, as options say it."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from typer import Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.input_files import Form

LabelColumn = Annotated[
    str | None,
    Option("--label", metavar="COLUMN", help="CSV, JSON Lines: where the label is; default `label`."),
]
IdColumn = Annotated[
    str | None,
    Option(
        "--id",
        metavar="COLUMN",
        help="CSV, JSON Lines: where the id is; default `id`, else rows are numbered.",
    ),
]
FeatureColumns = Annotated[
    list[str] | None,
    Option(
        "--features",
        metavar="COLUMNS",
        help="CSV: only these columns, repeatable or with commas between. JSON Lines: where the features are.",
    ),
]
TenantColumn = Annotated[
    str | None,
    Option(
        "--tenant",
        metavar="COLUMN",
        help="CSV, JSON Lines: where the tenant is; default the last name of features.cross.",
    ),
]
IgnoredColumns = Annotated[
    list[str] | None,
    Option("--ignore", metavar="COLUMNS", help="CSV: not these columns; repeatable or with commas between."),
]
Delimiter = Annotated[
    str | None,
    Option(
        "--delimiter", metavar="CHAR", help="CSV: what is between cells, such as ';' or tab; default a comma."
    ),
]


@dataclass(frozen=True, slots=True)
class Columns:
    """What was asked for; None and () where nothing was."""

    label: str | None = None
    id: str | None = None
    features: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    delimiter: str | None = None
    tenant: str | None = None

    def must_fit(self, form: Form) -> None:
        """Raises CommandError for an option that means nothing for such a file."""
        means = {"csv": tuple(_OPTIONS), "jsonl": ("label", "id", "features", "tenant")}.get(form, ())
        if wrong := [_OPTIONS[name] for name in _OPTIONS if getattr(self, name) and name not in means]:
            raise CommandError(f"{', '.join(wrong)}: {_WHY_NOT[form]}; leave it out")
        if form == "jsonl" and len(self.features) > 1:
            raise CommandError("--features: JSON Lines have their features in one member; name that one")


_OPTIONS = {
    "label": "--label",
    "id": "--id",
    "features": "--features",
    "ignored": "--ignore",
    "delimiter": "--delimiter",
    "tenant": "--tenant",
}
_WHY_NOT: dict[Form, str] = {
    "csv": "",
    "jsonl": "JSON Lines have no columns",
    "svmlight": "an svmlight line begins with its label and has no columns",
    "recording": "a recording's messages are read as the settings under [messages] say",
}


def given_columns(
    label: str | None,
    record_id: str | None,
    features: Sequence[str] | None,
    ignored: Sequence[str] | None,
    delimiter: str | None,
    tenant: str | None,
) -> Columns:
    """What the options say. Raises CommandError."""
    return Columns(
        label,
        record_id,
        _names("--features", features),
        _names("--ignore", ignored),
        _delimiter(delimiter),
        tenant,
    )


def _names(option: str, given: Sequence[str] | None) -> tuple[str, ...]:
    """Names as a line of CSV has them: one with a comma in it is quoted; no text at all is the column without a name."""
    names: list[str] = []
    for text in given or ():
        try:
            names += next(csv.reader([text], strict=True), []) or [""]
        except csv.Error as error:
            raise CommandError(f"{option}: {text!r} is no list of columns: {error}") from None
    return tuple(names)


def _delimiter(given: str | None) -> str | None:
    found = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}.get(given or "", given)
    if found is not None and (len(found) != 1 or found in '"\r\n '):
        raise CommandError(f"--delimiter: {given!r} is no delimiter; write one character, or tab")
    return found
