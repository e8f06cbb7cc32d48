"""Why a broker refuses a client: kafka-python keeps retrying, and forgets the reason.

Guarantees:

1. The reason of every failed connection is kept, by the address that failed.
2. Once every address of `log.url` has refused the client for a reason that does not pass by itself
   (a certificate, a password), making the client fails at once with `AuthRefused`, in words that name
   the setting and the remedy. Anything else is retried until the time is up.
"""

import ssl
import weakref
from functools import partial
from typing import Any

import kafka.errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from mistakebound.log.kafka.oauth import TokenRefused
from mistakebound.log.kafka.oauth_options import EXTENSIONS, JWT_PATH, SCOPE, URL
from mistakebound.log.kafka.oauth_options import MECHANISM as OAUTHBEARER

_CERTIFICATE = {
    **dict.fromkeys((9, 10), "renew the broker's certificate, or set this machine's clock"),
    **dict.fromkeys((3, 11, 12), "renew the list in kafka.ssl_crlfile"),
    23: "it was revoked by the list in kafka.ssl_crlfile; give the broker another",
    **dict.fromkeys(
        (62, 64),
        "name the broker in log.url, and in its own advertised.listeners, as its certificate names it, or give "
        "it a certificate for this name",
    ),
}
"""The remedy by the code of OpenSSL's X509_V_ERR, as `SSLCertVerificationError.verify_code` has it."""


class AuthRefused(kafka_errors.KafkaError):  # type: ignore[misc]
    """Every broker asked has refused this client, for a reason that only other settings can remove."""


class _AnswerFirst:
    """A broker says why and hangs up: the client would drop an answer that it reads together with the end."""

    def _sock_recv(self) -> tuple[bytes, Any]:
        received, error = super()._sock_recv()  # type: ignore[misc]
        return received, None if received else error


class _Plain(_AnswerFirst, KafkaTCPTransport):  # type: ignore[misc]
    pass


class _Tls(_AnswerFirst, KafkaSSLTransport):  # type: ignore[misc]
    pass


class Noting(KafkaConnectionManager):  # type: ignore[misc]
    """Notes by address why the last connection to it failed."""

    def __init__(self, net: Any, **configs: Any) -> None:
        super().__init__(net, **configs)
        self._reasons: dict[Any, str] = {}
        self.last = ""
        """The newest reason that may pass by itself; empty where there was none."""
        self._servers = self.cluster.bootstrap_brokers()
        # kafka-python picks a server at random, and waits for it while it must not be asked yet, instead of asking another.
        self.cluster.bootstrap_brokers = partial(_askable, weakref.proxy(self), self._servers)

    async def _build_transport(self, node: Any, timeout_at: Any = None) -> Any:
        # As kafka-python does it, except that a failed handshake leaves no open socket behind.
        options, proxy = self.config["socket_options"], self.config["proxy_url"]
        plain = await create_connection(
            self._net, node.host, node.port, options, proxy_url=proxy, timeout_at=timeout_at
        )
        try:
            if not self.ssl_enabled:
                return _Plain(self._net, plain, host=node.host)
            tls = {name: value for name, value in self.config.items() if name.startswith("ssl_")}
            transport = _Tls(self._net, plain, host=node.host, **tls)
        except BaseException:
            plain.close()
            raise
        try:
            await transport.handshake()
        except BaseException as error:
            transport._sock.close()
            if not isinstance(error, Exception):
                raise
            raise kafka_errors.KafkaConnectionError(f"Handshake failed: {error}") from error
        return transport

    def get_connection(self, node_id: Any, **options: Any) -> Any:
        before = self._conns.get(node_id)
        connection = super().get_connection(node_id, **options)
        if connection is not before:
            self._watch(node_id, connection)
        return connection

    def maybe_raise_auth_failure(self, node_id: Any) -> None:
        # Asked before each connection. One server of several may just be under repair: only when all have refused
        # is there no way in.
        everywhere = all(server.node_id in self._reasons for server in self._servers)
        if everywhere and self.cluster.is_bootstrap(node_id):
            raise AuthRefused(self._reasons[node_id])

    def _watch(self, node_id: Any, connection: Any) -> None:
        def failed(error: Any) -> None:
            if (reason := refusal(error, self.config["sasl_mechanism"])) is not None:
                self._reasons[node_id] = reason
            elif error is not None:
                self.last = str(error)

        authenticate = connection._sasl_authenticate

        async def noting(timeout_at: Any = None) -> None:
            # The client reports that the broker hung up, not the answer before it.
            try:
                await authenticate(timeout_at)
            except Exception as error:
                failed(error)
                raise

        connection._sasl_authenticate = noting
        connection.init_future.add_errback(failed)
        connection.init_future.add_callback(lambda _: self._reasons.pop(node_id, None))
        connection.close_future.add_errback(failed)


def _askable(manager: Any, servers: list[Any]) -> list[Any]:
    return [each for each in servers if manager.connection_delay(each.node_id) <= 0] or servers


def noting_client(**configs: Any) -> Any:
    """kafka-python's network client, with a manager that notes."""
    net = NetworkSelector(**configs)
    return KafkaNetClient(net=net, manager=Noting(net, **configs))


_SASL = {
    kafka_errors.SaslAuthenticationFailedError: "the broker does not know this user or this password; correct "
    "kafka.sasl_plain_username and kafka.sasl_plain_password, or the user's credentials for "
    "kafka.sasl_mechanism on the broker",
    kafka_errors.UnsupportedSaslMechanismError: "the broker's listener does not offer this kafka.sasl_mechanism; choose "
    "one that it does",
    kafka_errors.IllegalSaslStateError: "the broker's listener takes no SASL; set kafka.security_protocol to SSL or "
    "PLAINTEXT as the listener is, or name in log.url the port of a listener with SASL",
}


_TOKEN_REJECTED = (
    "the broker does not accept the token; compare its issuer, audience and scope with what the broker's listener wants "
    f"(kafka.{URL}, kafka.{SCOPE}, kafka.{JWT_PATH}, kafka.{EXTENSIONS}), and the clocks of both"
)


def refusal(error: BaseException, mechanism: str | None = None) -> str | None:
    """What a refusal means, and what to do; None for errors that may pass by themselves."""
    if isinstance(error, (AuthRefused, TokenRefused)):
        return str(error.args[0])
    if mechanism == OAUTHBEARER and isinstance(error, kafka_errors.SaslAuthenticationFailedError):
        return _TOKEN_REJECTED
    if type(error) in _SASL:
        return _SASL[type(error)]
    # kafka-python puts TLS errors into errors of its own, in one of two ways.
    for cause in (error, error.__cause__, *error.args):
        if isinstance(cause, ssl.SSLCertVerificationError):
            problem = f"the broker's certificate does not pass ({cause.verify_message.rstrip('.')})"
            remedy = _CERTIFICATE.get(
                cause.verify_code, "name in kafka.ssl_cafile the authority that signed it"
            )
            return f"{problem}; {remedy}"
        if isinstance(cause, ssl.SSLError) and "ALERT" in (cause.reason or ""):
            return _alert(cause.reason)
    return None


def _alert(reason: str) -> str:
    name = reason.rpartition("ALERT_")[2].replace("_", " ").lower()
    if "REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason:
        return (
            f"the broker asks for a client certificate ({name}); name one in kafka.ssl_certfile and its key in "
            "kafka.ssl_keyfile"
        )
    if "CERTIFICATE" in reason or "UNKNOWN_CA" in reason:
        return (
            f"the broker does not accept the certificate in kafka.ssl_certfile ({name}); give one that has not "
            "expired and that an authority signed which the broker trusts"
        )
    return f"the broker refuses TLS with this client ({name}); compare TLS versions and ciphers"
