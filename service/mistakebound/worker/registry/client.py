"""Schemas from a registry with the interface of Confluent's: Confluent's own, Karapace, Apicurio's, Redpanda's.

The client is Confluent's own, from the package of their Kafka client, an extra: it is maintained by who defines the
interface, knows its headers and GUIDs, and logs in by password, token and certificate. It is asked only to read.

An answer is a schema with everything it refers to, or that there is none. Anything else is a RegistryAway, which the
next attempt may mend, or a RegistryRefused, which only other settings can.
"""

import ssl
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

from mistakebound.core.messages.formats.schema_text import Reference, SchemaText
from mistakebound.settings import RegistrySettings
from mistakebound.worker.known_secrets import hide
from mistakebound.worker.registry.protoc import compiled

EXTRA = "registry"
LIBRARY = "confluent_kafka.schema_registry"
NOT_FOUND = 404
REFUSED = (401, 403)
MOST_REFERENCES = 1_000


class RegistryAway(Exception):
    """The registry did not answer; the next attempt may bring one."""


class RegistryRefused(Exception):
    """The registry does not answer this client, or is none; the text names the setting."""


class Registry:
    """One registry. Thread-safe as far as its callers take turns."""

    def __init__(self, settings: RegistrySettings) -> None:
        """`settings.url` must be set. Asks nothing yet."""
        assert settings.url is not None
        self._settings, self._url = settings, settings.url

    def schema(self, schema_id: str) -> SchemaText | None:
        """The schema of an id or a GUID; None where the registry says that it has none. Raises RegistryAway, RegistryRefused."""
        client = self._client()
        try:
            found = self._asked(
                lambda: (
                    client.get_schema_by_guid(schema_id)
                    if _is_guid(schema_id)
                    else client.get_schema(int(schema_id))
                )
            )
            if found is None:
                return None
            references = list(self._references(client, found, set()))
        finally:
            client.close()
        kind = found.schema_type or "AVRO"
        text = found.schema_str or ""
        if kind == "PROTOBUF":
            descriptors, wrong = compiled(text, references)
            return SchemaText(kind, text, references, descriptors, wrong)
        return SchemaText(kind, text, references)

    def probe(self) -> None:
        """Ask for what every registry knows. Raises RegistryAway, RegistryRefused."""
        client = self._client()
        try:
            if self._asked(client.get_subjects) is None:
                raise RegistryRefused(f"nobody keeps schemas at {self._url} (404); correct registry.url")
        finally:
            client.close()

    def _references(self, client: Any, schema: Any, met: set[str]) -> Iterator[Reference]:
        """What a schema refers to, each once; first what is referred to."""
        for each in schema.references or ():
            if each.name in met or len(met) >= MOST_REFERENCES:
                continue
            met.add(each.name)
            found = self._asked(
                lambda each=each: client.get_version(each.subject, each.version, deleted=True)
            )
            if found is not None:
                yield from self._references(client, found.schema, met)
                yield Reference(each.name, found.schema.schema_str or "")

    def _asked(self, ask: Any) -> Any:
        """The answer; None where the registry says that there is none."""
        errors: Any = import_module(LIBRARY)
        try:
            return ask()
        except errors.SchemaRegistryError as error:
            if error.http_status_code == NOT_FOUND:
                return None
            said = f"{self._url} answered {error.http_status_code}: {str(error.error_message)[:200]}"
            if error.http_status_code in REFUSED:
                raise RegistryRefused(
                    f"{said}; correct registry.username and its password, or registry.token_file"
                ) from None
            raise RegistryAway(said) from None
        except Exception as error:  # noqa: BLE001 - the client lets through whatever its HTTP library raises
            if (fault := _of_certificate(error)) is not None:
                raise RegistryRefused(
                    f"the certificate of {self._url} does not pass ({fault}); name in registry.ca the authority "
                    "that signed it"
                ) from None
            raise RegistryAway(f"no answer from {self._url}: {error or type(error).__name__}") from None

    def _client(self) -> Any:
        """A client of its own for each schema, so that a password that was replaced is the one that is used."""
        given = self._settings
        options: dict[str, Any] = {
            "url": self._url,
            "timeout": given.timeout.total_seconds(),
            "max.retries": 0,  # who asks waits in its own way
        }
        if given.username is not None:
            password = (
                given.password if given.password_file is None else _read(given.password_file, "password_file")
            )
            options["basic.auth.user.info"] = f"{given.username}:{password or ''}"
        if given.token_file is not None:
            options |= {
                "bearer.auth.credentials.source": "STATIC_TOKEN",
                "bearer.auth.token": _read(given.token_file, "token_file"),
                "bearer.auth.logical.cluster": "",
                "bearer.auth.identity.pool.id": "",
            }
        names: Mapping[str, str | None] = {
            "ssl.ca.location": given.ca,
            "ssl.certificate.location": given.certificate,
            "ssl.key.location": given.key,
        }
        options |= {name: value for name, value in names.items() if value is not None}
        try:
            return import_module(LIBRARY).SchemaRegistryClient(options)
        except (OSError, ValueError, TypeError) as error:  # among them a PEM file that is none
            raise RegistryRefused(f"[registry] cannot be used: {error}") from None


def _read(path: str, key: str) -> str:
    """A secret, read again each time: whoever mounts the file replaces it. Raises RegistryRefused."""
    try:
        text = Path(path).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise RegistryRefused(f"registry.{key} = {path!r} cannot be read: {reason}") from None
    hide(text)
    return text


def _of_certificate(error: BaseException) -> str | None:
    """What a certificate's check found wrong, where that is the cause."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return seen.verify_message.rstrip(".")
        seen = seen.__cause__ or seen.__context__
    return "certificate verify failed" if "CERTIFICATE_VERIFY_FAILED" in str(error) else None


def _is_guid(schema_id: str) -> bool:
    try:
        return str(UUID(schema_id)) == schema_id
    except ValueError:
        return False
