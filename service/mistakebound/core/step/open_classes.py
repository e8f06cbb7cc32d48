"""Open classes: how many one partition may know, and how long their names may be together.

A class is known as soon as a label of it is parked or applied, so a parked label never adds one later. Both limits
exist because each class is a name in the tallies, which every partition step writes whole, and a score in every
prediction: no peer may make those too large to be written.
"""

from collections.abc import Collection
from functools import lru_cache

from mistakebound.core.faults import BadRecord
from mistakebound.core.messages.inputs import CLASS_NAMES_BYTES
from mistakebound.core.messages.labels import spelled
from mistakebound.core.messages.schema import encode
from mistakebound.settings import LabelValue


@lru_cache(maxsize=4_096)
def _bytes(name: str) -> int:
    return len(encode(name))


def add_class(
    label: LabelValue, applied: Collection[str], parked: Collection[str], most: int
) -> tuple[int, int] | None:
    """If the label's class is new: (classes known with it, bytes of their names as JSON). Raises BadRecord beyond a limit.

    `applied` and `parked`: the classes of labels applied so far and of those parked, as tallies spell them.
    """
    name = spelled(label)
    if name in applied or name in parked:
        return None
    known = {*applied, *parked, name}
    if len(known) > most:
        raise BadRecord(
            "unknown-label", f"label {name[:60]!r} would be class {len(known)}; raise labels.max_classes"
        )
    size = sum(map(_bytes, known))
    if size > CLASS_NAMES_BYTES:
        raise BadRecord(
            "unknown-label",
            f"with label {name[:60]!r} the names of all classes would take {size} bytes as JSON; at most "
            f"{CLASS_NAMES_BYTES} are allowed: send shorter ones, or declare labels.classes",
        )
    return len(known), size
