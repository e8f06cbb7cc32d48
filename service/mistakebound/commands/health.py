"""`health`: asks a worker on this machine how it is; made for container health checks."""

from typing import Annotated

import typer

from mistakebound.commands.exit_codes import CommandError, ExitCode
from mistakebound.commands.options import Config, LogUrl, Sets, settings_of

_TIMEOUT_S = 3.0
_ANSWER_BYTES = 65_536


def health(
    ready: Annotated[
        bool, typer.Option("--ready", help="Ask whether it keeps up (/readyz), not only whether it lives.")
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Ask the worker at http.address. Exit 0 when well, 3 when not, 4 when nobody answers."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    from mistakebound.worker.http.tls import asking, is_shown

    http = settings_of(config, sets, log).http
    address, certificate = http.address, http.tls_certificate
    if not address:
        raise CommandError(
            ExitCode.USAGE, "http.address is empty: the worker serves no health; set it to host:port"
        )
    host, _, port = address.rpartition(":")
    path = "/readyz" if ready else "/healthz"
    place = (_reachable(host), int(port))
    connection = (
        HTTPConnection(*place, timeout=_TIMEOUT_S)
        if certificate is None
        else HTTPSConnection(*place, timeout=_TIMEOUT_S, context=asking())
    )
    scheme = "http" if certificate is None else "https"
    try:
        connection.connect()
        if certificate is not None and not is_shown(certificate, connection.sock):
            raise CommandError(
                ExitCode.UNREACHABLE,
                f"{scheme}://{address} shows another certificate than http.tls_certificate = {certificate!r}: "
                "is it this worker that listens there, with these settings?",
            )
        connection.request("GET", path)
        response = connection.getresponse()
        answer = response.read(_ANSWER_BYTES).decode("utf-8", "replace").rstrip()
    except (OSError, HTTPException) as error:
        wrong = f"no answer from {scheme}://{address}{path}: {error or type(error).__name__}"
        remedy = "Is the worker running, with this http.address?"
        raise CommandError(ExitCode.UNREACHABLE, f"{wrong}. {remedy}") from None
    finally:
        connection.close()
    print(answer)
    if response.status != 200:
        raise CommandError(ExitCode.CHECK_FAILED, f"{path} answered {response.status}")


def _reachable(host: str) -> str:
    """Where to ask a server that listens on every address."""
    bare = host.removeprefix("[").removesuffix("]")
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bare, bare)  # noqa: S104
