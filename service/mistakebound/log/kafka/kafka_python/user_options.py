"""What stands under `[kafka]`: which options are not for the user, and whether TLS and SASL hold together.

Guarantees:

1. An option that the log's promises rest on, one that does not exist, and one that would have no effect
   are refused by name.
2. TLS files are read before any broker is asked, so that a message names the option that is wrong, and
   no terminal ever asks for a key's password.
3. TLS and SASL options without the protocol that uses them are refused: whoever names an authority
   does not want to talk in the clear.
4. A codec is one of Kafka's, by the name that topics have for it.
5. A number is a whole number, and a switch is true or false.
6. Heartbeats come within a session: librdkafka does not ask, and its member would never be in the group for long.
"""

import ssl
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from mistakebound.log.kafka import aws_iam, oauth_options, timeouts
from mistakebound.log.kafka.kafka_python.codecs import CODECS, NONE
from mistakebound.log.protocol import Misconfigured

GUARDED: Mapping[str, str] = {
    "bootstrap_servers": "it comes from `log.url`",
    "group_id": "it comes from `worker.group`",
    "client_id": "it names the worker's slot",
    "group_instance_id": "the slot already fences",
    "transactional_id": "it comes from `worker.group` and `worker.slot`",
    "transaction_timeout_ms": "an open transaction holds up every reader",
    "delivery_timeout_ms": "a batch must be given up before its transaction is",
    "request_timeout_ms": "a request must be given up before its batch is",
    "enable_auto_commit": "positions are committed with the results, or not at all",
    "auto_commit_interval_ms": "positions are committed with the results, or not at all",
    "default_offset_commit_callback": "positions are committed with the results, or not at all",
    "auto_offset_reset": "a lost position is refused, never guessed",
    "isolation_level": "only committed records count",
    "check_crcs": "a damaged record must not pass",
    "partition_assignment_strategy": "examples and labels of a partition must stay together",
    "allow_auto_create_topics": "topics are made by `mistakebound topics create`",
    **dict.fromkeys(("key_deserializer", "value_deserializer"), "an error in it stops the client forever"),
    **dict.fromkeys(("key_serializer", "value_serializer"), "records are written as they are"),
    "partitioner": "a key's partition is fixed by murmur2",
    **dict.fromkeys(("enable_idempotence", "retries"), "a repeated request must not repeat its records"),
    "acks": "a record is written when all replicas have it",
    "max_in_flight_requests_per_connection": "records keep their order",
    "consumer_timeout_ms": "the log waits by its own deadlines",
    "kafka_client": "the log rests on this client",
    "ssl_context": "a file cannot hold it; give ssl_cafile, ssl_certfile and ssl_keyfile",
    "ssl_ciphers": "the client ignores it",
    "sasl_oauth_token_provider": f"a file cannot hold it; set kafka.{oauth_options.URL} or kafka.{oauth_options.JWT_PATH}",
}
"""Options that are not for the user, and why."""

GSSAPI = "GSSAPI"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", oauth_options.MECHANISM, aws_iam.MECHANISM, GSSAPI)
WITH_PASSWORD = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")

OWN_OPTIONS: Mapping[str, Sequence[str]] = {
    oauth_options.MECHANISM: oauth_options.OPTIONS,
    aws_iam.MECHANISM: (aws_iam.REGION,),
}
"""Options that only one mechanism reads."""


DEFAULTS: Mapping[str, Any] = {
    name: default
    for client in (KafkaConsumer, KafkaProducer, KafkaAdminClient)
    for name, default in client.DEFAULT_CONFIG.items()
}
NUMBERS_UNSET = ("receive_buffer_bytes", "send_buffer_bytes")
"""Numbers that the client's defaults leave to the system."""


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the client takes them. Raises Misconfigured with every problem found."""
    problems = [
        *_not_for_the_user(given),
        *_kinds(given),
        *_protocol(given),
        *_compression(given),
        *_heartbeat(given),
    ]
    if not problems:
        problems = [*_sasl(given), *_tls(given)]
    if problems:
        raise Misconfigured(*problems)
    return {
        name: None if name == "compression_type" and value == NONE else value for name, value in given.items()
    }


def _not_for_the_user(given: Mapping[str, Any]) -> Iterator[str]:
    known = {*oauth_options.OPTIONS, aws_iam.REGION, *DEFAULTS}
    for name in given:
        if name in GUARDED:
            yield f"kafka.{name} ({GUARDED[name]}) is not for the user, remove it"
        elif name not in known:
            yield f"kafka.{name}: kafka-python has no such option; correct or remove it"


def _kinds(given: Mapping[str, Any]) -> Iterator[str]:
    """The clients would not ask before they need it: in a thread of their own, amid the work."""
    for name, value in given.items():
        default = DEFAULTS.get(name)
        if name in GUARDED:
            continue
        if isinstance(default, bool) and not isinstance(value, bool):
            yield f"kafka.{name} = {value!r} is neither true nor false; write one of them, without quotes"
        elif _is_number(name, default) and not (_is_whole(value) and value >= 0):
            yield f"kafka.{name} = {value!r} is not a whole number from 0 on; write one, without quotes"


def _is_number(name: str, default: object) -> bool:
    return _is_whole(default) or name in NUMBERS_UNSET


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _protocol(given: Mapping[str, Any]) -> Iterator[str]:
    protocol = given.get("security_protocol", "PLAINTEXT")
    if protocol not in PROTOCOLS:
        yield f"kafka.security_protocol = {protocol!r} does not exist; write one of {', '.join(PROTOCOLS)}"
        return
    for prefix, within in (("ssl_", ("SSL", "SASL_SSL")), ("sasl_", ("SASL_PLAINTEXT", "SASL_SSL"))):
        idle = [f"kafka.{name}" for name in given if name.startswith(prefix) and name not in GUARDED]
        if idle and protocol not in within:
            yield (
                f"{', '.join(idle)} would have no effect with kafka.security_protocol = {protocol!r}; set "
                f"kafka.security_protocol to {' or '.join(within)}, or remove the options"
            )


def _compression(given: Mapping[str, Any]) -> Iterator[str]:
    codec = given.get("compression_type")
    if codec is not None and codec != NONE and codec not in tuple(CODECS):
        names = ", ".join((NONE, *CODECS))
        yield f"kafka.compression_type = {codec!r} is not a codec of Kafka's; write one of {names}"


def _heartbeat(given: Mapping[str, Any]) -> Iterator[str]:
    session = given.get("session_timeout_ms", timeouts.SESSION_MS)
    heartbeat = given.get("heartbeat_interval_ms")
    if isinstance(heartbeat, int) and isinstance(session, int) and heartbeat >= session:
        yield (
            f"kafka.heartbeat_interval_ms = {heartbeat} leaves no heartbeat within kafka.session_timeout_ms = {session}, "
            "so that the group would take every worker for dead; write at most a third of it"
        )


def _sasl(given: Mapping[str, Any]) -> Iterator[str]:
    if not str(given.get("security_protocol", "")).startswith("SASL_"):
        return
    mechanism = given.get("sasl_mechanism")
    if mechanism not in MECHANISMS:
        wrong = "is missing" if mechanism is None else f"= {mechanism!r} is not known"
        yield f"kafka.sasl_mechanism {wrong}; write one of {', '.join(MECHANISMS)}"
        return
    for other, options in OWN_OPTIONS.items():
        idle = [f"kafka.{name}" for name in options if name in given]
        if idle and mechanism != other:
            yield (
                f"{', '.join(idle)} would have no effect with kafka.sasl_mechanism = {mechanism!r}; set it to "
                f"{other}, or remove the options"
            )
    if mechanism == oauth_options.MECHANISM:
        yield from oauth_options.problems(given)
    elif mechanism == aws_iam.MECHANISM:
        yield from aws_iam.problems(given)
    elif mechanism == GSSAPI and find_spec("gssapi") is None:
        yield f"{GSSAPI} needs a library that is missing; install `mistakebound[kerberos]`"
    elif mechanism in WITH_PASSWORD:
        file = (
            "name its file in kafka.sasl_plain_password_file or MISTAKEBOUND_KAFKA__SASL_PLAIN_PASSWORD_FILE"
        )
        for name, remedy in (("sasl_plain_username", ""), ("sasl_plain_password", f"; {file}")):
            value = given.get(name)
            if not isinstance(value, str) or not value:
                wrong = "is missing" if value in (None, "") else "is not text"
                yield f"kafka.{name} {wrong}, {mechanism} needs it{remedy}"


def _tls(given: Mapping[str, Any]) -> Iterator[str]:
    if given.get("ssl_certfile") is None:
        for name in ("ssl_keyfile", "ssl_password"):
            if given.get(name) is not None:
                yield f"kafka.{name} has no effect without kafka.ssl_certfile; give both or none"
    wrong = [problem for name in TLS_FILES if (problem := _unreadable(given, name)) is not None]
    yield from wrong
    if wrong:
        return
    for name in ("ssl_cafile", "ssl_crlfile", oauth_options.CAFILE):
        if given.get(name) is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(given[name])
            except ssl.SSLError:
                yield f"kafka.{name} = {given[name]!r} holds nothing usable in PEM"
    if given.get("ssl_certfile") is not None:
        yield from _pair(given)


TLS_FILES = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile", oauth_options.CAFILE)


def _unreadable(given: Mapping[str, Any], name: str) -> str | None:
    path = given.get(name)
    if path is None:
        return None
    if not isinstance(path, str):
        return f"kafka.{name} = {path!r} is not the name of a file"
    try:
        with Path(path).open("rb"):
            return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return f"kafka.{name} = {path!r} cannot be read ({reason}); name a file that this user may read"


def _pair(given: Mapping[str, Any]) -> Iterator[str]:
    certificate, key, password = (given.get(name) for name in ("ssl_certfile", "ssl_keyfile", "ssl_password"))
    asked = False

    def answer() -> str:
        # Without an answer of ours the client's own call would ask on the terminal.
        nonlocal asked
        asked = True
        return str(password or "")

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(str(certificate), key, answer)
    except (ssl.SSLError, ValueError) as error:
        where = "kafka.ssl_keyfile" if key is not None else "kafka.ssl_certfile"
        if asked and not password:
            yield f"the key in {where} = {key or certificate!r} is encrypted; set kafka.ssl_password"
        elif asked:
            yield f"kafka.ssl_password does not open the key in {where} = {key or certificate!r}"
        elif getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            yield f"{where} = {key or certificate!r} is not the key of kafka.ssl_certfile = {certificate!r}"
        else:
            yield (
                f"kafka.ssl_certfile = {certificate!r} with kafka.ssl_keyfile = {key!r} is no certificate "
                "with its key in PEM; the certificate comes first in its file, then those that signed it"
            )
