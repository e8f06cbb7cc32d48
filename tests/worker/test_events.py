"""What happens is reported once, and shown to all who observe."""

from typing import Any

from mistakebound.worker.events import Event, PhaseEntered, PollReturned, Settled, after_commits, show_all
from mistakebound.worker.takeover import WorkerState


class Noting:
    def __init__(self, name: str, seen: list[tuple[str, Event]]) -> None:
        self._name, self._seen = name, seen

    def observe(self, event: Event) -> None:
        self._seen.append((self._name, event))


def test_each_event_goes_to_all_in_their_order() -> None:
    """So that one may rest on what another has made of the same event."""
    seen: list[tuple[str, Event]] = []
    show = show_all(Noting("first", seen).observe, Noting("second", seen).observe)
    events = (PhaseEntered("running"), PollReturned(1.0))
    for event in events:
        show(event)
    assert seen == [(name, event) for event in events for name in ("first", "second")]


def test_a_commit_hook_is_called_only_when_something_was_committed() -> None:
    """Rounds in which nothing happened are not worth a line of progress."""
    held: Any = object()
    calls: list[WorkerState] = []
    show = after_commits(calls.append)
    for event in (Settled(held, 0), PollReturned(1.0), Settled(held, 3)):
        show(event)
    assert calls == [held]
