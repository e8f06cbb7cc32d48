"""`status` on a broker, asked again and again while a worker works."""

import json
import threading

from mistakebound.core.messages.schema import Update
from mistakebound.log import open_log
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run
from tests.commands.support.epochs import read_updates
from tests.faults.support.recount import digest
from tests.log.kafka.end_to_end.conftest import inputs
from tests.log.kafka.end_to_end.test_sharing import until, working
from tests.worker.support.working import Run, altered, opened

ASKED = 8


def test_a_check_of_the_topics_knows_the_delay_that_the_epoch_allows(settings: Settings) -> None:
    """Eleven days, of which the broker keeps seven: without `labels.max_delay` at hand that is no less wrong."""
    place = ["--log", settings.log.url or "", f"--set=log.prefix={settings.log.prefix}"]
    with opened(settings, 2) as log:
        Run(log, settings)
    found = run("topics", "check", "--json", *place, log=None)
    assert found.exit_code == 3
    verdicts = {
        each["topic"]: each["verdict"] for each in json.loads(found.stdout) if each["rule"] == "retention.ms"
    }
    assert verdicts["predictions"] == "failed"


def test_status_agrees_with_itself_while_steps_are_committed(settings: Settings) -> None:
    """Each answer is of one cut: its updates are counted alike twice, and its digest is of exactly these."""
    declared = altered(settings, learner={"kind": "perceptron", "gamma": 0.001}, batch={"max_records": 20})
    place = ["--log", declared.log.url or "", f"--set=log.prefix={declared.log.prefix}"]
    done, answers = threading.Event(), []

    def feed() -> None:
        with open_log(declared) as log:
            for part in range(1_000):
                if done.is_set():
                    return
                log.append(inputs(200, first=1_000 * part))

    with opened(declared, 2) as log, working(declared, "one"):
        feeding = threading.Thread(target=feed)
        feeding.start()
        try:
            until(lambda: log.group_positions()[0] is not None, "the worker works")
            while len(answers) < ASKED:
                told = json.loads(ok("status", "--model", "--json", *place, log=None).stdout)
                if told["updates"] and (not answers or told["updates"] > answers[-1]["updates"]):
                    answers.append(told)
        finally:
            done.set()
            feeding.join()
        updates = [read_updates(log, p) for p in range(2)]
    for told in answers:
        assert told["updates"] == sum(told["model"]["updates"]), "as `outcomes` and as `updates` count them"
        assert [bound["count"] for bound in told["bounds"]] == [told["updates"], told["mistakes"]]
        rows = []
        for p, count in enumerate(told["model"]["updates"]):
            row: dict[str, float] = {}
            for each in updates[p]:
                if isinstance(each, Update) and each.n <= count:
                    for name, value in {**json.loads(bytes(each.features)), "BIAS": 1.0}.items():
                        row[name] = row.get(name, 0.0) + (1.0 if each.label else -1.0) * value
            rows.append(row)
        assert told["model"]["digest"] == digest(rows)
