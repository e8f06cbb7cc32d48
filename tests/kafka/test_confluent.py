"""The client of `kafka+confluent://`: its options and its absence.

What every log must do is asked of it in `tests/contract`; `tests/faults/test_two_clients.py` kills it.
"""

import sys

import pytest

from service.log import open_log
from service.log.kafka.confluent.clients import translated_options
from service.log.protocol import Misconfigured
from service.settings import LogSettings, Settings


def test_options_keep_their_names() -> None:
    """`[kafka]` reads the same for both clients; each option goes to the clients that know it."""
    given = {
        "security_protocol": "SSL",
        "ssl_cafile": "ca.pem",
        "fetch_min_bytes": 10,
        "compression_type": None,
    }

    told = translated_options(given)

    tls = {"security.protocol": "SSL", "ssl.ca.location": "ca.pem"}
    assert told == {
        "consumer": {**tls, "fetch.min.bytes": 10},
        "producer": {**tls, "compression.type": "none"},
    }


def test_an_option_without_counterpart_is_refused_by_name() -> None:
    """It would be silently without effect otherwise."""
    with pytest.raises(Misconfigured, match=r"kafka\.sock_chunk_bytes: librdkafka has no such option"):
        translated_options({"sock_chunk_bytes": 4_096})


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    for name in [each for each in sys.modules if each.startswith("service.log.kafka.confluent")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("service.log.kafka.confluent", raising=False)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    with pytest.raises(Misconfigured, match=r"pip install 'mistakebound\[confluent\]'"):
        open_log(Settings(log=LogSettings(url="kafka+confluent://127.0.0.1:9")))
