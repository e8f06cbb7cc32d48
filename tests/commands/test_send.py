"""`send`: messages from a file into the sqlite log: under which key, into which partition, up to which line."""

import json
import signal
import struct
import subprocess
import time
import zlib
from collections.abc import Callable, Iterable

import pytest

from mistakebound.core.records import Outgoing, Record, Topic
from mistakebound.log import open_log
from mistakebound.log.partitioner import PARTITIONERS, partition_of
from mistakebound.settings import LogSettings, Settings
from tests.commands.support.command_line import ENVIRON, LOG, ok, run

SETTINGS = Settings(log=LogSettings(url=LOG))

EXAMPLES = b'{"id":"a","features":{"x":1}}\n{"id":7,"features":{"x":2}}\n'


def test_messages_are_sent_under_their_id() -> None:
    """Integers as their decimal string, so that an example and its label share a partition."""
    ok("topics", "create", "--partitions", "2")
    assert "sent 2 records" in ok("send", "examples", "-", stdin=EXAMPLES).stderr
    lines = ok("tail", "examples", "--from", "beginning", "-c", "2", "--json").stdout.splitlines()
    assert {json.loads(line)["key"] for line in lines} == {"a", "7"}


def test_the_id_is_found_where_messages_id_points() -> None:
    """Existing messages need no change."""
    ok("topics", "create")
    ok("send", "examples", "-", "--set", "messages.id=/after/pk~1id", stdin=b'{"after":{"pk/id":"z"}}\n')
    line = ok("tail", "examples", "--from", "beginning", "-c", "1", "--json").stdout
    assert json.loads(line)["key"] == "z"


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"{}\n",
        b'{"id":null}\n',
        b'{"id":true}\n',
        b'{"id":1.5}\n',
        b"[1]\n",
        b'{"id":""}\n',
        b'{"id":"\\ud800"}\n',
        b'{"id":"\xff"}\n',
        b'{"id":"a\x00b"}\n',
        b'{"id":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        b'{"id":' + b"[" * 500 + b"]" * 500 + b"}\n",
        b'{"features":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}\n",
        b'{"id":"' + b"x" * 129 + b'"}\n',
        b'{"id":"x","features":{"a":"' + b"y" * 1_100_000 + b'"}}\n',
        b'\x00{"id":"x"}\n',
    ],
    ids=lambda line: repr(line[:16]),
)
def test_a_line_that_no_worker_could_join_stops_sending_by_number(line: bytes) -> None:
    """Exit code 2; what came before it is sent, as the message says, and nothing after it."""
    ok("topics", "create")
    result = run("send", "examples", "-", stdin=EXAMPLES + line + b'{"id":"after"}\n')
    assert result.exit_code == 2, result.output
    assert "sent 2 records" in result.stderr
    assert "line 3: " in result.stderr
    assert "Traceback" not in result.stderr
    assert len(stored("examples")) == 2


@pytest.mark.parametrize("topic", ["examples", "inputs"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(topic: str) -> None:
    """Editors and spreadsheets write it; of a recording too."""
    ok("topics", "create")
    content = EXAMPLES if topic == "examples" else recording(1, keyed(partition_of, partitions=1, count=2))
    ok("send", topic, "-", stdin=b"\xef\xbb\xbf" + content)
    assert {json.loads(record.value or b"")["id"] for record in stored("examples")} >= {
        "a" if topic == "examples" else "tx-0"
    }


def test_a_file_in_utf_16_is_named_as_such() -> None:
    """Nothing of it is sent."""
    ok("topics", "create")
    result = run("send", "examples", "-", stdin=EXAMPLES.decode().encode("utf-16"))
    assert result.exit_code == 2
    assert "line 1: - is UTF-16" in result.stderr
    assert stored("examples") == []


def test_blank_lines_and_line_ends_of_windows_are_no_content() -> None:
    """The lines are still counted, and the values are as they were without."""
    ok("topics", "create")
    result = run("send", "examples", "-", stdin=b'\r\n{"id":"a"}\r\n\n  \n{"id":"b"}\r\nwrong')
    assert "line 6: " in result.stderr
    assert [record.value for record in stored("examples")] == [b'{"id":"a"}', b'{"id":"b"}']


def test_what_cannot_be_read_is_no_traceback() -> None:
    """A file that breaks off while it is read, or no stdin at all."""
    ok("topics", "create")
    broken = run("send", "examples", "/proc/self/mem")
    assert broken.exit_code == 2
    assert "/proc/self/mem cannot be read after line 0: Input/output error" in broken.stderr
    command = f"{start_command('send', 'examples', '-')} <&-"
    closed = subprocess.run(["sh", "-c", command], capture_output=True, env=ENVIRON, check=False)
    assert (closed.returncode, closed.stderr) == (2, b"stdin is closed: name a file, or connect stdin\n")


def start_command(*arguments: str) -> str:
    import sys

    return " ".join([sys.executable, "-m", "mistakebound", *arguments, "--log", LOG])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_has_enough_is_told_how_far_it_came(number: signal.Signals) -> None:
    """Exit code 130, also while it waits for a line; what was read before is sent."""
    ok("topics", "create")
    command = [*start_command("send", "examples", "-").split()]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRON)
    assert process.stdin is not None
    process.stdin.write(EXAMPLES)
    process.stdin.flush()
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"sending to examples")
    time.sleep(0.2)
    process.send_signal(number)
    process.stdin.flush()
    said = process.stderr.read().decode()
    process.wait(30)
    process.stdin.close()
    process.stderr.close()
    assert process.returncode == 130, said
    assert said == "sent 2 records\ninterrupted after line 2: send the rest from there on\n"
    assert len(stored("examples")) == 2


def stored(topic: Topic, settings: Settings = SETTINGS) -> list[Record]:
    """All records of the topic."""
    with open_log(settings) as log:
        return [record for p in range(log.partitions) for record in log.read(topic, p, 0)]


def keyed(
    place: Callable[[bytes, int], int],
    key: Callable[[int], bytes | None] = lambda number: b"tx-%d" % number,
    *,
    topic: Topic = "examples",
    partitions: int = 6,
    numbers: Iterable[int] | None = None,
    count: int = 60,
    id_of: Callable[[int], object] = "tx-{}".format,
) -> list[Outgoing]:
    """What a producer with this partitioner sends."""
    found = []
    for number in range(count) if numbers is None else numbers:
        value = json.dumps({"id": id_of(number), "features": {"x": 1}, "label": True}).encode()
        found.append(Outgoing(topic, place(key(number) or b"", partitions), key(number), value, (), number))
    return found


def recording(partitions: int, outgoing: Iterable[Outgoing]) -> bytes:
    """As `record` would write what is sent."""
    from mistakebound.core.replay.recording import encode, encode_header

    lines = [encode_header(partitions)]
    lines += [
        encode(Record(each.topic, each.partition, offset, each.timestamp_ms or 0, each.key, each.value))
        for offset, each in enumerate(outgoing)
    ]
    return b"".join(lines)


def send_to_log(outgoing: list[Outgoing], partitions: int = 6) -> None:
    """A producer's records, in topics that are made for them."""
    ok("topics", "create", "--partitions", str(partitions))
    with open_log(SETTINGS) as log:
        log.append(outgoing)


def lines(numbers: Iterable[int], id_of: Callable[[int], object] = "tx-{}".format) -> bytes:
    return b"".join(json.dumps({"id": id_of(n), "label": False}).encode() + b"\n" for n in numbers)


def crc32(key: bytes, partitions: int) -> int:
    return zlib.crc32(key) % partitions


@pytest.mark.parametrize("name", ["murmur2", "crc32", "fnv1a"])
def test_messages_go_where_the_streams_own_producers_put_them(name: str) -> None:
    """Labels to their examples, of ids that were seen and of others; and examples to examples."""
    place = PARTITIONERS[name]  # type: ignore[index]
    send_to_log(keyed(place))
    told = ok("send", "labels", "-", stdin=lines(range(40, 100))).stderr
    assert f"sending to labels, 6 partitions: by {'CRC32' if name == 'crc32' else name}" in told
    assert {record.key: record.partition for record in stored("labels")} == {
        b"tx-%d" % number: place(b"tx-%d" % number, 6) for number in range(40, 100)
    }
    ok("send", "examples", "-", stdin=lines(range(100, 110)))
    places = {record.key: record.partition for record in stored("examples")}
    assert places == {key: place(key or b"", 6) for key in places}
    assert len(places) == 70


def test_keys_are_spelled_as_the_streams_own_producers_spell_them() -> None:
    """Here as Java's LongSerializer does: the same bytes belong to the same partition."""
    long = lambda number: struct.pack(">q", number)  # noqa: E731
    send_to_log(keyed(partition_of, long, id_of=int))
    ok("send", "labels", "-", stdin=lines(range(60, 90), int))
    assert {(record.key, record.partition) for record in stored("labels")} == {
        (long(number), partition_of(long(number), 6)) for number in range(60, 90)
    }
    wrong = run("send", "labels", "-", stdin=lines([91]) + lines([92], int))
    assert wrong.exit_code == 2
    assert "line 1: id 'tx-91' is no number" in wrong.stderr


def test_labels_go_to_the_examples_that_were_seen_whatever_the_rule() -> None:
    """Three records of two partitions fit many rules; the label of each still finds it."""
    send_to_log(keyed(lambda key, p: p - 1 - crc32(key, p), partitions=2, count=3), 2)
    homes = {record.key: record.partition for record in stored("examples")}
    ok("send", "labels", "-", "--partitioner", "crc32", "--yes", stdin=b"")
    done = run("send", "labels", "-", stdin=lines(range(3)))
    assert done.exit_code == 5 or {record.key: record.partition for record in stored("labels")} == homes, (
        done.output
    )


REFUSED: dict[str, tuple[list[Outgoing], str]] = {
    "no rule": (keyed(lambda key, p: sum(key) % p), "are placed by no partitioner that is known"),
    "no keys": (keyed(lambda _, p: 3, lambda _: None), "have no keys"),
    "other keys": (
        keyed(partition_of, lambda number: b"customer-%d" % (number % 30)),
        "are not their ids",
    ),
}


@pytest.mark.parametrize(("outgoing", "why"), REFUSED.values(), ids=REFUSED)
def test_where_no_placement_is_proven_nothing_is_sent(outgoing: list[Outgoing], why: str) -> None:
    """Exit code 5 before the first record, with a way on; which is taken."""
    send_to_log(outgoing)
    refused = run("send", "labels", "-", stdin=lines(range(5)))
    assert refused.exit_code == 5
    assert why in refused.stderr
    assert "Nothing was sent" in refused.stderr
    assert "--partitioner murmur2|crc32|fnv1a|modulo" in refused.stderr
    assert stored("labels") == []
    ok("send", "labels", "-", "--partitioner", "crc32", stdin=lines(range(5)))
    assert [record.partition for record in sorted(stored("labels"), key=lambda one: one.key or b"")] == [
        crc32(b"tx-%d" % number, 6) for number in range(5)
    ]


@pytest.mark.parametrize("name", ["murmur2", "crc32"])
def test_a_recording_for_more_partitions_is_placed_as_it_was(name: str) -> None:
    """By the partitioner that placed it: so later labels of the same producers still find their examples."""
    place = PARTITIONERS[name]  # type: ignore[index]
    ok("topics", "create", "--partitions", "8")
    ok("send", "inputs", "-", stdin=recording(6, keyed(place) + keyed(place, topic="labels")))
    for topic in ("examples", "labels"):
        found = {record.key: record.partition for record in stored(topic)}  # type: ignore[arg-type]
        assert found == {b"tx-%d" % number: place(b"tx-%d" % number, 8) for number in range(60)}


def test_a_recording_whose_placement_cannot_be_told_is_refused_where_it_matters() -> None:
    """Into as many partitions it goes as it is; into more only if told how, under its ids as keys if they are not."""
    odd = keyed(lambda key, p: sum(key) % p, lambda number: b"customer-%d" % (number % 30))
    ok("topics", "create", "--partitions", "8")
    refused = run("send", "inputs", "-", stdin=recording(6, odd))
    assert refused.exit_code == 5
    assert "cannot be told" in refused.stderr
    ok("send", "inputs", "-", "--rekey", "--partitioner", "crc32", stdin=recording(6, odd))
    assert {(record.key, record.partition) for record in stored("examples")} == {
        (b"tx-%d" % number, crc32(b"tx-%d" % number, 8)) for number in range(60)
    }


def test_a_recording_keeps_its_places_where_there_are_as_many() -> None:
    """Whatever placed it."""
    ok("topics", "create", "--partitions", "6")
    odd = keyed(lambda key, p: sum(key) % p)
    ok("send", "inputs", "-", stdin=recording(6, odd))
    assert {(one.key, one.partition) for one in stored("examples")} == {(e.key, e.partition) for e in odd}


def test_a_recording_is_not_sent_to_the_topics_that_it_is_of() -> None:
    """Not even under another prefix, where the topics have names of their own; with --yes it is."""
    names = ("--set", "topics.examples=payments", "--set", "topics.labels=chargebacks")
    settings = Settings.model_validate(
        {"log": {"url": LOG}, "topics": {"examples": "payments", "labels": "chargebacks"}}
    )
    ok("topics", "create", "--partitions", "6", *names)
    with open_log(settings) as log:
        log.append(keyed(partition_of))
    ok("record", "all.jsonl", *names)
    other = (*names, "--set", "log.prefix=v2.")
    ok("topics", "create", "--partitions", "6", *other)
    refused = run("send", "inputs", "all.jsonl", *other)
    assert refused.exit_code == 5
    assert "payments is the topic that the recording was made from" in refused.stderr
    assert len(stored("examples", settings)) == 60
    ok("send", "inputs", "all.jsonl", "--yes", *other)
    assert len(stored("examples", settings)) == 120


def test_only_inputs_can_be_sent() -> None:
    """The worker's own topics are the worker's own."""
    ok("topics", "create")
    assert run("send", "updates", "-", stdin=EXAMPLES).exit_code == 2


def test_one_message_is_one_record_in_one_partition() -> None:
    """In words that fit the number."""
    ok("topics", "create")
    said = ok("send", "examples", "-", stdin=EXAMPLES.splitlines(keepends=True)[0]).stderr
    assert said == "sending to examples, 1 partition: nothing to choose\nsent 1 record\n"


@pytest.mark.parametrize(
    "words",
    [
        ("tail", "payments"),
        ("send", "payments", "-"),
        ("record", "-", "--topics", "labels,payments"),
        ("topics", "schema", "payments"),
    ],
    ids=lambda words: words[0],
)
def test_a_topic_that_is_called_as_on_the_log_is_told_its_logical_name(words: tuple[str, ...]) -> None:
    """Whoever has named a topic tends to write that name."""
    ok("topics", "create", "--set", "topics.examples=payments")
    named = run(*words, "--set", "topics.examples=payments")
    assert named.exit_code == 2
    assert "not 'payments': `payments` is `examples` here" in named.stderr
    assert run(*words).stderr.endswith("not 'payments'\n")


def test_a_missing_file_is_a_usage_error() -> None:
    """Named, without a traceback."""
    result = run("send", "examples", "missing.jsonl")
    assert result.exit_code == 2
    assert "missing.jsonl" in result.stderr
