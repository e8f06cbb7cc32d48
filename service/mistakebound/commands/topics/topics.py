"""`topics`: create them as the guarantees need them, check them, print the schema of their messages."""

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mistakebound.commands.app import group
from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import (
    Config,
    DryRun,
    Json,
    LogUrl,
    Sets,
    choose_topic,
    open_log,
    read_settings,
)
from mistakebound.commands.output import number_of, print_json, print_message, render_table
from mistakebound.exit_codes import ExitCode

if TYPE_CHECKING:
    from mistakebound.core.records import Topic
    from mistakebound.log.protocol import TopicDescription
    from mistakebound.settings import Settings

topics = group("Create and check the topics.")


@topics.command()
def create(
    partitions: Annotated[
        int | None,
        Option(
            "--partitions",
            min=1,
            metavar="N",
            help="Of every topic; default log.partitions, else 4 (sqlite: 1).",
        ),
    ] = None,
    dry_run: DryRun = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Create the topics that are missing, with the retention and record times that the guarantees need.

    Topics that exist are never altered. The partition count is fixed for the life of a prefix.
    """
    from mistakebound.commands.topics.rules import wanted_config

    settings = read_settings(config, sets, log)
    wanted = wanted_config(settings)
    with open_log(settings) as reached:
        described = reached.describe()
        count = _choose_partitions(partitions, settings, described)
        rows = []
        for topic, found in described.items():
            plan = "create" if found is None else "exists"
            rows.append((settings.topic_name(topic), count, wanted[topic]["retention.ms"], plan))
        print(render_table(("topic", "partitions", "retention.ms", "plan"), *rows))
        if dry_run:
            print_message("nothing was created: --dry-run")
            return
        created = reached.create_topics(count, wanted) if None in described.values() else []
    print_message(f"created {number_of(len(created), 'topic')}" if created else "all topics exist already")


@topics.command()
def check(config: Config = None, sets: Sets = None, log: LogUrl = None, json: Json = False) -> None:
    """Check that every topic is set up as the guarantees need. Exit 3 when one is not.

    What labels.max_delay asks for is checked with the epoch's, where nothing gives another.
    """
    from mistakebound.commands.epoch_settings import settings_in_epoch
    from mistakebound.commands.topics.check import check_topics
    from mistakebound.worker.epochs.epochs import newest_epochs

    settings = read_settings(config, sets, log)
    with open_log(settings) as reached:
        counts = {None if found is None else found.partitions for found in reached.describe().values()}
        whole = None not in counts and len(counts) == 1  # else no topic can be read
        if settings.labels.max_delay is None and whole and (epochs := newest_epochs(reached)):
            settings = settings_in_epoch(epochs[0], config, sets, log)
        check_topics(reached, settings, json=json)


@topics.command()
def schema(
    topic: Annotated[
        str | None, Argument(metavar="TOPIC", help="Logical name, such as predictions; default all.")
    ] = None,
    asyncapi: Annotated[
        bool, Option("--asyncapi", help="An AsyncAPI 3 document of all topics, as these settings name them.")
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Print the JSON Schema of a topic's messages, or an AsyncAPI document. The log is not read."""
    from mistakebound.commands.topics.asyncapi import document
    from mistakebound.core.messages.schema import schemas

    if asyncapi:
        if topic is not None:
            raise CommandError("--asyncapi describes all topics: leave the topic out")
        print_json(document(read_settings(config, sets, log)))
        return
    known: dict[str, Any] = dict(schemas().items())
    if topic is not None and topic not in known:  # the settings are read for the sake of the error alone
        choose_topic("TOPIC", topic, tuple(known), read_settings(config, sets, log))
    print_json(known if topic is None else known[topic])


def _choose_partitions(
    asked: int | None, settings: "Settings", described: "dict[Topic, TopicDescription | None]"
) -> int:
    """The count to create with: from the option, the settings, the topics that exist, or the default."""
    from mistakebound.commands.topics.rules import default_partitions

    existing = [found for found in described.values() if found is not None]
    count = asked or settings.log.partitions
    if count is None:
        count = min((found.partitions for found in existing), default=default_partitions(settings))
    if any(found.partitions != count for found in existing):
        listed = ", ".join(f"{found.name} {found.partitions}" for found in existing)
        raise CommandError(
            f"topics exist with other partition counts than {count} ({listed}). Counts are fixed for the "
            "life of a prefix: create with the same count, or choose a new log.prefix",
            ExitCode.REFUSED,
        )
    return count
