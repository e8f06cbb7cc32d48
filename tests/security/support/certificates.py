"""Certificates of one test run: an authority that is trusted, and one that nobody has heard of."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

HOST = "127.0.0.1"
KEY_PASSWORD = "pa55-of-the-key"


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files in PEM; `both` holds one after the other, as Kafka wants them."""

    certificate: Path
    key: Path
    both: Path


class Certificates:
    """Files in one folder. All certificates are for the address `HOST` only, not for `localhost`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        ours, foreign = trustme.CA(), trustme.CA()
        self.authority = folder / "authority.pem"
        ours.cert_pem.write_to_path(str(self.authority))
        self.foreign_authority = folder / "foreign-authority.pem"
        foreign.cert_pem.write_to_path(str(self.foreign_authority))
        yesterday = datetime.now(UTC) - timedelta(days=1)
        self.server = self._issue("server", ours)
        self.expired = self._issue("expired", ours, not_after=yesterday)
        self.client = self._issue("client", ours, common_name="worker")
        self.foreign_client = self._issue("foreign-client", foreign, common_name="worker")
        self.expired_client = self._issue("expired-client", ours, common_name="worker", not_after=yesterday)
        self.encrypted_key = folder / "client-encrypted.key"
        key = load_pem_private_key(self.client.key.read_bytes(), None)
        self.encrypted_key.write_bytes(
            key.private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(KEY_PASSWORD.encode())
            )
        )

    def _issue(
        self, name: str, by: trustme.CA, *, common_name: str | None = None, not_after: datetime | None = None
    ) -> Pair:
        issued = by.issue_cert(
            HOST, common_name=common_name, not_before=datetime(2020, 1, 1, tzinfo=UTC), not_after=not_after
        )
        pair = Pair(*(self._folder / f"{name}.{end}" for end in ("pem", "key", "both")))
        certificate = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        # Kafka reads PKCS #8 only.
        key = load_pem_private_key(issued.private_key_pem.bytes(), None).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
        pair.certificate.write_bytes(certificate)
        pair.key.write_bytes(key)
        pair.both.write_bytes(key + certificate)
        return pair
