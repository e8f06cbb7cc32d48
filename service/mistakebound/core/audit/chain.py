"""The chain of updates: numbers without gaps, versions that grow, and the same epochs in every partition."""

from mistakebound.core.audit.findings import Findings
from mistakebound.core.audit.form import wrong_form
from mistakebound.core.audit.topics_read import Source
from mistakebound.core.faults import BadLog
from mistakebound.core.messages.schema import Epoch, Update, read_update


def check_chain(source: Source, findings: Findings) -> dict[int, Epoch]:
    """Check every partition of `updates`; returns the epochs by number."""
    epochs: dict[int, Epoch] = {}
    begun: dict[int, str] = {}
    seen: list[list[int]] = []
    for partition in range(source.partitions):
        try:
            seen.append(_Chain(partition, source, epochs, begun, findings).numbers)
        except BadLog as error:
            findings.check("update numbers", f"updates-{partition}", False, str(error))
            seen.append([])
    for partition, numbers in enumerate(seen):
        text = f"its epochs are {numbers}, all epochs {sorted(epochs)}"
        findings.check("epochs", f"updates-{partition}", numbers == sorted(epochs), text)
    return epochs


class _Chain:
    """One partition's pass."""

    def __init__(
        self,
        partition: int,
        source: Source,
        epochs: dict[int, Epoch],
        begun: dict[int, str],
        findings: Findings,
    ) -> None:
        """`begun`: for each of the epochs, the record that began it."""
        self.numbers: list[int] = []
        self._partition, self._epochs, self._findings = partition, epochs, findings
        self._begun, self._where = begun, "nothing"
        self._n = 0
        self._version = [0] * source.partitions
        for record in source.read("updates", partition):
            message = read_update(record)
            wrong = wrong_form(record, message)
            findings.check("record forms", record.location, not wrong, wrong)
            if isinstance(message, Epoch):
                self._begin(message, record.location)
            else:
                self._follow(message, record.location)

    def _begin(self, epoch: Epoch, where: str) -> None:
        known = self._epochs.setdefault(epoch.epoch, epoch)
        first = self._begun.setdefault(epoch.epoch, where)
        rising = not self.numbers or epoch.epoch > self.numbers[-1]
        text = f"epoch {epoch.epoch} follows {self.numbers} or differs from what {first} says of it"
        self._findings.check("epochs", where, rising and known == epoch, text)
        self.numbers.append(epoch.epoch)
        self._where = where
        self._n, self._version = 0, [0] * len(self._version)

    def _follow(self, update: Update, where: str) -> None:
        epoch = self.numbers[-1] if self.numbers else 0
        self._findings.check(
            "update numbers",
            where,
            update.epoch == epoch and update.n == self._n + 1,
            lambda: (
                f"update {update.n} of epoch {update.epoch} follows update {self._n} of epoch {epoch}, begun by "
                f"{self._where}: "
                + ("it is there twice" if update.n <= self._n else f"update {self._n + 1} is missing")
            ),
        )
        if update.seed:
            self._findings.note("seeds: what they were learned from is not in the log")
        version = update.model.updates
        if len(version) != len(self._version) or len(update.clock) != len(self._version):
            raise BadLog(f"{where}: its version has {len(version)} partitions, not {len(self._version)}")
        own = version[self._partition]
        back = [q for q, (now, then) in enumerate(zip(version, self._version, strict=True)) if now < then]
        self._findings.check(
            "update versions",
            where,
            update.model.epoch == update.epoch and own == update.n - 1 and not back,
            lambda: (
                f"update {update.n} was decided by the model {update.model.epoch}:{version}, which is stale: "
                f"it has {own} of the {update.n - 1} updates before it in its own partition, and "
                f"goes back in {back or 'none'} of the partitions"
            ),
        )
        self._n = max(self._n, update.n)
        self._version = [max(pair) for pair in zip(self._version, version, strict=True)]
