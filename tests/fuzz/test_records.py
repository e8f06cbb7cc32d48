"""A short round of the fuzz of whole records, with each client; `python -m tests.fuzz.records` goes on for longer."""

import secrets
from pathlib import Path

import pytest

from tests.fuzz.records import CLIENTS, fuzz

pytestmark = pytest.mark.kafka
SECONDS = 6.0


@pytest.mark.parametrize("client", CLIENTS)
def test_no_record_stops_a_worker(
    client: str, kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever producers write, and however their transactions end: nothing waits, and the recount holds."""
    monkeypatch.setenv("MISTAKEBOUND_FAULTS_CLIENT", client)
    seed = secrets.randbelow(2**40)
    print(f"python -m tests.fuzz.records --client {client} --seed {seed}")

    found = fuzz(kafka_bootstrap, SECONDS, client, seed, tmp_path)

    assert found["predicted"] > 0
    assert found["dead letters"]
