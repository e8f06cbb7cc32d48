"""Would the fault suite notice? Remove one guard from a copy of the service, and run the test that must fail.

    python -m tests.faults.sabotage [NAME ...] [--seed N] [--tries N] [--sure]

Each guard is one replacement in a copy of the source, in a temporary folder; then one test runs there, its
child processes included. A guard whose absence goes unnoticed is printed as NOT noticed, and the exit code is
1. The moment at which a process dies is chance, so a test may be given several tries. `--sure` first runs
every test on an unbroken copy, where it must pass.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.project import ROOT, python_path

COPIED = ("service", "tests", "pyproject.toml")
RUN_S = 600
LINE = 200
FAILED = 1
"""Pytest's exit code when tests ran and one failed; others tell of a broken run."""


class Guard(NamedTuple):
    """Replace `old` by `new` in the code of `file`, once; then `test` (below tests/) must fail, and so must a seed of
    the simulation (`python -m tests.simulate --sabotage`)."""

    file: str
    old: str
    new: str
    test: str
    trap: str = ""
    """The guard is one of a Kafka client's: this trap of the model's client stands for its absence."""
    beyond: str = ""
    """Why the simulation has no part in it."""


KILLED = "faults/test_killed_fleet.py"
ZOMBIE = "faults/test_zombie.py"
OPEN = "faults/test_open_transaction.py"
SOAK = "faults/test_soak.py"
SCALING = "faults/test_scaling.py"
DATA = "faults/test_data_faults.py"
LOST = "faults/test_lost_positions.py"
AWAY = "faults/test_broker_away.py"
LEADER = "faults/test_leader_change.py"
PRODUCER = "faults/test_producer_faults.py"
SIGNALS = "faults/test_signals.py"
LATE = "faults/test_late_requests.py"
TORN = "worker/test_torn_steps.py"
LOST_INPUT = "worker/test_lost_input.py"
STOPPED = "faults/test_stopped_takeover.py"

PROCESS = "of the operating system's process: signals, files, its exit"
KAFKA_PYTHON = "of kafka-python's own working, which the model's client does not have"

GUARDS: Mapping[str, Guard] = {
    "B1 only committed records are read": Guard(
        "service/mistakebound/log/kafka/kafka_python/make_clients.py",
        '"isolation_level": "read_committed"',
        '"isolation_level": "read_uncommitted"',
        KILLED,
        trap="uncommitted",
    ),
    "B1 positions are in the transaction": Guard(
        "service/mistakebound/log/kafka/write.py",
        "    if positions:\n        sender.send_positions(",
        "    if positions:\n"
        "        sender.commit(timeouts.COMMIT_S)\n"
        "        __import__('time').sleep(0.05)\n"
        "        sender.begin()\n"
        "        sender.send_positions(",
        KILLED,
    ),
    "B1 a slot keeps its transactional id": Guard(
        "service/mistakebound/log/kafka/log.py",
        "writer = self._writer(client_id)",
        "writer = self._writer(f\"{slot}-{__import__('time').time_ns()}\")",
        "faults/test_two_workers.py",
    ),
    "B1 what is resolved waits no more": Guard(
        "service/mistakebound/core/ledger/rebuild.py",
        "    if effect.ends_waiting:",
        "    if False:",
        KILLED,
    ),
    "B1 a rebuild reads from the recovery point": Guard(
        "service/mistakebound/worker/ledgers.py",
        'log.read("predictions", partition, start), False',
        'log.read("predictions", partition, log.high_watermark("predictions", partition)), False',
        KILLED,
    ),
    "B1 each epoch forgets by its own limit": Guard(
        "service/mistakebound/core/ledger/rebuild.py",
        "        epochs.enter(part.model.epoch)\n",
        "",
        "faults/test_killed_after_reset.py",
        beyond="of a second epoch: a log of the model has one, which is entered once",
    ),
    "B2 the generation fences": Guard(
        "service/mistakebound/log/kafka/kafka_python/session.py",
        "        member = self._assignments.member\n",
        "        member = self._assignments.member.group_id\n",
        ZOMBIE,
        trap="unfenced",
    ),
    "B2 a step given up is taken back": Guard(
        "service/mistakebound/worker/stepping.py",
        "                self._take_back(held, ahead)\n                self._take_back(held, made)\n",
        "                self._take_back(held, ahead)\n",
        ZOMBIE,
    ),
    "B2 a step that was made ahead is taken back, too": Guard(
        "service/mistakebound/worker/stepping.py",
        "                self._take_back(held, ahead)\n",
        "",
        "worker/test_loop.py::test_one_fault_at_one_commit",
    ),
    "B2 a step made ahead is taken back when the group has moved on before it": Guard(
        "service/mistakebound/worker/stepping.py",
        "not self._refill():\n                self._take_back(held, made)\n",
        "not self._refill():\n",
        "worker/test_stepping.py::test_a_group_that_moves_on_between_two_steps_loses_and_doubles_nothing",
    ),
    "B2 a ledger is kept only at its own position": Guard(
        "service/mistakebound/worker/takeover.py",
        "held is not None and held.positions.get(p) == positions[p]}",
        "held is not None and p in held.state.ledgers}",
        ZOMBIE,
    ),
    "B2 a takeover first folds what came since": Guard(
        "service/mistakebound/worker/takeover.py",
        "if held is not None and catch_up(log, held.fold):",
        "if held is not None:",
        ZOMBIE,
    ),
    "B2 positions are asked for again before a takeover refuses": Guard(
        "service/mistakebound/worker/takeover.py",
        "        if positions is not None and _positions(log, session, owned, accepted) != positions:",
        "        if False:",
        STOPPED,
    ),
    "B2 positions are asked for again where a step looks torn": Guard(
        "service/mistakebound/worker/takeover.py",
        "if _is_doubtful(found, positions) and _positions(log, session, owned, accepted) != positions:",
        "if False:",
        STOPPED,
    ),
    "B3 reads reach the high watermark": Guard(
        "service/mistakebound/log/kafka/read.py",
        "                elif now > deadline:",
        "                elif now > deadline - wait_s + 0.3:\n"
        "                    return\n"
        "                elif now > deadline:",
        OPEN,
    ),
    "B3 reads have a deadline": Guard(
        "service/mistakebound/log/kafka/read.py", "elif now > deadline:", "elif now > deadline + 1e9:", OPEN
    ),
    "B5 what cannot be read is set aside": Guard(
        "service/mistakebound/core/messages/inputs.py",
        '    if value is None:\n        raise BadRecord("tombstone"',
        "    if value == b'nothing':\n        raise BadRecord(\"tombstone\"",
        DATA,
    ),
    "B5 stream time does not go back": Guard(
        "service/mistakebound/core/step/partition_step.py",
        "            if time_ms > ledger.stream_time:",
        "            if True:",
        DATA,
    ),
    "B5 what it leads to is sized first": Guard(
        "service/mistakebound/core/step/sizes.py",
        "    if size > largest:",
        "    if False:",
        DATA,
    ),
    "B5 lost offsets are refused": Guard(
        "service/mistakebound/worker/ledgers.py",
        "        if newest_record(log, topic, partition) is not None:",
        "        if False:",
        LOST,
    ),
    "B5 a lost position is never guessed": Guard(
        "service/mistakebound/log/kafka/kafka_python/make_clients.py",
        '"auto_offset_reset": "none"',
        '"auto_offset_reset": "latest"',
        LOST,
        beyond="the model's client never guesses one: kafka-python would",
    ),
    "B5 partition counts are fixed": Guard(
        "service/mistakebound/log/kafka/session_checks.py",
        "    if any(count not in (0, partitions) for count in counts.values()):",
        "    if False:",
        LOST,
    ),
    "B5 topics made anew are noticed": Guard(
        "service/mistakebound/log/kafka/session_checks.py", "    if remade:", "    if False:", LOST
    ),
    "B5 no epoch is begun over work": Guard(
        "service/mistakebound/worker/epochs/epochs.py",
        "        if worked is not None:",
        "        if False:",
        LOST,
    ),
    "B5 an unknown format stops the reader": Guard(
        "service/mistakebound/core/messages/schema.py", "if epoch.format != FORMAT:", "if False:", LOST
    ),
    "B5 inputs under other names are noticed": Guard(
        "service/mistakebound/worker/epochs/input_topics.py",
        "    if then.name != now.name:",
        "    if False:",
        f"{LOST_INPUT}::test_other_inputs_under_the_same_prefix_are_refused_by_name",
    ),
    "B5 an input made anew is noticed": Guard(
        "service/mistakebound/worker/epochs/input_topics.py",
        "    if then.id != now.id and not",
        "    if then.id != now.id and not True and not",
        "faults/test_lost_input.py::test_one_input_made_anew_is_refused_by_name",
    ),
    "B5 one offset that was deleted is a loss": Guard(
        "service/mistakebound/worker/lost_input.py",
        "        if oldest > position:",
        "        if oldest > position + 1:",
        f"{LOST_INPUT}::test_unread_input_that_was_deleted_is_refused_until_told_to_skip_it",
    ),
    "B5 what was read cannot be skipped": Guard(
        "service/mistakebound/worker/lost_input.py",
        "        if position > end:",
        "        if False:",
        f"{LOST_INPUT}::test_nothing_is_skipped_where_an_input_ends_below_what_was_read",
    ),
    "B6 a log that is away is waited for": Guard(
        "service/mistakebound/worker/loop.py",
        "                self._wait_for_log(error)",
        "                raise",
        AWAY,
    ),
    "B6 a worker without its log says so": Guard(
        "service/mistakebound/worker/loop.py",
        "        self._observe(events.LogUnreachable())\n",
        "",
        AWAY,
        beyond="the simulation reads no reasons; that the worker is not ready holds without it",
    ),
    "B6 a worker without state is not ready": Guard(
        "service/mistakebound/worker/loop.py",
        '        self._observe(events.PhaseEntered("restoring"))\n        self._observe(events.StateDropped())',
        "        self._observe(events.StateDropped())",
        "worker/test_loop.py::test_it_is_not_ready_from_a_failed_transaction_until_it_has_taken_over_again",
    ),
    "B6 a transaction that failed is got over": Guard(
        "service/mistakebound/worker/loop.py",
        '                self._rebuild("failed", error)',
        "                raise",
        LEADER,
    ),
    "B7 a failed send meets no commit": Guard(
        "service/mistakebound/log/kafka/kafka_python/send.py",
        "max(end_of(batch) for batch in batches)",
        "max(end_of(batch) if batch.produce_future.succeeded() else 0 for batch in batches)",
        "log/kafka/test_batches.py::test_a_batch_that_failed_ends_the_flush_whatever_the_client_makes_of_it",
        trap="failed-sends",
    ),
    "B7 a commit counts under its own epoch": Guard(
        "service/mistakebound/log/kafka/kafka_python/send.py",
        "if self._manager.producer_id_and_epoch != self._epoch:",
        "if False:",
        PRODUCER,
        trap="lost-epoch",
    ),
    "B7 a commit without an answer is looked up": Guard(
        "service/mistakebound/log/kafka/kafka_python/send.py",
        "        if not result.wait(timeout_ms=seconds * 1000):\n",
        "        if not result.wait(timeout_ms=seconds * 1000) and what != 'the commit':\n",
        PRODUCER,
        trap="unanswered-commits",
    ),
    "B8 a drain has a limit": Guard(
        "service/mistakebound/worker/process.py",
        "woken.settimeout(DRAIN_S)",
        "woken.settimeout(None)",
        AWAY,
        beyond=PROCESS,
    ),
    "B8 a second signal ends the process": Guard(
        "service/mistakebound/worker/process.py",
        "            os._exit(ExitCode.INTERRUPTED)",
        "            pass",
        AWAY,
        beyond=PROCESS,
    ),
    "B8 a worker that ends leaves the group": Guard(
        "service/mistakebound/worker/loop.py",
        "                    session.close(LEAVE_S)",
        "                    pass",
        SIGNALS,
    ),
    "B8 it leaves also amid a rebalance": Guard(
        "service/mistakebound/log/kafka/kafka_python/session.py",
        "                self._cluster.admin.remove(self._consumer._coordinator._generation.member_id)",
        "                pass",
        SIGNALS,
        beyond=KAFKA_PYTHON,
    ),
    "B8 a recovery can be broken off": Guard(
        "service/mistakebound/worker/interruptible.py", "if self._interrupted():", "if False:", SIGNALS
    ),
    "B9 files are closed": Guard(
        "service/mistakebound/worker/loop.py",
        "        if idle:\n            self._away_s = None\n",
        "        if idle:\n            self._away_s = None\n            __import__('os').dup(2)\n",
        SOAK,
        beyond=PROCESS,
    ),
    "B9 a follower's client is lent again": Guard(
        "service/mistakebound/log/kafka/read.py",
        "            self._idle[follows].append(fetcher)\n",
        "            pass\n",
        "log/kafka/test_read.py",
    ),
    "B9 a follower's thread ends": Guard(
        "service/mistakebound/worker/following.py",
        "        self._closed.set()\n        self._thread.join()",
        "        pass",
        SOAK,
    ),
    "B10 the end of a join is waited for": Guard(
        "service/mistakebound/log/kafka/kafka_python/session.py",
        "end = max(end, began + JOIN_S)",
        "pass",
        "log/kafka/test_client_traps.py::test_a_member_that_is_busy_between_polls_gets_its_share",
        beyond=KAFKA_PYTHON,
    ),
    "B10 other workers' updates are folded": Guard(
        "service/mistakebound/worker/loop.py",
        "            self._following.fold_into(self.held.fold)",
        "            pass",
        SCALING,
    ),
    "B10 an update is folded with its own clock": Guard(
        "service/mistakebound/core/model/model.py",
        "            sum(update.clock),\n",
        "            sum(self.clock),\n",
        SCALING,
    ),
    "B10 both inputs of a partition stay together": Guard(
        "service/mistakebound/log/kafka/kafka_python/make_clients.py",
        '"partition_assignment_strategy": (RangePartitionAssignor,),',
        '"partition_assignment_strategy": (__import__("kafka.coordinator.assignors.sticky.sticky_assignor", '
        'fromlist=["x"]).StickyPartitionAssignor,),',
        SCALING,
        beyond="the model's group assigns partitions, not topics' partitions",
    ),
    "B11 a request that was sent again costs the client": Guard(
        "service/mistakebound/log/kafka/write.py",
        "sound = not sender.sent_again()",
        "sound = True",
        LATE,
    ),
    "B11 an abort costs the client": Guard(
        "service/mistakebound/log/kafka/write.py",
        "                sender.abort(timeouts.ABORT_S)\n",
        "                sender.abort(timeouts.ABORT_S)\n                sound = True\n",
        LATE,
    ),
    "B11 kafka-python tells of a connection that ended": Guard(
        "service/mistakebound/log/kafka/kafka_python/send.py",
        "                future.add_errback(note)",
        "                pass",
        LATE,
        trap="late-copies",
    ),
    "B11 librdkafka tells of a connection that ended": Guard(
        "service/mistakebound/log/kafka/confluent/send.py",
        "            self.ended = True",
        "            pass",
        LATE,
        trap="late-copies",
    ),
    "B11 offsets that somebody moved are not settled": Guard(
        "service/mistakebound/worker/torn_steps.py",
        "    if not found.passed and not ahead:",
        "    if False:",
        "worker/test_takeover.py::test_moved_offsets_are_refused",
    ),
    "B11 updates are as many as outcomes count": Guard(
        "service/mistakebound/worker/torn_steps.py",
        "    if there == counted:",
        "    if True:",
        f"{TORN}::test_another_number_of_updates_is_refused_with_a_version_to_go_on_from",
    ),
    "B11 a missing prediction is not passed over": Guard(
        "service/mistakebound/worker/missing_predictions.py",
        "        if missing > 0:",
        "        if missing > 1:",
        f"{TORN}::test_missing_predictions_are_told_and_made_again_when_asked_for",
    ),
    "B11 only what is missing is predicted again": Guard(
        "service/mistakebound/worker/missing_predictions.py",
        "        if record.offset not in there and",
        "        if",
        f"{TORN}::test_predictions_missing_for_long_are_made_again_as_what_became_of_their_examples_has_it",
    ),
    "B11 a label that was applied is not waited for again": Guard(
        "service/mistakebound/worker/missing_predictions.py",
        "            _note(gap, decisions)\n        if stop",
        "            pass\n        if stop",
        f"{TORN}::test_predictions_missing_for_long_are_made_again_as_what_became_of_their_examples_has_it",
    ),
    "B12 a transaction that a bad network interrupted is got over": Guard(
        "service/mistakebound/worker/loop.py",
        '                self._rebuild("failed", error)',
        "                raise",
        "faults/test_network.py",
    ),
}
"""Name (the bar's test first) -> what is taken away, and who must notice."""


def main() -> int:
    """Take away the guards asked for, one after the other; 1 where that went unnoticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="guards, by whole name or first word (B2)")
    parser.add_argument("--seed", help="repeat the random choices of a run")
    parser.add_argument("--tries", type=int, default=1, help="runs in which a test may notice (default 1)")
    parser.add_argument("--sure", action="store_true", help="first see that the tests pass unbroken")
    asked = parser.parse_args()
    chosen = [name for name in GUARDS if not asked.names or {name, name.partition(" ")[0]} & set(asked.names)]
    if not chosen:
        parser.error(f"no guard of this name; there are: {', '.join(GUARDS)}")
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        copy_to(copy)
        for test in dict.fromkeys(GUARDS[name].test for name in chosen) if asked.sure else ():
            code, said, seconds = _run(copy, test, asked.seed)
            bad += code != 0
            print(f"{'unbroken':46} {'passed' if code == 0 else f'FAILED: {said}'} ({seconds:.0f} s) {test}")
        for name in chosen:
            result, noticed = _without(copy, GUARDS[name], asked.seed, asked.tries)
            bad += not noticed
            print(f"{name:46} {result}", flush=True)
    return 1 if bad else 0


def copy_to(folder: Path) -> None:
    for part in COPIED:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / part)


def code_of(text: str) -> tuple[str, str]:
    """A module's docstring, which may say what the code does, and the rest."""
    begins = text.index('"""', 3)
    return text[:begins], text[begins:]


def _without(copy: Path, guard: Guard, seed: str | None, tries: int) -> tuple[str, bool]:
    target = copy / guard.file
    text = target.read_text()
    head, code = code_of(text)
    if code.count(guard.old) != 1:
        return f"NOT tried: {guard.file} must hold once {guard.old!r}", False
    target.write_text(head + code.replace(guard.old, guard.new))
    try:
        for number in range(tries):
            ended, said, seconds = _run(copy, guard.test, seed)
            if ended == FAILED:
                return f"noticed (run {number + 1}, {seconds:.0f} s): {said}", True
    finally:
        target.write_text(text)
    return f"NOT noticed ({seconds:.0f} s, pytest ended with {ended}): {said}", False


def _run(copy: Path, test: str, seed: str | None) -> tuple[int, str, float]:
    """Pytest's exit code, what it said of the failure, and how long it took in s."""
    environ = {"MISTAKEBOUND_FAULTS_SIZE": "short", **os.environ}
    environ |= {"PYTHONPATH": python_path(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    environ |= {"MISTAKEBOUND_SEED": seed} if seed else {}
    began = time.monotonic()
    arguments = ("--long", "-x", "-q", "-p", "no:cacheprovider", "--tb=short", f"tests/{test}")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=copy,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=RUN_S,
        check=False,
    )
    return run.returncode, _summary(run.stdout) or run.stderr[-LINE:], time.monotonic() - began


def _summary(output: str) -> str:
    """The failure's first line, and the last words of the worker that it tells of."""
    said = [each for each in re.findall(r"^E +(\S.*)$", output, re.MULTILINE) if not each.startswith("+ ")]
    if not said:
        return output.strip().rpartition("\n")[2]
    last = next((each for each in reversed(said) if not each.startswith("assert ")), "")
    first = re.sub(r"`run [^`]*`", "a worker", said[0])
    return f"{first[:LINE]} ... {last[:LINE]}" if last not in ("", said[0]) else first[:LINE]


if __name__ == "__main__":
    sys.exit(main())
