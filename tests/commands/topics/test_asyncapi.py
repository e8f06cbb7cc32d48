"""The AsyncAPI document is one, and says of the topics what is in them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from mistakebound.core.records import TOPICS, Outgoing
from mistakebound.settings import Settings
from tests.commands.support.command_line import ok, run
from tests.worker.support.working import Run, altered, opened, settings_for, stream

SPECIFICATION = json.loads(
    (Path(__file__).parent / "asyncapi-spec" / "asyncapi-3.0.0.json").read_text(encoding="utf-8")
)
SETTINGS = {
    "nothing set": [],
    "secured brokers": [
        "log.url=kafka://a.example:9093,b.example:9093",
        "log.prefix=prod.",
        "log.partitions=12",
        "labels.max_delay=P7D",
        "kafka.security_protocol=SASL_SSL",
        "kafka.sasl_mechanism=SCRAM-SHA-512",
        "kafka.sasl_plain_username=worker",
        "kafka.sasl_plain_password=not-to-be-seen",
    ],
    "tokens of an issuer": [
        "log.url=kafka+confluent://a.example:9093",
        "kafka.security_protocol=SASL_SSL",
        "kafka.sasl_mechanism=OAUTHBEARER",
        "kafka.sasl_oauth_url=https://me:not-to-be-seen@issuer.example/token",
        "kafka.sasl_oauth_client_id=worker",
        "kafka.sasl_oauth_client_secret=not-to-be-seen",
        "kafka.sasl_oauth_scope=kafka other",
    ],
    "tokens of the platform": [
        "log.url=kafka://a.example:9093",
        "kafka.security_protocol=SASL_SSL",
        "kafka.sasl_mechanism=OAUTHBEARER",
        "kafka.sasl_oauth_jwt_path=/var/run/token",
    ],
    "requests signed for AWS": [
        "log.url=kafka://a.example:9098",
        "kafka.security_protocol=SASL_SSL",
        "kafka.sasl_mechanism=AWS_MSK_IAM",
        "kafka.sasl_aws_region=eu-west-1",
    ],
    "other places": [
        "messages.id=/payment/id",
        "messages.features=/payment/x~1y",
        "messages.label=/is/0/fraud",
    ],
}


def document(*sets: str) -> dict[str, Any]:
    flags = [word for each in sets for word in ("--set", each)]
    found: dict[str, Any] = json.loads(ok("topics", "schema", "--asyncapi", *flags, log=None).stdout)
    return found


def resolved(whole: dict[str, Any], part: Any) -> Any:
    """What a `$ref` to this document names; anything else as it is."""
    while isinstance(part, dict) and "$ref" in part:
        found: Any = whole
        for token in part["$ref"].removeprefix("#/").split("/"):
            found = found[token]
        part = found
    return part


def closed(schema: Any) -> Any:
    """The schema, with no property but those that it names."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    return {**inner, "additionalProperties": False} if isinstance(inner.get("properties"), dict) else inner


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    for each in part if isinstance(part, list) else ():
        yield from references(each)


class Contract:
    """The document, as a check of records."""

    def __init__(self, whole: dict[str, Any], *, strict: bool) -> None:
        self._whole, self._strict = whole, strict

    def faults(self, topic: str, value: bytes | None, headers: Any = ()) -> list[str]:
        """What is wrong with a record of the topic, as the nearest of its messages has it."""
        channel = self._whole["channels"][topic.replace("-", "_")]
        found = [
            self._of(resolved(self._whole, each), value, headers) for each in channel["messages"].values()
        ]
        return min(found, key=len)

    def _of(self, message: dict[str, Any], value: bytes | None, headers: Any) -> list[str]:
        wrong = []
        if "headers" in message:
            told = {name: content.decode() for name, content in headers if name.startswith("mistakebound.")}
            wrong += self._check(message["headers"], told)
        if message.get("contentType", self._whole["defaultContentType"]) == "application/json":
            wrong += self._check(message["payload"], json.loads(value or b"null"))
        return wrong

    def _check(self, schema: Any, instance: Any) -> list[str]:
        schemas = self._whole["components"]["schemas"]
        if self._strict:
            schema, schemas = closed(schema), closed(schemas)
        rooted = {"allOf": [schema], "components": {"schemas": schemas}}
        return [each.message for each in Draft7Validator(rooted).iter_errors(instance)]


@pytest.mark.parametrize("sets", SETTINGS.values(), ids=SETTINGS)
def test_the_document_is_asyncapi(sets: list[str]) -> None:
    """It is valid by the specification's own schema, and every reference in it resolves."""
    found = document(*sets)
    assert [each.message for each in Draft7Validator(SPECIFICATION).iter_errors(found)] == []
    for each in references(found):
        assert resolved(found, {"$ref": each}) is not None
    for schema in found["components"]["schemas"].values():
        Draft7Validator.check_schema(schema)
    assert "not-to-be-seen" not in json.dumps(found)


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        (("operations", "send-predictions"), "action", "publish"),
        (("channels", "updates"), "adress", "updates"),
        (("channels", "labels", "bindings", "kafka"), "partitions", 0),
        (("components", "schemas", "Update"), "required", "n"),
        ((), "asyncapi", "2.6.0"),
    ],
)
def test_a_wrong_document_is_found(part: tuple[str, ...], key: str, value: Any) -> None:
    """The check can fail, at every depth."""
    found = document()
    inner = found
    for name in part:
        inner = inner[name]
    inner[key] = value
    assert list(Draft7Validator(SPECIFICATION).iter_errors(found)) != []


def test_it_says_where_tokens_come_from() -> None:
    """The issuer and the scopes, as a flow of OAuth 2.0; where a platform gives them, that it is tokens."""
    (issued,) = document(*SETTINGS["tokens of an issuer"])["servers"]["broker0"]["security"]
    assert (issued["type"], issued["scopes"]) == ("oauth2", ["kafka", "other"])
    assert issued["flows"]["clientCredentials"]["tokenUrl"] == "https://issuer.example/token"
    for name, said in {"tokens of the platform": "OAUTHBEARER", "requests signed for AWS": "AWS IAM"}.items():
        (given,) = document(*SETTINGS[name])["servers"]["broker0"]["security"]
        assert (given["type"], given["flows"]) == ("oauth2", {})
        assert said in given["description"]


def test_it_names_the_topics_the_brokers_and_the_directions_that_are_set() -> None:
    """They tell a reader where to connect."""
    found = document(*SETTINGS["secured brokers"])
    assert {each["address"] for each in found["channels"].values()} == {f"prod.{topic}" for topic in TOPICS}
    assert [each["host"] for each in found["servers"].values()] == ["a.example:9093", "b.example:9093"]
    assert {each["protocol"] for each in found["servers"].values()} == {"kafka-secure"}
    assert found["channels"]["labels"]["bindings"]["kafka"]["partitions"] == 12
    assert {name for name, each in found["operations"].items() if each["action"] == "receive"} == {
        "receive-examples",
        "receive-labels",
    }


KINDS: dict[str, dict[str, Any]] = {
    "averaged": {"learner": {"kind": "averaged-perceptron"}},
    "classes": {"learner": {"kind": "perceptron"}, "labels": {"classes": ["a", "b", "c"], "max_delay": 0.02}},
    "issued": {"learner": {"kind": "perceptron", "delay_policy": "issued", "tie": "negative"}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_of_a_run_is_as_the_document_says(kind: str) -> None:
    """Of all topics, dead letters too, and with no property that it does not name."""
    settings = altered(settings_for(batch={"max_records": 20}), **KINDS[kind])
    if "labels" not in KINDS[kind]:
        settings = altered(settings, labels={"max_delay": 0.02, "parking": 0.01})
    seen = dict.fromkeys(TOPICS, 0)
    contract = Contract(document(), strict=True)
    with opened(settings) as log:
        log.append([*_spelled(stream(60), settings), *_odd()])
        Run(log, settings)
        for topic in TOPICS:
            for record in log.read(topic, 0, 0):
                seen[topic] += 1
                if topic not in ("examples", "labels") or b"nonsense" not in (record.value or b""):
                    assert contract.faults(topic, record.value, record.headers) == [], record.value
        letters, written = (list(log.read(topic, 0, 0)) for topic in ("dead-letters", "outcomes"))
    assert all(count > 3 for count in seen.values()), seen
    assert any(b"applied_late" in (record.value or b"") for record in written)
    assert contract.faults("dead-letters", letters[0].value, letters[0].headers[1:]) != []


def _spelled(inputs: list[Outgoing], settings: Settings) -> list[Outgoing]:
    if settings.labels.classes is None:
        return inputs
    return [
        each._replace(value=each.value.replace(b"true", b'"a"').replace(b"false", b'"b"'))
        if each.topic == "labels" and each.value is not None
        else each
        for each in inputs
    ]


def _odd() -> list[Outgoing]:
    """Other forms of features, a label that nobody waits for, and rubbish."""
    values = (
        b'{"id": 7, "features": [1, 2.5]}',
        b'{"id": "t", "features": ["x", "x"]}',
        b"nonsense",
        b"nonsense too",
    )
    found = [Outgoing("examples", 0, b"k", value, (), 1_070) for value in values]
    stray = Outgoing("labels", 0, None, b'{"id": "nobody", "label": "a"}', (), 1_071)
    late = b'{"id": "late", "label": LABEL, "features": {"f": 1}, "prediction": LABEL}'
    carried = [late.replace(b"LABEL", each) for each in (b"true", b'"a"')]
    end = Outgoing("examples", 0, b"end", b'{"id": "end", "features": {"f": 1}}', (), 1_600)
    return [*found, stray, *(Outgoing("labels", 0, None, each, (), 1_500) for each in carried), end]


@pytest.mark.parametrize(
    ("topic", "value"),
    [
        ("examples", b'{"id": "a"}'),
        ("examples", b'{"id": "a", "features": {"BIAS": 1}}'),
        ("labels", b'{"id": "a", "label": null}'),
        ("labels", b'{"id": "a", "label": true, "features": {"BIAS": 1}, "prediction": true}'),
        ("predictions", b'{"id": "a", "prediction": true}'),
        ("outcomes", b'{"part": 0, "model": {"epoch": 1, "updates": ["1"]}, "decisions": []}'),
        ("updates", b'{"epoch": 1, "format": "1", "settings": {}}'),
    ],
)
def test_a_record_that_is_not_as_the_document_says_is_found(topic: str, value: bytes) -> None:
    """Without the strictness that only the test adds."""
    assert Contract(document(), strict=False).faults(topic, value) != []


def test_messages_are_where_the_settings_say() -> None:
    """The schema nests properties as the pointer does; where the pointer has a number, which may index an array, it is left open."""
    contract = Contract(document(*SETTINGS["other places"]), strict=False)
    whole = b'{"payment": {"id": "a", "x/y": {"f": 1}}}'
    assert contract.faults("examples", whole) == []
    assert contract.faults("examples", whole.replace(b"x/y", b"x")) != []
    assert contract.faults("labels", b'{"is": [{"fraud": true}], "payment": {"id": 3}}') == []
    assert contract.faults("labels", b'{"is": [{"fraud": true}], "payment": {"id": true}}') != []
    found = document(*SETTINGS["other places"])
    assert found["components"]["messages"]["Example"]["correlationId"] == {
        "location": "$message.payload#/payment/id"
    }


def test_one_topic_is_no_document() -> None:
    """Exit 2, with the remedy."""
    result = run("topics", "schema", "--asyncapi", "labels", log=None)
    assert result.exit_code == 2
    assert "leave the topic out" in result.output
