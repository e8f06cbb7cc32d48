"""Tokens and their options, without a broker: how long one is used, what it says of itself, what does not hold together."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from mistakebound.log.kafka import aws_iam, oauth
from mistakebound.log.kafka.confluent.client import translated_options
from mistakebound.log.kafka.kafka_python import user_options
from mistakebound.log.kafka.kafka_python.user_options import checked
from mistakebound.log.kafka.oauth import Token, TokenRefused, TokenSource, TokenUnavailable
from mistakebound.log.protocol import Misconfigured


class Issuer:
    """Gives tokens that live for `life_s`, or raises `error`; its clock stands."""

    def __init__(self, life_s: float = 100.0) -> None:
        self.life_s, self.now_s, self.given = life_s, 1_000.0, 0
        self.error: Exception | None = None
        self.source = TokenSource(self._ask, {}, now=lambda: self.now_s)

    def _ask(self) -> Token:
        if self.error is not None:
            raise self.error
        self.given += 1
        return Token(f"token-{self.given}", "worker", self.now_s + self.life_s)

    def at(self, seconds: float) -> str:
        self.now_s = 1_000.0 + seconds
        return self.source.token().text


def test_a_token_is_renewed_once_four_fifths_of_its_life_are_over() -> None:
    """Until then all connections share it."""
    issuer = Issuer(life_s=100.0)

    assert [issuer.at(seconds) for seconds in (0, 79.9, 80, 159.9, 160)] == [
        "token-1", "token-1", "token-2", "token-2", "token-3",
    ]  # fmt: skip


@pytest.mark.parametrize("error", [TokenUnavailable("away"), TokenRefused("no")])
def test_a_token_that_cannot_be_renewed_is_used_to_its_end(error: Exception) -> None:
    """Also after a refusal: whoever rotates a secret has until then to tell the worker."""
    issuer = Issuer(life_s=100.0)
    issuer.at(0)
    issuer.error = error

    with capture_logs() as logs:
        assert issuer.at(99) == "token-1"
    assert [each["event"] for each in logs] == ["token_not_renewed"]
    with pytest.raises(type(error)):
        issuer.at(100)
    issuer.error = None
    assert issuer.at(101) == "token-2"


def test_a_token_that_has_expired_already_is_none() -> None:
    """As where clocks disagree: the broker would refuse it, and less clearly."""
    with pytest.raises(TokenUnavailable, match="compare the clocks"):
        Issuer(life_s=-1.0).at(0)


@given(st.floats(1, 1e6), st.lists(st.floats(0, 1e6), max_size=20))
def test_no_token_is_given_after_its_end(life_s: float, pauses_s: list[float]) -> None:
    """Whenever it is asked for."""
    issuer = Issuer(life_s)
    now_s = 0.0
    for pause_s in pauses_s:
        now_s += pause_s
        issuer.at(now_s)
        assert issuer.source.token().expires_s > issuer.now_s


def jwt(claims: Any) -> str:
    middle = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{middle}.c2ln"


@pytest.mark.parametrize(
    ("text", "subject", "expires_s"),
    [
        (jwt({"sub": "worker", "exp": 5_000}), "worker", 5_000.0),
        (jwt({"sub": "worker", "exp": 5_000.5}), "worker", 5_000.5),
        (jwt({}), "", 1_000.0 + oauth.UNKNOWN_LIFE_S),
        (jwt({"sub": 7, "exp": "never"}), "", 1_000.0 + oauth.UNKNOWN_LIFE_S),
        (jwt([1]), "", 1_000.0 + oauth.UNKNOWN_LIFE_S),
        ("opaque", "", 1_000.0 + oauth.UNKNOWN_LIFE_S),
        ("a.%%%.c", "", 1_000.0 + oauth.UNKNOWN_LIFE_S),
    ],
)
def test_a_token_tells_of_itself_what_it_can(text: str, subject: str, expires_s: float) -> None:
    """Subject and end where it is a JWT that has them; the broker is who verifies it."""
    assert oauth._of_jwt(text, 1_000.0) == Token(text, subject, expires_s)


@given(st.text(max_size=60))
def test_nothing_that_an_issuer_sends_is_more_than_opaque(text: str) -> None:
    """No content of a token raises anything."""
    assert oauth._of_jwt(text, 1_000.0).text == text
    assert oauth._of_jwt(f"a.{text}.c", 1_000.0).expires_s > 0


@pytest.mark.parametrize("content", ["", "\n", "two\nlines", "a b", "caf\u00e9", "a\x01auth=b"])
def test_a_file_without_a_token_is_named(content: str, tmp_path: Path) -> None:
    """Above all one whose content would end the message that carries it."""
    path = tmp_path / "jwt"
    path.write_text(content)
    source = oauth.source_of({"sasl_oauth_jwt_path": str(path)})

    with pytest.raises(TokenUnavailable, match=r"kafka.sasl_oauth_jwt_path = .* holds no token"):
        source.token()


GIVEN = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
ISSUER = {
    **GIVEN,
    "sasl_oauth_url": "https://issuer.example/token",
    "sasl_oauth_client_id": "worker",
    "sasl_oauth_client_secret": "s3cret",
}


MSK = {"security_protocol": "SASL_SSL", "sasl_mechanism": "AWS_MSK_IAM"}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in ISSUER.items() if key != name}


@pytest.mark.parametrize(
    ("kafka", "wanted"),
    [
        (GIVEN, "OAUTHBEARER needs tokens; name in kafka.sasl_oauth_url"),
        (without("sasl_oauth_client_id"), "kafka.sasl_oauth_client_id is missing"),
        (without("sasl_oauth_client_secret"), "give one of kafka.sasl_oauth_client_secret_file and"),
        (ISSUER | {"sasl_oauth_jwt_path": "/run/jwt"}, "takes either a secret or an assertion"),
        (without("sasl_oauth_url") | {"sasl_oauth_jwt_path": "/run/jwt"}, "no effect without kafka.sasl_oauth_url"),
        (ISSUER | {"sasl_oauth_url": "issuer.example/token"}, "kafka.sasl_oauth_url is no address"),
        (ISSUER | {"sasl_oauth_url": "file:///etc/passwd"}, "kafka.sasl_oauth_url is no address"),
        (ISSUER | {"sasl_oauth_scope": 7}, "kafka.sasl_oauth_scope = 7 is no text"),
        (ISSUER | {"sasl_oauth_cafile": "/none.pem"}, "kafka.sasl_oauth_cafile = '/none.pem' cannot be read"),
        (ISSUER | {"sasl_oauth_extensions": "logical"}, "'logical' is no name=value"),
        (ISSUER | {"sasl_oauth_extensions": "auth=x"}, "`auth` is the token's own name"),
        (ISSUER | {"sasl_mechanism": "PLAIN"}, "would have no effect with kafka.sasl_mechanism = 'PLAIN'"),
        (ISSUER | {"sasl_aws_region": "eu-west-1"}, "kafka.sasl_aws_region would have no effect"),
        (ISSUER | {"sasl_oauth_token_url": "x"}, "kafka.sasl_oauth_token_url: kafka-python has no such option"),
        (GIVEN | {"security_protocol": "PLAINTEXT", "sasl_mechanism": None}, "kafka.sasl_mechanism would have no effect"),
    ],
)  # fmt: skip
def test_options_that_do_not_hold_together_are_named(kafka: dict[str, Any], wanted: str) -> None:
    """Each with its remedy, before anybody is asked."""
    with pytest.raises(Misconfigured) as refusal:
        checked(kafka)
    assert wanted in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


def test_a_mechanism_whose_library_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the client fails on its import."""
    for module in (user_options, aws_iam):
        monkeypatch.setattr(module, "find_spec", lambda name: None)

    with pytest.raises(Misconfigured, match=r"install `mistakebound\[kerberos\]`"):
        checked(GIVEN | {"sasl_mechanism": "GSSAPI"})
    with pytest.raises(Misconfigured, match=r"install `mistakebound\[msk\]`"):
        checked(MSK | {"sasl_aws_region": "eu-west-1"})


def test_an_authority_without_a_certificate_is_named(tmp_path: Path) -> None:
    """A file that is there and holds something else."""
    path = tmp_path / "ca.pem"
    path.write_text("nothing")
    with pytest.raises(Misconfigured, match=r"kafka.sasl_oauth_cafile = .* holds nothing usable in PEM"):
        checked(ISSUER | {"sasl_oauth_cafile": str(path)})


@pytest.mark.parametrize("kafka", [ISSUER, without("sasl_oauth_url") | {"sasl_oauth_client_id": None}])
def test_librdkafka_is_given_none_of_the_options_by_name(kafka: dict[str, Any]) -> None:
    """It asks us for tokens instead, so that both clients mean the same."""
    for options in translated_options(kafka).values():
        assert not [name for name in options if "oauth" in name]
        assert options["sasl.mechanism"] == "OAUTHBEARER"


@pytest.fixture
def role(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """AWS credentials in the environment, as AWS's own tools read them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/none")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    yield monkeypatch


def test_a_token_of_aws_is_a_request_signed_for_the_region(role: pytest.MonkeyPatch) -> None:
    """For a quarter of an hour, and for no other service."""
    options = checked(MSK | {"sasl_aws_region": "eu-west-1"})

    token = aws_iam.source_of(options).token()

    request = base64.urlsafe_b64decode(token.text + "=" * (-len(token.text) % 4)).decode()
    assert request.startswith("https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect")
    assert "X-Amz-Signature=" in request
    assert "wJalrXUtnFEMI" not in request


def test_without_credentials_aws_is_named(role: pytest.MonkeyPatch) -> None:
    """They may come a moment later, as a role does."""
    role.delenv("AWS_ACCESS_KEY_ID")
    source = aws_iam.source_of(MSK | {"sasl_aws_region": "eu-west-1"})

    with pytest.raises(TokenUnavailable, match="no AWS credentials that could sign for eu-west-1"):
        source.token()


def test_the_region_may_come_from_the_environment(role: pytest.MonkeyPatch) -> None:
    """As AWS's own tools take it; without one the setting is named."""
    assert list(aws_iam.problems(MSK, {})) == [
        "kafka.sasl_aws_region is missing; write the cluster's region there, or in AWS_REGION"
    ]
    assert list(aws_iam.problems(MSK, {"AWS_REGION": "eu-west-1"})) == []


def test_aws_is_asked_over_tls_only(role: pytest.MonkeyPatch) -> None:
    """A signed request is worth a password for a quarter of an hour."""
    with pytest.raises(Misconfigured, match=r"set kafka\.security_protocol to SASL_SSL"):
        checked(MSK | {"security_protocol": "SASL_PLAINTEXT", "sasl_aws_region": "eu-west-1"})
