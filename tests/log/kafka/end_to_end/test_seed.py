"""Seeds on a real broker: one transaction with the positions, and a worker that goes on from them."""

from mistakebound.core.messages.schema import Epoch, Update, read_update
from mistakebound.core.replay.replay import Row, replay_rows
from mistakebound.settings import Settings
from mistakebound.worker.epochs.seeding import execute, planned
from mistakebound.worker.takeover import fold_updates
from tests.log.kafka.end_to_end.conftest import inputs
from tests.worker.support.working import Run, opened

PATIENCE_S = 60.0
ROWS = [Row(f"i{n}", {"a": n % 5 - 2.0, f"b{n % 3}": 1.0}, n % 7 < 3) for n in range(40)]


def test_a_log_is_seeded_before_and_between_work(settings: Settings) -> None:
    """First without any positions, then with them; counts for life and positions stay as they were."""
    with opened(settings, 2) as log:
        execute(log, settings, planned(log, settings, ROWS), PATIENCE_S)
        assert (
            fold_updates(log, settings, None).model.digest() == replay_rows(ROWS, settings, 2).model.digest()
        )
        log.append(inputs(60))
        held = Run(log, settings).held.state
        before, positions = held.model.digest(), log.group_positions()
        plan = planned(log, settings, ROWS)
        execute(log, settings, plan, PATIENCE_S)
        assert log.group_positions() == positions
        seeded = fold_updates(log, settings, None).model
        assert (seeded.epoch, seeded.updates) == (4, [0, 0])
        assert (seeded.digest() != before) is any(plan.updates)
        log.append(inputs(60, first=1_000))
        again = Run(log, settings).held.state
        labelled = sum(ledger.tallies.life.examples["labelled"] for ledger in again.ledgers.values())
        assert labelled == 120
        own = [
            each
            for p in range(2)
            for each in map(read_update, log.read("updates", p, 0))
            if isinstance(each, Update) and not each.seed
        ]
        assert sum(ledger.tallies.life.updates for ledger in again.ledgers.values()) == len(own)
        epochs = [
            each.epoch for each in map(read_update, log.read("updates", 1, 0)) if isinstance(each, Epoch)
        ]
        assert epochs == [1, 2, 3, 4]
