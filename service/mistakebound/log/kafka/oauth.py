"""Tokens for the mechanism OAUTHBEARER: who issues them, and how long one is used. Both clients ask here.

Mechanism: RFC 7628. Client credentials: RFC 6749, section 4.4; with a signed assertion instead of a secret: RFC 7523,
section 2.2. Expiry and subject: RFC 7519.

1. One token serves all connections. It is renewed once four fifths of its life are over.
2. While the issuer is away, a token is used for as long as it is valid. Afterwards connections fail with the reason, and
   are tried again: that is as if the broker was away.
3. An issuer that refuses this client is a `TokenRefused`, in words that name the setting. No message holds a token, a
   secret, or what the issuer sent beyond the error that the standard lets it tell.
"""

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import Request, urlopen

import structlog

from mistakebound.log.kafka.oauth_options import (
    CAFILE,
    CLIENT_ID,
    EXTENSIONS,
    JWT_PATH,
    SCOPE,
    SECRET,
    URL,
    pairs,
)

ASK_S = 5.0
"""How long the issuer may take. A client's connections wait for it, and its session must not end meanwhile."""
RENEW_AFTER = 0.8
"""Share of a token's life; librdkafka asks again at the same share of what is left, kafka-python later."""
UNKNOWN_LIFE_S = 300.0
"""Of a token that does not say when it ends."""
ANSWER_BYTES = 1_000_000
SHOWN = 200

_log = structlog.get_logger(__name__)


class TokenUnavailable(Exception):
    """There is no token now; the next attempt may bring one."""


class TokenRefused(Exception):
    """The issuer does not give this client a token; only other settings can change that."""


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token as both clients take it."""

    text: str
    subject: str
    """Whom it is for; empty where it does not tell."""
    expires_s: float
    """Unix time, in seconds."""


class TokenSource:
    """The present token. Thread-safe: each client's connections ask from threads of their own."""

    def __init__(
        self, ask: Callable[[], Token], extensions: Mapping[str, str], now: Callable[[], float] = time.time
    ) -> None:
        """`ask` gets a new token; it raises TokenUnavailable or TokenRefused. `now` is the Unix time."""
        self._ask, self.extensions, self._now = ask, extensions, now
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._renew_s = 0.0

    def token(self) -> Token:
        """One that is valid. Raises TokenUnavailable, TokenRefused."""
        with self._lock:
            now_s = self._now()
            if self._token is None or now_s >= self._renew_s:
                self._token = self._renewed(self._token, now_s)
            return self._token

    def _renewed(self, old: Token | None, now_s: float) -> Token:
        try:
            new = self._ask()
            if new.expires_s <= now_s:
                raise TokenUnavailable("the token that came has expired already; compare the clocks")
        except (TokenUnavailable, TokenRefused) as error:
            if old is None or old.expires_s <= now_s:
                raise
            _log.warning("token_not_renewed", error=str(error), valid_s=round(old.expires_s - now_s, 1))
            return old
        self._renew_s = now_s + RENEW_AFTER * (new.expires_s - now_s)
        return new


def source_of(given: Mapping[str, Any]) -> TokenSource:
    """The source that checked options describe."""
    extensions = dict(pairs(given.get(EXTENSIONS, "")))
    path = given.get(JWT_PATH)
    if URL not in given:
        return TokenSource(lambda: _of_jwt(_read(str(path)), time.time()), extensions)
    context = ssl.create_default_context(cafile=given.get(CAFILE))
    return TokenSource(lambda: _from_issuer(given, context), extensions)


def _from_issuer(given: Mapping[str, Any], context: ssl.SSLContext) -> Token:
    form = {"grant_type": "client_credentials"}
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if SCOPE in given:
        form["scope"] = given[SCOPE]
    if SECRET in given:
        both = f"{quote_plus(given[CLIENT_ID])}:{quote_plus(given[SECRET])}"
        headers["Authorization"] = "Basic " + base64.b64encode(both.encode()).decode()
    else:
        form["client_id"] = given[CLIENT_ID]
        form["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        form["client_assertion"] = _read(given[JWT_PATH])
    asking = Request(given[URL], urlencode(form).encode(), headers)  # noqa: S310 - http or https, as checked
    answer = _post(asking, context)
    text, lasts_s = answer.get("access_token"), answer.get("expires_in")
    if not isinstance(text, str) or not _printable(text):
        raise TokenUnavailable(f"{_at(given[URL])} answered without an access_token")
    now_s = time.time()
    token = _of_jwt(text, now_s)
    if isinstance(lasts_s, int | float | str) and (seconds := _number(lasts_s)) is not None:
        token = Token(text, token.subject, now_s + seconds)
    return token if token.subject else Token(text, given[CLIENT_ID], token.expires_s)


def _post(request: Request, context: ssl.SSLContext) -> dict[str, Any]:
    where = _at(request.full_url)
    try:
        with urlopen(request, timeout=ASK_S, context=context) as answer:  # noqa: S310 - as above
            body = answer.read(ANSWER_BYTES)
    except HTTPError as error:
        said = _error_told(error)
        if error.code in (400, 401, 403):
            raise TokenRefused(
                f"{where} gives no token ({error.code}{said}); correct kafka.{CLIENT_ID}, kafka.{SECRET} and "
                f"kafka.{SCOPE}"
            ) from None
        if error.code in (404, 405):
            raise TokenRefused(
                f"nobody gives tokens at {where} ({error.code}); correct kafka.{URL}"
            ) from None
        raise TokenUnavailable(f"{where} gives no token now ({error.code}{said})") from None
    except URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise TokenRefused(
                f"the certificate of {where} does not pass ({error.reason.verify_message.rstrip('.')}); name in "
                f"kafka.{CAFILE} the authority that signed it"
            ) from None
        raise TokenUnavailable(f"no answer from {where}: {error.reason}") from None
    except (OSError, HTTPException) as error:
        raise TokenUnavailable(f"no answer from {where}: {error}") from None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise TokenUnavailable(f"{where} answered with something else than a JSON object")
    return found


def _error_told(error: HTTPError) -> str:
    """What the standard lets an issuer tell, shortened."""
    try:
        found = json.loads(error.read(ANSWER_BYTES))
    except (OSError, ValueError, RecursionError, HTTPException):
        return ""
    told = [found.get(name) for name in ("error", "error_description")] if isinstance(found, dict) else []
    return "".join(f", {each[:SHOWN]!r}" for each in told if isinstance(each, str))


def _read(path: str) -> str:
    """Read again each time: whoever mounts the file replaces it before the token in it ends."""
    try:
        text = Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TokenUnavailable(f"kafka.{JWT_PATH} = {path!r} cannot be read: {reason}") from None
    if not text or not _printable(text):
        raise TokenUnavailable(f"kafka.{JWT_PATH} = {path!r} holds no token")
    return text


def _of_jwt(text: str, now_s: float) -> Token:
    """Whom a token is for and when it ends, as it says itself; the broker is who verifies it."""
    claims: Any = None
    try:
        part = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError, RecursionError):
        pass  # an opaque token: it says nothing of itself
    if not isinstance(claims, dict):
        claims = {}
    expires, subject = _number(claims.get("exp")), claims.get("sub")
    return Token(
        text,
        subject if isinstance(subject, str) else "",
        now_s + UNKNOWN_LIFE_S if expires is None else expires,
    )


def _number(found: Any) -> float | None:
    try:
        number = float(found)
    except (TypeError, ValueError):
        return None
    return number if 0 < number < 1e12 else None


def _printable(text: str) -> bool:
    """Bearer tokens are; anything else would end the message that carries them."""
    return all("!" <= letter <= "~" for letter in text)


def _at(url: str) -> str:
    """The address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
