"""Check a log's topics against every rule, and print the findings, for `topics check` and `config check`."""

from collections.abc import Iterator, Sequence
from operator import attrgetter

from mistakebound.commands.errors import CommandError
from mistakebound.commands.json_forms import TopicFinding
from mistakebound.commands.output import print_form, print_message, render_table
from mistakebound.commands.registry import schemas_named_by
from mistakebound.commands.topics import content, key_placement, rules
from mistakebound.core.records import Record
from mistakebound.exit_codes import ExitCode
from mistakebound.log.placement import sample
from mistakebound.log.protocol import Log
from mistakebound.settings import Settings


def check_topics(log: Log, settings: Settings, *, json: bool = False) -> None:
    """Print what was checked. Raises CommandError (exit code 3) when a rule failed."""
    described = log.describe()
    found = list(rules.findings(described, settings))
    examples, labels = described.get("examples"), described.get("labels")
    if examples is not None and labels is not None and examples.partitions == labels.partitions:
        count = examples.partitions
        sampled = sample(log, "examples", count), sample(log, "labels", count)
        misplaced = settings.worker.misplaced_labels
        found.append(key_placement.finding(*sampled, count, settings.messages.id, misplaced))
        found += _contents(settings, *sampled)
    if json:
        print_form(found)
    else:
        heads = ("topic", "rule", "found", "wanted", "verdict")
        print(render_table(heads, *(attrgetter(*heads)(finding) for finding in found)))
        for finding in found:
            if finding.remedy:
                print_message(f"{finding.verdict}: {finding.topic} {finding.rule}: {finding.remedy}")
    if failed := sum(finding.verdict == "failed" for finding in found):
        raise CommandError(f"{failed} of {len(found)} checks failed", ExitCode.CHECK_FAILED)


def _contents(
    settings: Settings, examples: Sequence[Record], labels: Sequence[Record]
) -> Iterator[TopicFinding]:
    """Whether the samples can be read. Where the registry gives no answer that is not known, and only said."""
    try:
        schemas = schemas_named_by((*examples, *labels), settings, {})
    except CommandError as error:
        for stream in ("examples", "labels"):
            yield content.untried(stream, str(error))
        return
    read = content.readers(settings, schemas.get)
    yield content.finding("examples", examples, read["examples"])
    yield content.finding("labels", labels, read["labels"])
