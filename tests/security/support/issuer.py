"""An issuer of tokens: signed JWTs over TLS, and in a file the keys by which a broker verifies them."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.security.support.certificates import HOST, Certificates

AUDIENCE = "kafka"
CLIENT, SECRET = "oauth-worker", "pa55 of the client: 100%+"
"""With letters that a URL, a form and a header each spell in ways of their own."""
KEY_ID = "key-1"


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _number(value: int) -> str:
    return _text(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Issuer:
    """Serves `/token`, from `with` to its end. What it does next is in its attributes."""

    def __init__(self, certificates: Certificates) -> None:
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        self.keys = certificates.authority.with_name("keys.json")
        self.keys.write_text(json.dumps({"keys": [self._public()]}))
        self.life_s = 300.0
        """Of the tokens issued from now on."""
        self.audience = AUDIENCE
        self.away = False
        """Whether it answers 503."""
        self.asked: list[dict[str, str]] = []
        """The form of each request for a token, and `authorization`."""
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                issuer.asked.append(form | {"authorization": self.headers.get("Authorization", "")})
                self._answer(*issuer._decide(form, self.headers.get("Authorization")))

            def _answer(self, code: int, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.server.certificate, certificates.server.key)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://{HOST}:{self._server.server_address[1]}"

    def token(self, subject: str = CLIENT, **claims: Any) -> str:
        """A signed one; `claims` replace those that are usual, None takes one away."""
        now_s = time.time()
        usual = {
            "iss": self.url,
            "sub": subject,
            "aud": self.audience,
            "iat": int(now_s) - 1,
            "exp": int(now_s + self.life_s),
        }
        content = {name: value for name, value in (usual | claims).items() if value is not None}
        head = {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}
        signed = ".".join(_text(json.dumps(part).encode()) for part in (head, content))
        return f"{signed}.{_text(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    @contextmanager
    def gone(self) -> Iterator[None]:
        """It answers that it cannot, for so long."""
        self.away = True
        try:
            yield
        finally:
            self.away = False

    def _public(self) -> dict[str, str]:
        numbers = self._key.public_key().public_numbers()
        return {
            "kty": "RSA",
            "kid": KEY_ID,
            "use": "sig",
            "alg": "RS256",
            "n": _number(numbers.n),
            "e": _number(numbers.e),
        }

    def _decide(self, form: dict[str, str], authorization: str | None) -> tuple[int, dict[str, Any]]:
        if self.away:
            return 503, {"error": "temporarily_unavailable"}
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        if authorization is not None:
            both = base64.b64decode(authorization.removeprefix("Basic ")).decode()
            client, _, secret = both.partition(":")
            known = (unquote_plus(client), unquote_plus(secret)) == (CLIENT, SECRET)
        else:
            known = form.get("client_id") == CLIENT and form.get("client_assertion", "").count(".") == 2
        if not known:
            return 401, {"error": "invalid_client", "error_description": "no such client, or another secret"}
        return 200, {
            "access_token": self.token(),
            "token_type": "Bearer",
            "expires_in": int(self.life_s),
            "scope": form.get("scope", ""),
        }

    def __enter__(self) -> "Issuer":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._server.server_close()
