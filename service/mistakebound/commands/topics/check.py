"""Check a log's topics against every rule, and print the findings, for `topics check` and `config check`."""

from dataclasses import asdict
from operator import attrgetter

from mistakebound.commands.errors import CommandError
from mistakebound.commands.output import print_json, print_message, render_table
from mistakebound.commands.topics import key_placement, rules
from mistakebound.core.records import Record, Topic
from mistakebound.exit_codes import ExitCode
from mistakebound.log.newest import newest_records
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings

SAMPLE_RECORDS = 1_000


def check_topics(log: Log, settings: Settings, *, json: bool = False) -> None:
    """Print what was checked. Raises CommandError (exit code 3) when a rule failed."""
    described = log.describe()
    found = list(rules.findings(described, settings))
    examples, labels = described.get("examples"), described.get("labels")
    if examples is not None and labels is not None and examples.partitions == labels.partitions:
        count = examples.partitions
        found.append(
            key_placement.finding(_sample(log, "examples", count), _sample(log, "labels", count), count)
        )
    if json:
        print_json([asdict(finding) for finding in found])
    else:
        heads = ("topic", "rule", "found", "wanted", "verdict")
        print(render_table(heads, *(attrgetter(*heads)(finding) for finding in found)))
        for finding in found:
            if finding.remedy:
                print_message(f"{finding.verdict}: {finding.topic} {finding.rule}: {finding.remedy}")
    if failed := sum(finding.verdict == "failed" for finding in found):
        raise CommandError(f"{failed} of {len(found)} checks failed", ExitCode.CHECK_FAILED)


def _sample(log: Log, topic: Topic, partitions: int) -> list[Record]:
    """About the newest 1,000 records of a topic, spread over its partitions."""
    records: list[Record] = []
    share = -(-SAMPLE_RECORDS // partitions)
    for partition in range(partitions):
        records += newest_records(log, topic, partition, share)
    return records
