"""The audit on a real broker: two workers' log, with transaction markers between its records."""

import json
import time
from pathlib import Path

from tests.commands.support.command_line import ok
from tests.log.kafka.end_to_end.test_sharing import owned, until, working
from tests.worker.support.working import opened, settings_for, stream


def test_the_log_of_two_workers_is_clean(kafka_bootstrap: str, tmp_path: Path) -> None:
    """One joins under load and partitions move: each prediction is made again by the version that it carries."""
    settings = settings_for(
        f"kafka://{kafka_bootstrap}",
        batch={"max_records": 40},
        labels={"max_delay": 0.2, "parking": 0.05, "remember": 30},
        learner={"kind": "averaged-perceptron"},
        checkpoint={"url": str(tmp_path / "checkpoints")},
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
    flags = (
        "--set",
        f"log.prefix={settings.log.prefix}",
        "--set",
        f"checkpoint.url={tmp_path / 'checkpoints'}",
    )
    found = json.loads(ok("audit", "--json", *flags, log=settings.log.url).stdout)
    assert found["differences"] == {}
    assert found["checked"]["predictions"] == 800
    assert found["checked"]["updates"] > 100
    assert found["checked"]["checkpoint models"] >= 2
    file = str(tmp_path / "day.jsonl")
    ok("record", file, "--set", f"log.prefix={settings.log.prefix}", log=settings.log.url)
    again = json.loads(ok("audit", "--json", "--recording", file, log=None).stdout)
    assert again["checked"]["predictions"] == 800
