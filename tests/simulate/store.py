"""A checkpoint store of the simulation: every slot's names and bytes, slow and failing at times."""

from mistakebound.worker.checkpoints.store import SUFFIX, CheckpointError
from tests.simulate.scheduler import Scheduler
from tests.simulate.stand_ins import BEGUN_S


class Store:
    """`mistakebound.worker.checkpoints.store.CheckpointStore`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.kept: dict[str, tuple[bytes, float]] = {}
        self.fails = 0.0
        """Share of calls that fail."""

    def prepare(self) -> None: ...

    def probe(self) -> None: ...

    def sweep(self) -> None: ...

    def names(self) -> list[str]:
        self._take_time()
        return sorted(name for name in self.kept if name.endswith(SUFFIX))

    def beginning(self, name: str, length: int) -> bytes:
        return self.read(name)[0][:length]

    def read(self, name: str) -> tuple[bytes, float]:
        self._take_time()
        if name not in self.kept:
            raise FileNotFoundError(name)
        return self.kept[name]

    def size(self, name: str) -> int:
        return len(self.read(name)[0])

    def create(self, name: str, head: bytes, payload: bytes) -> None:
        self._take_time()
        if name in self.kept:
            raise FileExistsError(name)
        self.kept[name] = head + payload, BEGUN_S + self._scheduler.now_s

    def delete(self, name: str) -> None:
        self._take_time()
        self.kept.pop(name, None)

    def rename(self, name: str, to: str) -> None:
        self._take_time()
        if name not in self.kept:
            raise FileNotFoundError(name)
        self.kept[to] = self.kept.pop(name)

    def where(self, name: str = "") -> str:
        return f"store/{name}"

    def _take_time(self) -> None:
        chance = self._scheduler.random
        self._scheduler.sleep(chance.random() ** 4 * 0.2)
        if chance.random() < self.fails:
            raise CheckpointError("the store is away")
