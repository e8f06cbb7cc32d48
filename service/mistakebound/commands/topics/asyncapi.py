"""The topics as an AsyncAPI 3 document: what is received and sent where, and the schema of each message."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from mistakebound.commands.topics.rules import wanted_config
from mistakebound.core.faults import REASONS
from mistakebound.core.messages.inputs import pointer_keys
from mistakebound.core.messages.schema import components
from mistakebound.core.records import INPUTS, TOPICS, Topic
from mistakebound.log.kafka import aws_iam, oauth_options
from mistakebound.settings import MessageSettings, Settings
from mistakebound.worker.metrics.definitions import build_version

VERSION = "3.0.0"
BINDING = "0.5.0"
_SCHEMES = {
    "PLAIN": "plain",
    "SCRAM-SHA-256": "scramSha256",
    "SCRAM-SHA-512": "scramSha512",
    "GSSAPI": "gssapi",
}
_BY_TOKEN = {
    oauth_options.MECHANISM: "SASL OAUTHBEARER: the token is sent to the broker.",
    aws_iam.MECHANISM: "SASL OAUTHBEARER with a request that AWS IAM's credentials sign, in place of a token.",
}
_PURPOSES: dict[Topic, str] = {
    "examples": "Unlabelled examples, to be predicted at once.",
    "labels": "True labels, some time later. An example and its label are in partitions of the same number.",
    "predictions": "One prediction for every example, in its partition, with its key and headers.",
    "outcomes": "Every decision in order: what became of each example and label, with the tallies.",
    "updates": "The mistakes learned from: folded, they are the model. An epoch's settings come first.",
    "dead-letters": "What could not be read, as it was sent, with the reason in the headers.",
}
_DEAD_LETTER_HEADERS = {
    "reason": {"type": "string", "enum": list(REASONS)},
    "detail": {"type": "string", "description": "what was wrong, in words"},
    "detail-sha256": {"type": "string", "description": "digest of the detail, in hexadecimal digits"},
    "topic": {"type": "string", "enum": list(INPUTS)},
    "partition": {"type": "string", "pattern": "^[0-9]+$"},
    "offset": {"type": "string", "pattern": "^[0-9]+$"},
    "timestamp": {"type": "string", "pattern": "^-?[0-9]+$", "description": "record time in ms"},
    "headers-dropped": {"type": "string", "pattern": "^[0-9]+$", "description": "how many did not fit"},
    "key-length": {"type": "string", "pattern": "^[0-9]+$", "description": "in bytes, where it was cut"},
    "key-sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "of the whole key"},
    "value-length": {"type": "string", "pattern": "^[0-9]+$", "description": "in bytes, where it was cut"},
    "value-sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "of the whole value"},
}
_ALWAYS = ("reason", "detail", "topic", "partition", "offset", "timestamp")


def document(settings: Settings) -> dict[str, Any]:
    """The document for these settings. It holds no secret: credentials do not belong in a contract."""
    names, schemas = components("#/components/schemas/{name}")
    _move_properties(schemas["Example"], settings.messages, ("id", "features"))
    _move_properties(schemas["Label"], settings.messages, ("id", "label", "features", "prediction"))
    of_topic = {**names, "dead-letters": ["DeadLetter"]}
    found: dict[str, Any] = {
        "asyncapi": VERSION,
        "info": {
            "title": "mistakebound",
            "version": build_version(),
            "description": (
                f"Topics of the group {settings.group!r}. Each step's records and offsets are one transaction: "
                "read the sent topics with isolation level read_committed."
            ),
        },
        "defaultContentType": "application/json",
        "servers": _servers(settings),
        "channels": {_name(topic): _channel(topic, of_topic[topic], settings) for topic in TOPICS},
        "operations": dict(_operation(topic) for topic in TOPICS),
        "components": {
            "messages": {
                name: _message(name, settings.messages) for each in of_topic.values() for name in each
            },
            "schemas": schemas,
        },
    }
    return {key: value for key, value in found.items() if value != {}}


def _operation(topic: Topic) -> tuple[str, dict[str, Any]]:
    action = "receive" if topic in INPUTS else "send"
    channel = {"$ref": f"#/channels/{_name(topic)}"}
    return f"{action}-{topic}", {"action": action, "channel": channel, "summary": _PURPOSES[topic]}


def _name(topic: Topic) -> str:
    """A key that a `$ref` can name."""
    return topic.replace("-", "_")


def _channel(topic: Topic, messages: list[str], settings: Settings) -> dict[str, Any]:
    wanted: dict[str, Any] = dict(wanted_config(settings)[topic])
    wanted["cleanup.policy"] = [wanted["cleanup.policy"]]
    for key in ("retention.ms", "retention.bytes"):
        wanted[key] = int(wanted[key])
    count = {} if settings.log.partitions is None else {"partitions": settings.log.partitions}
    name = settings.topic_name(topic)
    kafka = {"topic": name, **count, "topicConfiguration": wanted, "bindingVersion": BINDING}
    return {
        "address": name,
        "description": _PURPOSES[topic],
        "messages": {message: {"$ref": f"#/components/messages/{message}"} for message in messages},
        "bindings": {"kafka": kafka},
    }


def _message(name: str, pointers: MessageSettings) -> dict[str, Any]:
    """The message of this name, which is its schema's too. By its key an example meets its label."""
    if name == "DeadLetter":
        headers = {f"mistakebound.{key}": value for key, value in _DEAD_LETTER_HEADERS.items()}
        required = [f"mistakebound.{key}" for key in _ALWAYS]
        return {
            "name": name,
            "contentType": "application/octet-stream",
            "headers": {"type": "object", "properties": headers, "required": required},
            "payload": {"description": "Whatever was sent; cut where it was too large."},
        }
    message: dict[str, Any] = {"name": name, "payload": {"$ref": f"#/components/schemas/{name}"}}
    if name in ("Example", "Label", "Prediction"):
        pointer = "/id" if name == "Prediction" else pointers.id
        message["correlationId"] = {"location": f"$message.payload#{pointer}"}
        key = {"type": "string", "description": "The id, where the value has none."}
        message["bindings"] = {"kafka": {"key": key, "bindingVersion": BINDING}}
    return message


def _move_properties(schema: dict[str, Any], pointers: MessageSettings, names: tuple[str, ...]) -> None:
    """Move the schema's properties to where `messages.*` says that they are."""
    if any(getattr(pointers, name) != f"/{name}" for name in names):
        for condition in ("if", "then"):  # they name the places of the defaults
            schema.pop(condition, None)
    properties, needed = schema.pop("properties"), schema.pop("required")
    for name in names:
        inner = schema
        keys = pointer_keys(getattr(pointers, name))
        for depth, key in enumerate(keys, 1):
            if key.isdigit():  # an array index, or a name: the pointer fits either
                inner.pop("type", None)
                break
            if name in needed:
                inner["required"] = sorted({*inner.get("required", ()), key})
            found = properties[name] if depth == len(keys) else {"type": "object"}
            inner = inner.setdefault("properties", {}).setdefault(key, found)


def _servers(settings: Settings) -> dict[str, Any]:
    """The brokers that `log.url` names, whichever client reaches them; none for a log in a file."""
    scheme, _, hosts = (settings.log.url or "").partition("://")
    if scheme not in ("kafka", "kafka+confluent"):
        return {}
    protocol = str(settings.kafka.get("security_protocol", "PLAINTEXT"))
    server: dict[str, Any] = {"protocol": "kafka-secure" if protocol.endswith("SSL") else "kafka"}
    if protocol.startswith("SASL") and (login := _login(settings.kafka)) is not None:
        server["security"] = [login]
    return {
        f"broker{number}": {"host": host, **server}
        for number, host in enumerate(hosts.rstrip("/").split(","))
    }


def _login(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """How a client logs in. The specification has no type for OAUTHBEARER: what it knows of tokens is OAuth 2.0's."""
    mechanism = str(given.get("sasl_mechanism", ""))
    if mechanism in _SCHEMES:
        return {"type": _SCHEMES[mechanism]}
    if mechanism not in _BY_TOKEN:
        return None
    login: dict[str, Any] = {"type": "oauth2", "description": _BY_TOKEN[mechanism], "flows": {}}
    if mechanism == oauth_options.MECHANISM and (url := given.get(oauth_options.URL)) is not None:
        scopes = str(given.get(oauth_options.SCOPE, "")).split()
        issuer = urlsplit(str(url))
        without_user = issuer._replace(netloc=issuer.netloc.rpartition("@")[2]).geturl()
        login["flows"] = {
            "clientCredentials": {"tokenUrl": without_user, "availableScopes": dict.fromkeys(scopes, "")}
        }
        login["scopes"] = scopes
    return login
