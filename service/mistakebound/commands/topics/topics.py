"""`topics`: create them as the guarantees need them, check them, print what their records look like."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mistakebound.commands.exit_codes import CommandError, ExitCode
from mistakebound.commands.options import Config, Json, LogUrl, Sets, opened, settings_of
from mistakebound.commands.output import as_json, message, table

if TYPE_CHECKING:
    from mistakebound.commands.topics.rules import TopicFinding
    from mistakebound.core.records import Record, Topic
    from mistakebound.log.protocol import Log, TopicDescription
    from mistakebound.settings import Settings

SAMPLE_RECORDS = 1_000

topics = typer.Typer(
    help="Create and check the topics.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


@topics.command()
def create(
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", min=1, help="Of every topic; default log.partitions, else 4 (sqlite: 1)."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Print the plan and do nothing.")] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Create the missing topics, with the retention and record times that the guarantees need.

    Existing topics are never altered. The partition count is fixed for the life of a prefix.
    """
    from mistakebound.commands.topics.rules import wanted_config

    settings = settings_of(config, sets, log)
    wanted = wanted_config(settings)
    with opened(settings) as reached:
        described = reached.describe()
        count = _partitions(partitions, settings, described)
        missing = [topic for topic, found in described.items() if found is None]
        rows = [
            (
                settings.topic_name(topic),
                count,
                wanted[topic]["retention.ms"],
                "create" if topic in missing else "exists",
            )
            for topic in described
        ]
        print(table(("topic", "partitions", "retention.ms", "plan"), rows))
        if dry_run:
            message("nothing was created: --dry-run")
            return
        created = reached.create_topics(count, wanted) if missing else []
    message(f"created {len(created)} topics" if created else "all topics exist already")


@topics.command()
def check(config: Config = None, sets: Sets = None, log: LogUrl = None, json: Json = False) -> None:
    """Check that the topics keep what the guarantees need. Exit 3 when one does not."""
    settings = settings_of(config, sets, log)
    with opened(settings) as reached:
        report(reached, settings, as_json_text=json)


@topics.command()
def schema(
    topic: Annotated[str | None, typer.Argument(metavar="[TOPIC]", help="Logical name; default all.")] = None,
    asyncapi: Annotated[
        bool,
        typer.Option("--asyncapi", help="An AsyncAPI 3 document of all topics, as these settings name them."),
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Print the JSON Schema of a topic's messages, or an AsyncAPI document. No log is asked."""
    from mistakebound.commands.topics.asyncapi import document
    from mistakebound.core.messages.schema import schemas

    if asyncapi:
        if topic is not None:
            raise CommandError(ExitCode.USAGE, "--asyncapi describes all topics: leave the topic out")
        as_json(document(settings_of(config, sets, log)))
        return
    known: dict[str, Any] = dict(schemas().items())
    if topic is None:
        as_json(known)
    elif topic in known:
        as_json(known[topic])
    else:
        raise CommandError(ExitCode.USAGE, f"no topic {topic!r}: choose one of {', '.join(known)}")


def report(log: "Log", settings: "Settings", *, as_json_text: bool) -> None:
    """Print what was checked. Raises CommandError (exit code 3) when a rule failed."""
    found = examine(log, settings)
    if as_json_text:
        as_json([asdict(finding) for finding in found])
    else:
        print(table(("topic", "rule", "found", "wanted", "verdict"), [_row(finding) for finding in found]))
        for finding in found:
            if finding.remedy:
                message(f"{finding.verdict}: {finding.topic} {finding.rule}: {finding.remedy}")
    failed = sum(finding.verdict == "failed" for finding in found)
    if failed:
        raise CommandError(ExitCode.CHECK_FAILED, f"{failed} of {len(found)} checks failed")


def examine(log: "Log", settings: "Settings") -> "list[TopicFinding]":
    """Every rule on the log's topics, the sample of keys last."""
    from mistakebound.commands.topics import key_placement, rules

    described = log.describe()
    found = list(rules.findings(described, settings))
    examples, labels = described.get("examples"), described.get("labels")
    if examples is not None and labels is not None and examples.partitions == labels.partitions:
        count = examples.partitions
        found.append(
            key_placement.finding(sample(log, "examples", count), sample(log, "labels", count), count)
        )
    return found


def sample(log: "Log", topic: "Topic", partitions: int) -> "list[Record]":
    """About the newest 1,000 records of a topic, spread over its partitions."""
    records: list[Record] = []
    share = -(-SAMPLE_RECORDS // partitions)
    for partition in range(partitions):
        low, high = log.low_watermark(topic, partition), log.high_watermark(topic, partition)
        if low < high:
            records += log.read(topic, partition, max(low, high - share), high)
    return records


def _row(finding: "TopicFinding") -> Sequence[str]:
    return finding.topic, finding.rule, finding.found, finding.wanted, finding.verdict


def _partitions(
    asked: int | None, settings: "Settings", described: "dict[Topic, TopicDescription | None]"
) -> int:
    """The count to create with: as asked, as set, as the topics that exist, or the default."""
    existing = {found.partitions for found in described.values() if found is not None}
    count = asked or settings.log.partitions
    if count is None:
        count = min(existing, default=1 if (settings.log.url or "").startswith("sqlite:") else 4)
    if existing - {count}:
        listed = ", ".join(
            f"{found.name} {found.partitions}" for found in described.values() if found is not None
        )
        raise CommandError(
            ExitCode.REFUSED,
            f"topics exist with other partition counts than {count} ({listed}). Counts are fixed for the "
            "life of a prefix: create with the same count, or choose a new log.prefix",
        )
    return count
