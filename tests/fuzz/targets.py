"""What a peer can send, with one target for each way in. A target gets a random generator and tries one thing.

It raises nothing where the service did as it promises: went on, or ended with an error that is named for
it. Whatever else happens is a find.
"""

import contextlib
import http.client
import io
import json
import socket
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from structlog.testing import capture_logs
from typer.testing import CliRunner

from mistakebound.commands.app import app
from mistakebound.config.load import load
from mistakebound.config.problems import ConfigurationError
from mistakebound.core.checkpoint_content import check_belongs, decode_checkpoint, describe_checkpoint
from mistakebound.core.faults import REASONS, BadLog, BadSnapshot
from mistakebound.core.messages.schema import encode, read_outcomes, read_prediction, read_update
from mistakebound.core.records import Headers, Outgoing, Record, Topic
from mistakebound.core.replay import recording
from mistakebound.core.step.step import step
from mistakebound.log import open_log
from mistakebound.log.protocol import LogError
from mistakebound.settings import OF_EPOCH, Settings
from mistakebound.worker.checkpoints import envelope
from mistakebound.worker.checkpoints.envelope import InvalidCheckpointError
from mistakebound.worker.checkpoints.restore import _choose, _version
from mistakebound.worker.health import HealthLimits, Heartbeat
from mistakebound.worker.http import server as served
from mistakebound.worker.metrics.metrics import Metrics
from tests.core.support.audited import of_history
from tests.core.support.every_kind import CASES
from tests.core.support.feeding import Feeder
from tests.core.support.histories import History
from tests.fuzz.mutation import mutated, mutated_msgpack
from tests.worker.support.working import Run, stream

MOST_BYTES = 1_000_000
READERS: dict[Topic, Callable[[Record], Any]] = {
    "predictions": read_prediction,
    "outcomes": read_outcomes,
    "updates": read_update,
}


# --- examples and labels ------------------------------------------------------------------------------


def inputs(random: Random) -> None:
    """Records that anybody may write: each ends in one outcome, and the next good one is served as ever."""
    case = random.choice(list(CASES.values()))
    sections = case.settings.model_dump(include=set(OF_EPOCH))
    sections["labels"] |= {"max_delay": 10, "max_waiting": random.choice((2, 1000)), "remember": 5}
    if random.random() < 0.3:
        sections["messages"] = {"id": "/meta/id", "features": "/rows/0", "label": "/rows/1/0"}
    feeder = Feeder(**sections)
    records = []
    for number in range(random.randrange(1, 12)):
        topic: Topic = random.choice(("examples", "labels"))
        value = _message(random, case, topic, f"i{random.randrange(4)}", "messages" in sections)
        good = random.random() < 0.3
        at = number if good else random.choice((number, number, -1, 0, 2**62, random.randrange(100_000)))
        records.append(
            feeder.record(
                topic,
                at,
                value if good else _anything(random, value),
                key=random.choice((None, b"i1", b"", b"\xff", _anything(random, b"i2"))),
                headers=_headers(random),
            )
        )
    fed = feeder.feed(*records, max_records=random.choice((1, 3, 1000)))
    # The stream goes on: stream time may have leapt, ids be taken, memory be full.
    last = feeder.record(
        "examples", 2**62, _message(random, case, "examples", "fresh", "messages" in sections)
    )
    then = feeder.feed(last)
    assert any(one["id"] == "fresh" for one in then.predictions) or then.dead_letters, "nothing became of it"
    feeder.balance()
    for one in (fed, then):
        for output in one.outputs:
            size = len(output.value or b"") + len(output.key or b"")
            assert size <= MOST_BYTES, f"a record of {size} bytes for {output.topic}"
            if output.topic in READERS:
                READERS[output.topic](Record(output.topic, 0, 0, 0, output.key, output.value))
        for letter in one.dead_letters:
            reason = dict(letter.headers)["mistakebound.reason"]
            assert (reason or b"").decode() in REASONS


def _message(random: Random, case: Any, topic: Topic, name: str, pointed: bool) -> bytes:
    features, label = case.features(random), random.choice(case.labels)
    if pointed:
        return encode({"meta": {"id": name}, "rows": [features, [label]], **case.whose(random)})
    if topic == "examples":
        return encode({"id": name, "features": features, **case.whose(random)})
    message = {"id": name, "label": label, **case.whose(random)}
    if random.random() < 0.2:  # it brings the example along, in case that came too early
        message |= {"features": features, "prediction": random.choice(case.labels)}
    return encode(message)


def _anything(random: Random, good: bytes) -> bytes | None:
    return None if random.random() < 0.03 else mutated(random, good)


def _headers(random: Random) -> Headers:
    names = ("trace", "", "é", "mistakebound.reason", "x" * 300)
    values = (None, b"", b"\xff", b"x" * 3_000, random.randbytes(9))
    return tuple((random.choice(names), random.choice(values)) for _ in range(random.choice((0, 0, 1, 40))))


# --- the worker's own topics, positions and checkpoints -----------------------------------------------


@cache
def _history(number: int) -> History:
    """A past with its log, its positions and its checkpoints; the same every time."""
    history = History(Random(number))
    with capture_logs():
        history.run()
    return history


def _past(random: Random) -> History:
    return _history(random.randrange(60))


def own_records(random: Random) -> None:
    """A record in the worker's own topics that it never wrote: it stops and says so, or goes on."""
    history = _past(random)
    topic_partitions = [
        topic_partition
        for topic_partition, records in history.log.records.items()
        if records and topic_partition[0] in READERS
    ]
    topic, partition = random.choice(topic_partitions)
    records = history.log.records[topic, partition]
    place = random.randrange(len(records))
    kept = list(records)
    value = None if random.random() < 0.02 else mutated(random, kept[place].value or b"")
    records[place] = kept[place]._replace(value=value)
    try:
        with contextlib.suppress(BadLog):
            READERS[topic](records[place])
        _started_again(history, random)
    finally:
        history.log.records[topic, partition] = kept


def positions(random: Random) -> None:
    """The metadata of the committed offsets, and the offsets, as somebody else may have set them."""
    history = _past(random)
    kept = dict(history.log.positions)
    if not kept:
        return
    partition = random.choice(list(kept))
    metadata = mutated(random, kept[partition].metadata.encode()).decode("utf-8", "surrogateescape")
    position = kept[partition]._replace(metadata=metadata)
    if random.random() < 0.2:
        position = position._replace(examples=random.choice((0, 1, 2**40)), labels=random.choice((0, 2**40)))
    history.log.positions[partition] = position
    try:
        _started_again(history, random)
    finally:
        history.log.positions = kept


def checkpoints(random: Random) -> None:
    """A checkpoint's content with a checksum that is right: refused by name, or it fits after all."""
    history = _past(random)
    if not history.checkpoints:
        return
    good = random.choice(history.checkpoints)
    try:
        checkpoint = decode_checkpoint(mutated_msgpack(random, good))
        check_belongs(checkpoint, history.settings.group, {}, history.partitions)
        describe_checkpoint(checkpoint)
        with capture_logs():
            history._take_over(checkpoint=checkpoint)
    except (BadSnapshot, BadLog, LogError):
        pass


def checkpoint_files(random: Random) -> None:
    """A checkpoint's bytes as they lie in a store that others may write to."""
    whole = envelope.head(b"payload", {"epoch": 1, "updates": [3, 4], "ledgers": {"0": [7, 8]}}) + b"payload"
    magic, header, payload = whole.split(b"\n", 2)
    if random.random() < 0.7:
        content = b"\n".join((magic, mutated(random, header), payload))
    else:
        content = mutated(random, whole)
    with contextlib.suppress(InvalidCheckpointError):
        assert envelope.parse(content) == payload, "a checksum that is right for other bytes"
    with contextlib.suppress(InvalidCheckpointError):
        from mistakebound.worker.checkpoints.catalog import Head
        from mistakebound.worker.ledgers import Start

        head = Head("name", False, envelope.summary_of(content))
        _version(head)
        _choose(iter([head]), {0: Start(0, 0), 1: Start(0, 0)})


def _started_again(history: History, random: Random) -> None:
    """Take over and work a step; an end must be named."""
    with contextlib.suppress(BadLog, LogError), capture_logs():
        held = history._take_over(forgotten=random.random() < 0.2)
        merge, drained = history._buffered(held.state, None)
        for record in [r for topic_partition in history.inputs.values() for r in topic_partition[:3]]:
            merge.add([record._replace(offset=record.offset + 10_000)])
        result = step(held.state, merge, drained | set(history.inputs), 1_000)
        if result is not None:
            held.state.rollback(result.partitions)


def audits(random: Random) -> None:
    """A log of which one record was altered, and a checkpoint of it: findings, or an end with a name."""
    history = _past(random)
    lists = of_history(history)
    topic, partition = random.choice(
        [topic_partition for topic_partition, records in lists.records.items() if records]
    )
    records = lists.records[topic, partition]
    place = random.randrange(len(records))
    altered = records[place]._replace(value=_anything(random, records[place].value or b""))
    if random.random() < 0.3:
        altered = altered._replace(headers=_headers(random), key=_anything(random, b"i1"))
    records[place] = altered
    found = []
    if history.checkpoints and random.random() < 0.3:
        with contextlib.suppress(BadSnapshot):
            found.append(decode_checkpoint(mutated_msgpack(random, random.choice(history.checkpoints))))
    with contextlib.suppress(BadLog, BadSnapshot, LogError):
        lists.audit(*found)


COMMANDS = (
    ("status", "--model"),
    ("status", "--json"),
    ("audit",),
    ("tail", "predictions", "--from", "beginning", "--count", "3", "--json"),
    ("tail", "dead-letters", "--from", "beginning", "--count", "1"),
    ("record", "recording.jsonl"),
    ("topics", "check"),
    ("reset",),
)


@cache
def _template() -> bytes:
    """A log in a file, with a worker's work in it."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate(_on(Path(folder) / "log.db"))
        with open_log(settings) as log, capture_logs():
            log.create_topics(1, {})
            log.append(stream(20))
            Run(log, settings)
        return (Path(folder) / "log.db").read_bytes()


def _on(file: Path) -> dict[str, Any]:
    return {
        "log": {"url": f"sqlite:{file}"},
        "labels": {"max_delay": 1000},
        "learner": {"kind": "perceptron"},
        "checkpoint": {"url": ""},
    }


def commands(random: Random) -> None:
    """What reads a log in which somebody wrote what the worker never writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.db"
        file.write_bytes(_template())
        topic = random.choice(("predictions", "outcomes", "updates", "dead-letters", "labels", "examples"))
        with open_log(Settings.model_validate(_on(file))) as log:
            good = [record.value or b"" for record in log.read(topic, 0, 0)] or [b"{}"]  # type: ignore[arg-type]
            value = _anything(random, random.choice(good))
            log.append([Outgoing(topic, 0, b"k", value, _headers(random), random.choice((None, 0, 2**62)))])  # type: ignore[arg-type]
        options = [
            part for one in ("learner.kind=perceptron", "labels.max_delay=1000") for part in ("--set", one)
        ]
        verb = random.choice(COMMANDS)
        arguments = [str(Path(folder) / part) if part == "recording.jsonl" else part for part in verb]
        with capture_logs():
            told = CliRunner().invoke(app, [*arguments, "--log", f"sqlite:{file}", *options])
    assert told.exit_code in (0, 2, 3, 5), f"{verb} after {value!r} in {topic}: {told.output}"


# --- files ----------------------------------------------------------------------------------------------

RECORDING = b"".join(
    [
        recording.encode_header(2),
        *(
            recording.encode(Record(topic, number % 2, number, 1_000 + number, b"i%d" % number, value, (("h", None),)))
            for number in range(3)
            for topic, value in (
                ("examples", b'{"id":"i%d","features":{"a":1}}' % number),
                ("labels", b'{"id":"i%d","label":true}' % number),
            )
        ),
    ]
)  # fmt: skip
ROWS = {
    "recording": RECORDING,
    "jsonl": b'{"id":1,"features":{"a":1.5,"b":"x"},"label":true}\n{"features":[1,2],"label":false}\n',
    "csv": b"a,b,label\n1.5,x,1\n-2,y,0\n",
    "svmlight": b"+1 1:0.5 7:1 # note\n-1 2:1e3\n",
}


def recordings(random: Random) -> None:
    """A recording's lines, one after the other."""
    lines = RECORDING.splitlines(keepends=True)
    for _ in range(random.choice((1, 1, 3))):
        place = random.randrange(len(lines))
        lines[place] = mutated(random, lines[place])
    data = b"".join(lines)
    with contextlib.suppress(recording.RecordingError):
        for record in recording.decode(io.BytesIO(data)):
            recording.encode(record)


def replays(random: Random) -> None:
    """A file that somebody sent: replayed, or refused with exit code 2."""
    form = random.choice(list(ROWS))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        file.write_bytes(mutated(random, ROWS[form]))
        told = CliRunner().invoke(
            app, ["replay", str(file), "--from", form, "--report", str(Path(folder) / "r")]
        )
    assert told.exit_code in (0, 2, 3), told.output


TOML = b"""[log]
url = "kafka://h:9092"
prefix = "p."
[learner]
kind = "winnow"
eta = 0.1
variables = ["a", "b"]
[features]
scale = {a = [0.5, 2]}
[labels]
classes = ["x", "y"]
max_delay = "P7D"
[batch]
max_records = 3
[checkpoint]
url = "./c"
[http]
address = "127.0.0.1:9464"
tls_key = "k.pem"
[kafka]
ssl_cafile = "x.pem"
sasl_plain_password = "secret"
"""
ASSIGNMENTS = (
    "learner.eta=0.1", "labels.max_delay=P7D", "labels.classes=['a','b']", "kafka.fetch_max_bytes=1", "log.prefix=x",
    "http.address=[::1]:1", "features.scale={a=[0,1]}", "learner.variables=3", "kafka.sasl_plain_password_file=x",
)  # fmt: skip


def settings(random: Random) -> None:
    """A configuration file, flags and variables: used, or refused with every problem told."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mistakebound.toml"
        content = mutated(random, TOML) if random.random() < 0.5 else _document(random)
        file.write_bytes(content)
        texts = [mutated(random, item.encode()).decode("utf-8", "replace") for item in ASSIGNMENTS]
        sets = random.sample(texts, random.choice((0, 1, 3)))
        names = random.sample(texts, random.choice((0, 0, 2)))
        variables = [name.partition("=")[0].replace(".", "__").upper() for name in names]
        environment = {
            f"MISTAKEBOUND_{variable}": name.partition("=")[2].replace("\0", "")
            for variable, name in zip(variables, names, strict=True)
        }
        try:
            load(file, sets, None, environment)
        except ConfigurationError as error:
            assert "secret" not in str(error)


def _document(random: Random) -> bytes:
    """The same settings with other values, which TOML can hold."""
    lines = TOML.decode().splitlines()
    for _ in range(random.choice((1, 3))):
        place = random.randrange(len(lines))
        name, equals, _ = lines[place].partition(" = ")
        if equals:
            lines[place] = f"{name} = {json.dumps(_value(random))}"
    return "\n".join(lines).replace("null", "nan").encode("utf-8", "replace")


def _value(random: Random) -> Any:
    values: tuple[Any, ...] = (
        0, -1, 1, 2**63 - 1, 1e308, float("inf"), "", "x", "P1D", "-P1D", "P999999999999D", "1e400", "nan", True, [],
        [1, "a"], ["a", "a"], [True, 1], [[0, 1]], "kafka://", "kafka://:1,", "sqlite:", "s3://", "s3://b/../c",
        "file://x", "[::1]:99999", "::1:1", "h:١", "/a//b", "~", "x" * 70_000, "\0", "@/nowhere", "@.",
    )  # fmt: skip
    return random.choice(values)


# --- HTTP -----------------------------------------------------------------------------------------------

REQUESTS = (
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text;version=1.0.0;q=0.5\r\n\r\n",
    b"HEAD /healthz HTTP/1.0\r\n\r\n",
    b"GET /api/status?x=%00 HTTP/1.1\r\nHost: [::1]:9464\r\nContent-Length: 5\r\n\r\nbody!",
    b"POST /readyz HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n0\r\n\r\n",
    b"GET http://other.example//../metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n folded: x\r\nConnection: keep-alive\r\n\r\n",
    b"GET / HTTP/0.9\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
)


@contextlib.contextmanager
def listening() -> Iterator[served.Server]:
    """A server as a worker has it, with a page."""
    metrics = Metrics(["true", "false"], "perceptron", "digest")
    pages = {path: lambda: (b"page", "text/plain") for path in ("/", "/api/status")}
    with served.serve("127.0.0.1:0", metrics, lambda: Heartbeat().health(HealthLimits()), pages) as server:
        yield server


class Requests:
    """Bytes to an open port: an answer or an end, in time; and the next one is served as ever."""

    def __init__(self, server: served.Server) -> None:
        host, _, port = server.address.rpartition(":")
        self._place = (host, int(port))

    def __call__(self, random: Random) -> None:
        request = random.choice(REQUESTS)
        for _ in range(random.choice((0, 1, 1, 4))):
            request = mutated(random, request)
        with socket.create_connection(self._place, 10) as connection, contextlib.suppress(OSError):
            connection.sendall(request[: random.choice((len(request), len(request), 3))])
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
            assert len(answer) < MOST_BYTES
            if answer.startswith(b"HTTP/"):
                assert not answer.startswith((b"HTTP/1.1 500", b"HTTP/1.0 500")), answer[:200]
        if random.random() < 0.05:
            asking = http.client.HTTPConnection(*self._place, timeout=10)
            asking.request("GET", "/metrics")
            assert asking.getresponse().status == 200
            asking.close()


Target = Callable[[Random], None]
TARGETS: dict[str, Target] = {
    "inputs": inputs,
    "own-records": own_records,
    "positions": positions,
    "checkpoints": checkpoints,
    "checkpoint-files": checkpoint_files,
    "audits": audits,
    "commands": commands,
    "recordings": recordings,
    "replays": replays,
    "settings": settings,
}
"""All but HTTP, which needs a server."""
