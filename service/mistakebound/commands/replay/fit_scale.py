"""`replay --fit-scale`: fit a scale on a file's examples, and write it as the settings take it."""

from collections.abc import Iterator

from mistakebound.commands.data_files import Data
from mistakebound.commands.output import print_message
from mistakebound.commands.recordings import RecordingFile
from mistakebound.config.keys import render_toml, toml_key
from mistakebound.core.faults import BadRecord
from mistakebound.core.messages import features
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import InputReader
from mistakebound.core.messages.schema import encode
from mistakebound.core.replay.scaling import fitted
from mistakebound.settings import FeatureSettings, Settings


def fit_scale(data: Data, settings: Settings) -> str:
    """`[features.scale]` as TOML. What cannot be read is left out, and counted on stderr."""
    examples = _Examples(data, settings)
    lines = [f"{toml_key(name)} = {render_toml(pair)}\n" for name, pair in fitted(examples).items()]
    if examples.unread:
        print_message(f"{examples.unread} examples could not be read and are left out")
    return "".join(["[features.scale]\n", *lines])


class _Examples:
    """Features before scaling, without BIAS, of all examples that can be read; read anew each time."""

    def __init__(self, data: Data, settings: Settings) -> None:
        self._data, self._settings = data, settings
        self.unread = 0
        """Of the last reading."""

    def __iter__(self) -> Iterator[Features]:
        decode = features.reader(FeatureSettings(bias=False, missing=self._settings.features.missing))
        self.unread = 0
        for raw in _raw_features(self._data, self._settings):
            try:
                yield decode(raw)
            except BadRecord:
                self.unread += 1


def _raw_features(data: Data, settings: Settings) -> Iterator[bytes]:
    """Each example's features as JSON text; empty where an example of a recording cannot be read."""
    if not isinstance(data, RecordingFile):
        yield from (encode(row.features) for row in data)
        return
    reader = InputReader(settings.messages, settings.labels)
    for record in data.begin()[1]:
        if record.topic == "examples":
            try:
                yield reader.example(record)[1]
            except BadRecord:
                yield b""
