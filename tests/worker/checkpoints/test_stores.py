"""Checkpoints on every store, a folder and a real object store: two kept, the newest valid one wins."""

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from mistakebound.worker.checkpoints.catalog import HEAD_BYTES, Catalog
from mistakebound.worker.checkpoints.envelope import MAGIC, InvalidCheckpointError
from mistakebound.worker.checkpoints.open_store import open_store
from mistakebound.worker.checkpoints.store import CheckpointError, CheckpointStore, Place, place_of, split
from tests.support.tries import long
from tests.worker.support.object_store import BUCKET, SECRET, ObjectStore, silence

ANSWER_S = 20.0


@pytest.fixture(params=["file", *long("s3")])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place for checkpoints that holds nothing yet."""
    if request.param == "file":
        return f"{tmp_path.as_uri()}/a%20folder"
    for name, value in request.getfixturevalue("object_store").environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}/model"


@pytest.fixture
def store(url: str) -> CheckpointStore:
    return open_store(url, ANSWER_S)


def of(store: CheckpointStore, slot: str = "worker-0", group: str = "demo.mistakebound") -> Catalog:
    return Catalog(store, group, slot)


def put(store: CheckpointStore, name: str, content: bytes) -> None:
    """In place of what was there."""
    store.delete(name)
    store.create(name, content, b"")


def payloads(checkpoints: Catalog) -> list[bytes]:
    return [each.payload for each in checkpoints.valid()]


# --- what a store promises ----------------------------------------------------------------------------------


def test_a_name_is_taken_once(store: CheckpointStore) -> None:
    """Who comes second is told, and changes nothing."""
    store.create("a.checkpoint", b"head", b"payload")
    with pytest.raises(FileExistsError):
        store.create("a.checkpoint", b"other", b"")
    content, written_at_s = store.read("a.checkpoint")
    assert content == b"headpayload"
    assert written_at_s > 1.7e9
    assert store.size("a.checkpoint") == 11


@pytest.mark.parametrize(("length", "expected"), [(4, b"head"), (100, b"headpayload")])
def test_the_beginning_can_be_read_alone(store: CheckpointStore, length: int, expected: bytes) -> None:
    """As much as there is."""
    store.create("a.checkpoint", b"head", b"payload")
    store.create("empty.checkpoint", b"", b"")
    assert store.beginning("a.checkpoint", length) == expected
    assert store.beginning("empty.checkpoint", length) == b""


def test_what_is_missing_is_a_missing_file(store: CheckpointStore) -> None:
    """Also before anything was written; deleting it is no error."""
    assert store.names() == []
    asks: list[Callable[[str], Any]] = [store.read, store.size, lambda name: store.beginning(name, 1)]
    for ask in (*asks, lambda name: store.rename(name, "b")):
        with pytest.raises(FileNotFoundError):
            ask("gone.checkpoint")
    store.delete("gone.checkpoint")


def test_only_checkpoints_are_listed_and_others_are_left(store: CheckpointStore) -> None:
    """A probe leaves nothing; what was set aside is there, and is not listed."""
    store.probe()
    for name in ("b.checkpoint", "a.checkpoint", "notes.txt", "c.checkpoint"):
        store.create(name, b"x", b"")
    store.rename("c.checkpoint", "c.checkpoint.rejected")
    store.sweep()
    assert store.names() == ["a.checkpoint", "b.checkpoint"]
    assert store.read("notes.txt")[0] == store.read("c.checkpoint.rejected")[0] == b"x"


def test_a_checkpoint_is_found_again_by_what_people_read(store: CheckpointStore) -> None:
    """`where` gives what `checkpoint show` takes."""
    store.create("a.checkpoint", b"x", b"")
    url, name = split(store.where("a.checkpoint"))
    assert open_store(url, ANSWER_S).read(name)[0] == b"x"


# --- what is kept on it -------------------------------------------------------------------------------------


def test_what_was_written_is_read_back(store: CheckpointStore) -> None:
    """Payload and summary come back as they were, from a store that was not there before."""
    name = of(store).write(b"\x00payload\n\xff", {"updates": [3, 4]})
    newest = next(of(store).valid(), None)
    assert newest is not None
    assert (newest.name, newest.payload) == (name, b"\x00payload\n\xff")
    assert next(of(store).heads()).summary == {"updates": [3, 4]}
    assert name == "demo.mistakebound_worker-0_000000000001.checkpoint"


def test_an_empty_payload_is_a_payload(store: CheckpointStore) -> None:
    """Length zero is not confused with a truncated file."""
    of(store).write(b"", {})
    assert payloads(of(store)) == [b""]


def test_an_empty_store_holds_no_checkpoint(store: CheckpointStore) -> None:
    """The first start finds nothing, and that is no error; nor is it when the store was made ready."""
    assert next(of(store).valid(), None) is None
    of(store).prepare()
    assert next(of(store).valid(), None) is None


def test_two_are_kept_and_the_newest_wins(store: CheckpointStore) -> None:
    """Older ones are deleted; numbering goes on after a restart."""
    for number in range(5):
        of(store).write(b"%d" % number, {})
    assert payloads(of(store)) == [b"4", b"3"]
    assert [name[-15:] for name in of(store).names()] == ["0005.checkpoint", "0004.checkpoint"]
    assert len(store.names()) == 2


def _damaged(whole: bytes) -> dict[str, bytes]:
    header_end = whole.index(b"\n", len(MAGIC)) + 1
    return {
        "empty": b"",
        "only the magic": MAGIC,
        "foreign": b"PK\x03\x04 something else entirely",
        "another format": whole.replace(b"checkpoint 1", b"checkpoint 2", 1),
        "cut in the header": whole[: header_end - 5],
        "no payload": whole[:header_end],
        "cut by one byte": whole[:-1],
        "one byte more": whole + b"x",
        "one bit flipped": whole[:-1] + bytes([whole[-1] ^ 1]),
        "header is not JSON": MAGIC + b"{\n" + whole[header_end:],
        "header is no object": MAGIC + b"[]\n" + whole[header_end:],
        "header is nested too deep": MAGIC + b"[" * 200_000 + b"\n" + whole[header_end:],
        "header lacks fields": MAGIC + b'{"length": 7}\n' + whole[header_end:],
        "header is not UTF-8": MAGIC + b'{"length": "\xff"}\n' + whole[header_end:],
        "zeros": bytes(len(whole)),
    }


@pytest.mark.parametrize("kind", list(_damaged(MAGIC + b"{}\n.")))
def test_a_damaged_checkpoint_is_set_aside_and_the_older_one_used(tmp_path: Path, kind: str) -> None:
    """Whatever happened to the newest, the older one serves, and a warning says why."""
    check_damaged(open_store(str(tmp_path), ANSWER_S), kind)


@pytest.mark.parametrize("kind", ["empty", "one bit flipped"])
def test_a_damaged_one_is_set_aside_on_every_store(store: CheckpointStore, kind: str) -> None:
    """What is read from it is the same bytes; that it is empty, or moved, is its own affair."""
    check_damaged(store, kind)


def check_damaged(store: CheckpointStore, kind: str) -> None:
    older = of(store).write(b"older", {})
    name = of(store).write(b"payload", {})
    put(store, name, _damaged(store.read(name)[0])[kind])
    with capture_logs() as logs:
        assert payloads(of(store)) == [b"older"]
    assert store.names() == [older]
    assert store.size(name + ".rejected") >= 0
    (warning,) = logs
    assert (warning["event"], warning["log_level"]) == ("checkpoint_rejected", "warning")
    assert warning["path"] == store.where(name)
    assert warning["reason"].startswith("it")


def test_when_all_are_damaged_there_is_none(store: CheckpointStore) -> None:
    """The worker then folds the log; the files stay for inspection, and writing goes on."""
    for payload in (b"a", b"b"):
        put(store, of(store).write(payload, {}), b"rubbish")
    assert next(of(store).valid(), None) is None
    assert store.names() == []
    of(store).write(b"c", {})
    assert payloads(of(store)) == [b"c"]


def test_a_folder_in_a_checkpoints_place_is_set_aside(tmp_path: Path) -> None:
    """Even what is no file at all does not stop the start."""
    store = open_store(str(tmp_path), ANSWER_S)
    name = of(store).write(b"older", {})
    (tmp_path / name.replace("0001", "0002")).mkdir()
    assert [found.name for found in of(store).heads()] == [name]
    assert payloads(of(store)) == [b"older"]


def test_a_caller_can_refuse_one_and_take_the_next(store: CheckpointStore) -> None:
    """A whole file of another log or settings is set aside by its reader."""
    for payload in (b"older", b"newer"):
        of(store).write(payload, {})
    seen = []
    for checkpoint in of(store).valid():
        seen.append(checkpoint.payload)
        of(store).set_aside(checkpoint.name, "it belongs to another log")
    assert seen == [b"newer", b"older"]
    assert next(of(store).valid(), None) is None


def test_reading_one_says_what_is_wrong(store: CheckpointStore) -> None:
    """Without moving it."""
    name = of(store).write(b"payload", {})
    put(store, name, store.read(name)[0][:-3])
    with pytest.raises(InvalidCheckpointError, match="4 bytes where its header says 7"):
        of(store).read(name)
    assert store.names() == [name]


def test_workers_share_a_store_and_leave_each_other_alone(store: CheckpointStore) -> None:
    """Each slot has its own numbering, and neither deletes, uses nor rejects another's files."""
    slots = ["worker-1", "worker", "worker_0", "worker/0", "worker%2F0", "x" * 249, "x" * 248]
    for slot in slots:
        for number in (1, 2):
            of(store, slot).write(f"{slot}{number}".encode(), {})
    store.create("notes.checkpoint", b"not ours", b"")
    for slot in slots:
        assert payloads(of(store, slot)) == [f"{slot}2".encode(), f"{slot}1".encode()]
    assert len(store.names()) == 2 * len(slots) + 1


def test_the_heads_of_a_group_are_the_newest_of_each_slot(store: CheckpointStore) -> None:
    """What another worker may take over from: not another group's, and not what has no head."""
    for slot in ("worker-0", "worker-1"):
        for number in range(2):
            of(store, slot).write(b"x" * 2 * HEAD_BYTES, {"number": number})
    put(store, of(store, "worker-2").write(b"x", {"number": 7}), b"rubbish")
    of(store, group="other").write(b"x", {"number": 8})
    found = [(each.own, each.summary) for each in of(store, "worker-1").heads()]
    assert found == [(False, {"number": 1}), (True, {"number": 1})]


def test_another_slots_checkpoint_is_never_moved(store: CheckpointStore) -> None:
    """That it is of no use is warned of; its own writer may set it aside."""
    name = of(store, "worker-1").write(b"x", {})
    with capture_logs() as logs:
        of(store).set_aside(name, "it does not fit")
    assert store.names() == [name]
    assert [said["event"] for said in logs] == ["checkpoint_passed_over"]


def test_group_and_slot_cannot_be_confused(store: CheckpointStore) -> None:
    """`a_b` + `c` and `a` + `b_c` are two workers."""
    of(store, "c", "a_b").write(b"first", {})
    of(store, "b_c", "a").write(b"second", {})
    assert payloads(of(store, "c", "a_b")) == [b"first"]


def test_two_writers_of_a_slot_lose_neither_checkpoint(store: CheckpointStore) -> None:
    """A paused predecessor that wakes up between a look at the numbers and the write takes the next one."""

    class Late:
        """The store, as it was a moment ago at the first look."""

        looks = 0

        def names(self) -> list[str]:
            self.looks += 1
            return [] if self.looks == 1 else store.names()

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

    of(store).write(b"the successor's", {})
    late: Any = Late()
    assert of(late).write(b"the predecessor's", {}).endswith("0002.checkpoint")
    assert payloads(of(store)) == [b"the predecessor's", b"the successor's"]


def test_writers_at_the_same_time_leave_whole_files_only(store: CheckpointStore) -> None:
    """A paused predecessor that wakes up beside its successor breaks nothing."""
    errors: list[Exception] = []

    def write(writer: int) -> None:
        try:
            for number in range(8):
                of(store).write(f"{writer}.{number}".encode() * 1_000, {})
                assert next(of(store).valid(), None) is not None
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert errors == []
    of(store).write(b"last", {})
    assert len(payloads(of(store))) == len(store.names()) == 2


# --- an object store that does not serve ---------------------------------------------------------------------


@pytest.fixture
def away(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], CheckpointStore]]:
    """A store in an object store that is `silent`, `refused`, or asked with the wrong `secret`."""
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    with silence() as silent:

        def store(how: str) -> CheckpointStore:
            if how == "secret":
                monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET[::-1])
            else:
                monkeypatch.setenv("AWS_ENDPOINT_URL", silent if how == "silent" else "http://127.0.0.1:1")
            return open_store(f"s3://{BUCKET}/model", 0.2)

        yield store


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("silent", "in 0.2 s (checkpoint.timeout)"),
        ("refused", ""),
        ("secret", "403 Forbidden"),
    ],
)
def test_a_store_that_does_not_serve_is_an_error_in_time(
    away: Callable[[str], CheckpointStore], how: str, told: str
) -> None:
    """It names the place, the reason and the remedy, and nothing secret."""
    store = away(how)
    asks: list[Callable[[], Any]] = [
        store.names,
        store.probe,
        lambda: store.read("a"),
        lambda: store.delete("a"),
    ]
    for ask in (*asks, lambda: of(store).write(b"x", {})):
        with pytest.raises(CheckpointError) as refused:
            ask()
        message = str(refused.value)
        assert f"s3://{BUCKET}/model" in message
        assert told in message
        assert "AWS_SECRET_ACCESS_KEY" in message
        assert SECRET not in message
        assert SECRET[::-1] not in message
    store.prepare()  # a store may be away when the work begins


def test_an_encrypted_store_must_show_a_certificate_that_is_trusted(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a public authority, or of the one in SSL_CERT_FILE; nothing is said to another."""
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_store.encrypted)
    url = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    with pytest.raises(CheckpointError, match="error sending request"):
        open_store(url, 1.0).probe()
    monkeypatch.setenv("SSL_CERT_FILE", str(object_store.authority))
    assert of(open_store(url, ANSWER_S)).write(b"x", {}) in open_store(url, ANSWER_S).names()


# --- URLs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("./checkpoints", Place(None, "./checkpoints")),
        ("/var/lib/x", Place(None, "/var/lib/x")),
        ("file:///var/lib/x", Place(None, "/var/lib/x")),
        ("file://localhost/var/a%20b", Place(None, "/var/a b")),
        ("s3://bucket", Place("bucket", "")),
        ("s3://bucket/", Place("bucket", "")),
        ("s3://bucket/team/model/", Place("bucket", "team/model")),
    ],
)
def test_a_url_names_a_place(url: str, place: Place) -> None:
    """A path is a folder as it stands."""
    assert place_of(url) == place


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("file://host/folder", "three slashes"),
        ("file://", "three slashes"),
        ("s3://", "bucket is missing"),
        ("s3:///prefix", "bucket is missing"),
        ("s3://key:secret@bucket", "credentials do not belong in the URL"),
        ("s3://bucket/prefix?region=eu", "no query"),
        ("s3://bucket/prefix#1", "no query and no fragment"),
        ("ftp://host/folder", "checkpoints cannot be kept at ftp://"),
    ],
)
def test_another_url_is_refused(url: str, wrong: str) -> None:
    """With what is wrong in it; never with what may be a secret."""
    with pytest.raises(ValueError, match=wrong) as refused:
        place_of(url)
    assert "secret@" not in str(refused.value)


def test_a_checkpoint_without_a_folder_lies_here() -> None:
    """As a shell's user names it."""
    assert split("x.checkpoint") == (".", "x.checkpoint")
    assert split("/x.checkpoint") == ("/", "x.checkpoint")
    assert split("s3://bucket/x.checkpoint") == ("s3://bucket", "x.checkpoint")
