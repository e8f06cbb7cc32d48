"""The audit: every number of a log made again from its topics, and compared.

It shares the learners and the reading of messages with the worker; the label outcomes, the counting and the order of
a partition step are written a second time. It takes one partition after the other, each in one pass, and holds one
model, the ids of one partition, and one step.
"""

from collections.abc import Callable, Iterable

from msgspec import UNSET

from mistakebound.core.audit.chain import check_chain
from mistakebound.core.audit.findings import Finding, Findings
from mistakebound.core.audit.ledgers import Ledgers
from mistakebound.core.audit.models import check_model
from mistakebound.core.audit.partition_steps import RecordedStep
from mistakebound.core.audit.positions import check_positions
from mistakebound.core.audit.topics_read import Source
from mistakebound.core.audit.walk import Walk
from mistakebound.core.checkpoint_content import Checkpoint
from mistakebound.core.faults import BadSnapshot
from mistakebound.core.messages.schema import Epoch
from mistakebound.settings import MessageSettings

__all__ = ["Finding", "Findings", "Source", "audit"]

Loads = Iterable[tuple[str, Callable[[], Checkpoint]]]


def audit(
    source: Source,
    messages: MessageSettings,
    checkpoints: Loads,
    findings: Findings,
    progress: Callable[[int, int], None] = lambda partition, offset: None,  # noqa: ARG005
) -> Findings:
    """Audit every partition, and the checkpoints: (name, how to read it), which may raise BadSnapshot.

    `progress` is called with a partition and the offset of its `outcomes` reached.
    """
    epochs = check_chain(source, findings)
    _note_other_pointers(epochs.values(), messages, findings)
    ledgers = Ledgers()
    whole: list[tuple[str, Callable[[], Checkpoint]]] = []
    for name, load in checkpoints:
        try:
            found = load()
        except BadSnapshot as error:
            findings.check("checkpoint files", name, False, str(error))
            continue
        findings.check("checkpoint files", name, True, "")
        ledgers.expect(name, found.model.epoch, found.ledgers)
        whole.append((name, load))
    newest: list[tuple[int, RecordedStep | None]] = []
    for partition in range(source.partitions):
        walk = Walk(source, partition, epochs, messages, ledgers, findings, progress)
        walk.run()
        if walk.whole:
            newest.append((partition, walk.last))
    check_positions(source, newest, findings)
    ledgers.finish(findings)
    for name, load in whole:  # read again: no more than one model is held at a time
        try:
            found = load()
        except BadSnapshot:
            findings.note("checkpoints replaced by newer ones meanwhile")
            continue
        check_model(source, name, found, epochs, messages, findings)
    return findings


def _note_other_pointers(epochs: Iterable[Epoch], given: MessageSettings, findings: Findings) -> None:
    """The inputs are read as each epoch had it, whatever is given."""
    for epoch in epochs:
        own = {} if epoch.messages is UNSET else epoch.messages
        for name in sorted(given.model_fields_set & own.keys()):
            if own[name] != getattr(given, name):
                findings.note(
                    f"pointer messages.{name} was given as {getattr(given, name)!r}, but epoch {epoch.epoch} began with "
                    f"{own[name]!r}: the latter was used"
                )
