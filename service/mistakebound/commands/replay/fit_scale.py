"""`replay --fit-scale`: fit a scale on a file's examples, and write it as the settings take it."""

from collections.abc import Iterator

from mistakebound.commands.input_files import Form
from mistakebound.commands.labelled_files import read_labelled
from mistakebound.commands.output import print_message
from mistakebound.config.keys import render_toml, toml_key
from mistakebound.core.faults import BadRecord
from mistakebound.core.messages import features
from mistakebound.core.messages.features import Features
from mistakebound.core.messages.inputs import InputReader
from mistakebound.core.messages.schema import encode
from mistakebound.core.replay.recording import begin
from mistakebound.core.replay.scaling import fitted
from mistakebound.settings import FeatureSettings, Settings


def fit_scale(form: Form, content: bytes, settings: Settings) -> str:
    """`[features.scale]` as TOML."""
    scale = fitted(_examples(form, content, settings))
    lines = [f"{toml_key(name)} = {render_toml(pair)}\n" for name, pair in scale.items()]
    return "".join(["[features.scale]\n", *lines])


def _examples(form: Form, content: bytes, settings: Settings) -> Iterator[Features]:
    """Features before scaling, without BIAS. What cannot be read is left out, and counted on stderr."""
    decode = features.reader(FeatureSettings(bias=False, missing=settings.features.missing))
    unread = 0
    for raw in _raw_features(form, content, settings):
        try:
            yield decode(raw)
        except BadRecord:
            unread += 1
    if unread:
        print_message(f"{unread} examples could not be read and are left out")


def _raw_features(form: Form, content: bytes, settings: Settings) -> Iterator[bytes]:
    """Each example's features as JSON text; empty where an example of a recording cannot be read."""
    if form != "recording":
        yield from (encode(row.features) for row in read_labelled(form, content))
        return
    _, records = begin(content.splitlines(keepends=True))
    reader = InputReader(settings.messages, settings.labels)
    for record in records:
        if record.topic == "examples":
            try:
                yield reader.example(record)[1]
            except BadRecord:
                yield b""
