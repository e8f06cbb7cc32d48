"""`replay --fit-scale`: fit a scale on a file's examples, and write it as the settings take it."""

from collections.abc import Callable, Iterator
from functools import partial

from mistakebound.commands.data_files import Data
from mistakebound.commands.errors import CommandError
from mistakebound.commands.output import print_message
from mistakebound.commands.recordings import RecordingFile
from mistakebound.commands.render_report import render_rejected
from mistakebound.commands.unusable import reasons_against
from mistakebound.config.keys import render_toml, toml_key
from mistakebound.core.faults import BadRecord
from mistakebound.core.messages import features
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import InputReader
from mistakebound.core.messages.schema import encode
from mistakebound.core.records import Record
from mistakebound.core.replay.rejections import Rejections
from mistakebound.core.replay.scaling import fitted
from mistakebound.core.reporting.report import Place
from mistakebound.exit_codes import ExitCode
from mistakebound.settings import FeatureSettings, Settings


def print_scale(data: Data, settings: Settings, max_invalid: int | None) -> None:
    """Print `[features.scale]` as TOML. Raises CommandError where no example can be read, or too few."""
    examples = _Examples(data, settings)
    print("[features.scale]")
    for name, pair in fitted(examples).items():
        print(f"{toml_key(name)} = {render_toml(pair)}")
    rejected = examples.rejections.found()
    for one in rejected:
        print_message(f"left out: {render_rejected(one)}")
    count = examples.read + sum(one.count for one in rejected)
    nothing = "no example could be read, so nothing was fitted"
    recording = isinstance(data, RecordingFile)
    counted = count, examples.read, rejected
    if refused := list(reasons_against(*counted, max_invalid, recording=recording, nothing=nothing)):
        raise CommandError("\n".join(refused), ExitCode.CHECK_FAILED)


class _Examples:
    """Features before scaling, without BIAS, of all examples that can be read; read anew each time."""

    def __init__(self, data: Data, settings: Settings) -> None:
        self._data, self._settings = data, settings
        self._decode = features.reader(
            FeatureSettings(
                bias=False,
                missing=settings.features.missing,
                include=settings.features.include,
                exclude=settings.features.exclude,
            )
        )
        self.read, self.rejections = 0, Rejections()
        """Of the last reading."""

    def __iter__(self) -> Iterator[Features]:
        self.read, self.rejections = 0, Rejections()
        for place, raw in self._raw():
            try:
                x = self._decode(raw())
            except BadRecord as fault:
                self.rejections.count("examples", fault.reason, place, fault.detail)
                continue
            self.read += 1
            yield x

    def _raw(self) -> Iterator[tuple[Place, Callable[[], bytes]]]:
        """Each example's place, and what gives its features as JSON text; that may raise BadRecord."""
        if not isinstance(self._data, RecordingFile):
            for row in self._data:
                yield Place(row.line), partial(encode, row.features)
            return
        reader = InputReader(self._settings.messages, self._settings.labels, self._settings.features)
        for record in self._data.begin()[1]:
            if record.topic == "examples":
                place = Place(partition=record.partition, offset=record.offset)
                yield place, partial(_features_of, reader, record)


def _features_of(reader: InputReader, record: Record) -> bytes:
    return reader.example(record)[1]
