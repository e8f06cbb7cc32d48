"""`health`: ask a worker on this machine whether it is well; made for container health checks."""

from typing import Annotated

from typer import Option

from mistakebound.commands.errors import CommandError
from mistakebound.commands.options import Config, LogUrl, Sets, read_settings
from mistakebound.exit_codes import ExitCode

_TIMEOUT_S = 3.0
_ANSWER_BYTES = 65_536


def health(
    ready: Annotated[
        bool, Option("--ready", help="Ask whether it keeps up (/readyz), not only whether it lives.")
    ] = False,
    config: Config = None,
    sets: Sets = None,
    log: LogUrl = None,
) -> None:
    """Ask the worker at http.address. Exit 0 when well, 3 when not, 4 when nobody answers."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    from mistakebound.worker.http.tls import asking, is_shown

    http = read_settings(config, sets, log).http
    address, certificate = http.address, http.tls_certificate
    if not address:
        raise CommandError("http.address is empty: the worker serves no health; set it to host:port")
    host, _, port = address.rpartition(":")
    path = "/readyz" if ready else "/healthz"
    bare = host.removeprefix("[").removesuffix("]")
    # Where a server listens on all addresses, any of this machine's own reaches it.
    peer = ({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(bare, bare), int(port))  # noqa: S104
    if certificate is None:
        scheme, connection = "http", HTTPConnection(*peer, timeout=_TIMEOUT_S)
    else:
        scheme, connection = "https", HTTPSConnection(*peer, timeout=_TIMEOUT_S, context=asking())
    try:
        connection.connect()
        if certificate is not None and not is_shown(certificate, connection.sock):
            raise CommandError(
                f"{scheme}://{address} shows another certificate than http.tls_certificate = {certificate!r}: "
                "is it this worker that listens there, with these settings?",
                ExitCode.UNREACHABLE,
            )
        connection.request("GET", path)
        response = connection.getresponse()
        answer = response.read(_ANSWER_BYTES).decode("utf-8", "replace").rstrip()
    except (OSError, HTTPException) as error:
        raise CommandError(
            f"no answer from {scheme}://{address}{path}: {error or type(error).__name__}. "
            "Is the worker running, with this http.address?",
            ExitCode.UNREACHABLE,
        ) from None
    finally:
        connection.close()
    print(answer)
    if response.status != 200:
        raise CommandError(f"{path} answered {response.status}", ExitCode.CHECK_FAILED)
