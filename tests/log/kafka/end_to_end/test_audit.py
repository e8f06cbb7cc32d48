"""The audit and a replay of two workers' log on a real broker, with transaction markers between its records."""

import json
import time
from pathlib import Path

import pytest

from mistakebound.settings import Settings
from tests.commands.support.command_line import ok
from tests.log.kafka.end_to_end.test_sharing import owned, until, working
from tests.worker.support.working import opened, settings_for, stream


@pytest.fixture(scope="module")
def settings(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of a log on which two workers worked: one joined under load, and partitions moved."""
    settings = settings_for(
        f"kafka://{kafka_bootstrap}",
        batch={"max_records": 40},
        labels={"max_delay": 0.2, "parking": 0.05, "remember": 30},
        learner={"kind": "averaged-perceptron"},
        checkpoint={"url": str(tmp_path_factory.mktemp("two") / "checkpoints")},
    )
    begun_ms = round(time.time() * 1000) - 3_600_000
    inputs = [
        each._replace(timestamp_ms=begun_ms + (each.timestamp_ms or 0))
        for each in stream(800, partitions=4, delay=50)
    ]
    with opened(settings, 4) as log:
        log.append(inputs[:800])
        with working(settings, "one") as one:
            until(lambda: sum(owned(one)) == 6, "the first worker owns all")
            with working(settings, "two") as two:
                until(lambda: len(owned(one)) == len(owned(two)) == 2, "each owns two")
                log.append(inputs[800:])

                def whole() -> bool:
                    positions = log.group_positions()
                    return all(
                        (position := positions.get(p)) is not None
                        and position.examples == log.high_watermark("examples", p)
                        and position.labels == log.high_watermark("labels", p)
                        for p in range(4)
                    )

                until(whole, "all inputs are consumed")
    return settings


def test_the_log_of_two_workers_is_clean(settings: Settings, tmp_path: Path) -> None:
    """Each prediction is made again by the version that it carries, from the log and from a recording."""
    flags = (f"--set=log.prefix={settings.log.prefix}", f"--set=checkpoint.url={settings.checkpoint.url}")
    found = json.loads(ok("audit", "--json", *flags, log=settings.log.url).stdout)
    assert found["differences"] == {}
    assert found["checked"]["predictions"] == 800
    assert found["checked"]["updates"] > 100
    assert found["checked"]["checkpoint models"] >= 2
    file = str(tmp_path / "day.jsonl")
    ok("record", file, *flags, log=settings.log.url)
    again = json.loads(ok("audit", "--json", "--recording", file, log=None).stdout)
    assert again["checked"]["predictions"] == 800


def test_a_recording_of_two_workers_replays_to_the_logs_own_numbers(
    settings: Settings, tmp_path: Path
) -> None:
    """Every figure of `status --model`, the model's digest included, though each worker knew another model."""
    file = str(tmp_path / "day.jsonl")
    flags = (f"--set=log.prefix={settings.log.prefix}", *_of_epoch(settings))
    ok("record", file, *flags, log=settings.log.url)

    status = json.loads(ok("status", "--model", "--json", *flags, log=settings.log.url).stdout)
    report = json.loads(ok("replay", file, "--json", "--quiet", log=None).stdout)

    report.pop("rejected", None)  # which the log keeps in dead letters
    assert report == {name: status[name] for name in report}
    assert report["mistakes"] > 100


def _of_epoch(settings: Settings) -> list[str]:
    return [
        f"--set={name}.{key}={value}"
        for name in ("learner", "labels")
        for key, value in getattr(settings, name).model_dump(mode="json", exclude_unset=True).items()
    ]
