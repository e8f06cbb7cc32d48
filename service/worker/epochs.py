"""The epoch that a log is in: what fixed every result so far, and must be what is set now.

The first worker begins epoch 1 in all partitions of `updates`, in one fenced transaction. Afterwards a
worker whose settings differ is refused; an epoch is never changed in place.
"""

from collections.abc import Sequence

from service.core.messages import Epoch, encode
from service.core.model import changed_settings, first_epoch
from service.core.records import Outgoing
from service.log.protocol import Fenced, Log, Refused
from service.settings import Settings

ATTEMPTS = 10


def begin_first(log: Log, settings: Settings) -> None:
    """Begin epoch 1 where `updates` holds no record. Raises Refused when others keep coming in between,
    or where topics are missing."""
    partitions = log.partitions

    def decide() -> Sequence[Outgoing]:
        if _begun(log):
            return ()
        epoch = encode(first_epoch(settings))
        return [Outgoing("updates", p, None, epoch) for p in range(partitions)]

    for _ in range(ATTEMPTS):
        if _begun(log):
            return
        try:
            log.exclusively(decide)
        except Fenced:
            continue  # another worker was quicker, or is at it: read again
    if not _begun(log):
        raise Refused(f"no epoch could be begun in {ATTEMPTS} attempts: other workers keep coming in between")


def _begun(log: Log) -> bool:
    # All partitions begin together, so one of them tells.
    return next(iter(log.read("updates", 0, log.low_watermark("updates", 0))), None) is not None


def refuse_changed(epoch: Epoch, settings: Settings) -> None:
    """Raises Refused, naming each key that differs, its two values and the remedy."""
    changed = changed_settings(epoch, settings)
    if changed:
        listed = "\n  ".join(changed)
        raise Refused(
            f"the settings differ from those of epoch {epoch.epoch}, which fixed every result in this log:\n"
            f"  {listed}\nSet them back, or take another log.prefix and replay the inputs there."
        )
