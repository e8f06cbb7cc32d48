"""A real broker with every kind of listener, and rights to be granted behind them.

Listeners: `tls` (the broker shows a certificate), `mtls` (the client shows one, too), `scram` (TLS and a
password), `oauth` (TLS and a token of `issuer`), `expired` (a certificate that expired yesterday), and `inside`, plain, for the broker, its controller and
the tests themselves: a client of it may do everything. Behind `mtls` and `scram` the
StandardAuthorizer asks for every right.
"""

import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePatternFilter,
    ResourceType,
)

from mistakebound.settings import Settings
from tests.log.support.broker import PROPERTIES, READY, START_S, Node, free_ports
from tests.security.support.certificates import HOST, Certificates
from tests.security.support.issuer import AUDIENCE, CLIENT, SECRET, Issuer
from tests.security.support.rights import Right

MECHANISM = "SCRAM-SHA-512"
USERS = ("worker", "topics", "reader", "examples", "labels")
DOORS = {
    "inside": "PLAINTEXT",
    "tls": "SSL",
    "mtls": "SSL",
    "scram": "SASL_SSL",
    "oauth": "SASL_SSL",
    "expired": "SSL",
}
PROPAGATED_S = 10.0
EVERY_ACL = ACLFilter(
    principal=None,
    host=None,
    operation=ACLOperation.ANY,
    permission_type=ACLPermissionType.ANY,
    resource_pattern=ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


def password(user: str) -> str:
    """Unlike anything else in any output, so that it can be searched for."""
    return f"pa55-of-{user}%"


class Secured:
    """The broker and its controller, from `with` to its end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificates = Certificates(folder / "certificates")
        self.issuer = Issuer(self.certificates)
        self._ports: dict[str, int] = {}
        self._nodes: list[Node] = []
        self._admin: Any = None

    def address(self, door: str, host: str = HOST) -> str:
        return f"{host}:{self._ports[door]}"

    def options(self, door: str, user: str = "worker", **more: Any) -> dict[str, Any]:
        """What stands under `[kafka]` for somebody who comes in by this door; None takes one away."""
        options: dict[str, Any] = {"bootstrap_timeout_ms": 5_000, "security_protocol": DOORS[door]}
        if door != "inside":
            options["ssl_cafile"] = str(self.certificates.authority)
        if door == "mtls":
            options["ssl_certfile"] = str(self.certificates.client.certificate)
            options["ssl_keyfile"] = str(self.certificates.client.key)
        if door == "scram":
            options |= {
                "sasl_mechanism": MECHANISM,
                "sasl_plain_username": user,
                "sasl_plain_password": password(user),
            }
        if door == "oauth":
            options |= {
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauth_url": f"{self.issuer.url}/token",
                "sasl_oauth_client_id": CLIENT,
                "sasl_oauth_client_secret": SECRET,
                "sasl_oauth_cafile": str(self.certificates.authority),
            }
        return {name: value for name, value in (options | more).items() if value is not None}

    def settings(
        self,
        door: str,
        prefix: str,
        user: str = "worker",
        host: str = HOST,
        scheme: str = "kafka",
        **more: Any,
    ) -> Settings:
        """Those of one model on this broker, for somebody who comes in by this door."""
        return Settings.model_validate(
            {
                "log": {"url": f"{scheme}://{self.address(door, host)}", "prefix": prefix},
                "labels": {"max_delay": 1000},
                "learner": {"kind": "perceptron"},
                "checkpoint": {"url": ""},
                "http": {"address": ""},
                "worker": {"slot": "slot"},
                "kafka": self.options(door, user, **more),
            }
        )

    @contextmanager
    def granted(self, rights: Iterable[Right]) -> Iterator[None]:
        """The rights, for so long."""
        acls = [right.acl for right in rights]
        self.grant(acls)
        try:
            yield
        finally:
            self.revoke(acls)

    @contextmanager
    def revoked(self, right: Right) -> Iterator[None]:
        """All but this one, for so long."""
        self.revoke([right.acl])
        try:
            yield
        finally:
            self.grant([right.acl])

    def grant(self, acls: list[ACL]) -> None:
        assert not self._admin.create_acls(acls)["failed"]
        self._wait(lambda known: all(str(each) in known for each in acls))

    def revoke(self, acls: list[ACL]) -> None:
        self._admin.delete_acls(
            [
                ACLFilter(
                    principal=each.principal,
                    host=each.host,
                    operation=each.operation,
                    permission_type=each.permission_type,
                    resource_pattern=each.resource_pattern,
                )
                for each in acls
            ]
        )
        self._wait(lambda known: all(str(each) not in known for each in acls))

    def _wait(self, met: Any) -> None:
        # The controller writes them, the broker hears of it.
        end = time.monotonic() + PROPAGATED_S
        while not met({str(each) for each in self._admin.describe_acls(EVERY_ACL)[0]}):
            assert time.monotonic() < end, "the broker does not hear of the changed rights"
            time.sleep(0.01)

    def _set_up(self, folder: Path) -> None:
        *ports, controller = free_ports(len(DOORS) + 1)
        self._ports = dict(zip(DOORS, ports, strict=True))
        listens = ",".join(f"{door.upper()}://{HOST}:{port}" for door, port in self._ports.items())
        shared = {
            **PROPERTIES,
            "inter.broker.listener.name": "INSIDE",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,"
            + ",".join(f"{door.upper()}:{protocol}" for door, protocol in DOORS.items()),
            "controller.quorum.voters": f"100@{HOST}:{controller}",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # The broker and its controller, by plain doors, which know nobody's name; and whoever has a token.
            "super.users": f"User:ANONYMOUS;User:{CLIENT}",
        }
        self._nodes = [
            Node(
                folder / "controller",
                {
                    **shared,
                    "process.roles": "controller",
                    "node.id": "100",
                    "listeners": f"CONTROLLER://{HOST}:{controller}",
                },
            ),
            Node(
                folder / "broker",
                {
                    **shared,
                    **self._locks(),
                    "process.roles": "broker",
                    "node.id": "1",
                    "listeners": listens,
                    "advertised.listeners": listens,
                },
                # Kafka asks only addresses that its operator allows.
                flags=(f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.issuer.keys.as_uri()}",),
            ),
        ]
        credentials = [
            argument
            for user in USERS
            for argument in (
                "--add-scram",
                f"{MECHANISM}=[name={user},password={password(user)},iterations=4096]",
            )
        ]
        formats = [self._nodes[0].format(*credentials), self._nodes[1].format()]
        for node, formatting in zip(self._nodes, formats, strict=True):
            output, _ = formatting.communicate(timeout=START_S)
            assert formatting.returncode == 0, output.decode(errors="replace")
            node.start()

    def _locks(self) -> dict[str, str]:
        certificates = self.certificates
        login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.server.both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.authority),
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.expired.ssl.keystore.type": "PEM",
            "listener.name.expired.ssl.keystore.location": str(certificates.expired.both),
            "sasl.enabled.mechanisms": MECHANISM,
            **self._oauth(),
            f"listener.name.scram.{MECHANISM.lower()}.sasl.jaas.config": login,
        }

    def _oauth(self) -> dict[str, str]:
        own, security = "listener.name.oauth.oauthbearer", "org.apache.kafka.common.security.oauthbearer"
        return {
            "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{own}.sasl.server.callback.handler.class": f"{security}.OAuthBearerValidatorCallbackHandler",
            f"{own}.sasl.jaas.config": f"{security}.OAuthBearerLoginModule required;",
            f"{own}.sasl.oauthbearer.jwks.endpoint.url": self.issuer.keys.as_uri(),
            f"{own}.sasl.oauthbearer.expected.audience": AUDIENCE,
            f"{own}.sasl.oauthbearer.expected.issuer": self.issuer.url,
            # Sessions end with their tokens, as on brokers that mean it: clients must log in again in time.
            f"{own}.connections.max.reauth.ms": "3600000",
        }

    def _wait_until_it_serves(self) -> None:
        # The line is written by our own child, so the listeners are ours and not a neighbour's.
        end = time.monotonic() + START_S
        broker = self._nodes[1]
        while READY not in broker.output():
            if not broker.runs() or time.monotonic() > end:
                raise RuntimeError(f"the broker did not start:\n{broker.output()[-5_000:]}")
            time.sleep(0.05)

    def __enter__(self) -> Self:
        self.issuer.__enter__()
        for attempt in range(3):
            self._set_up(self._folder / str(attempt))
            try:
                self._wait_until_it_serves()
                break
            except RuntimeError:
                self._end()
                if attempt == 2:
                    raise
        self._admin = KafkaAdminClient(bootstrap_servers=self.address("inside"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admin.close()
        self._end()
        self.issuer.__exit__()

    def _end(self) -> None:
        for node in reversed(self._nodes):
            node.end(signal.SIGKILL)
