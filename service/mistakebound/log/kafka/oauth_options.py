"""The user's options of the mechanism OAUTHBEARER, by the same names for both clients, and what is wrong with them."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

MECHANISM = "OAUTHBEARER"
URL, CLIENT_ID, SECRET, SCOPE = (
    f"sasl_oauth_{name}" for name in ("url", "client_id", "client_secret", "scope")
)
EXTENSIONS, CAFILE, JWT_PATH = (f"sasl_oauth_{name}" for name in ("extensions", "cafile", "jwt_path"))
OPTIONS = (URL, CLIENT_ID, SECRET, SCOPE, EXTENSIONS, CAFILE, JWT_PATH)
"""What the user gives under `[kafka]`."""


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """`name=value,name=value`. Raises ValueError with what is none."""
    for one in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = one.partition("=")
        if not equals or not name.isalpha() or not value:
            raise ValueError(one)
        yield name, value


def problems(given: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the options of this mechanism, each with its remedy."""
    for name in OPTIONS:
        if name in given and (not isinstance(given[name], str) or not given[name]):
            yield f"kafka.{name} = {given[name]!r} is no text; write text, or remove it"
            return
    if URL not in given and JWT_PATH not in given:
        yield (
            f"{MECHANISM} needs tokens; name in kafka.{URL} where they are issued, with kafka.{CLIENT_ID} and "
            f"kafka.{SECRET}_file, or in kafka.{JWT_PATH} the file that holds one"
        )
    elif URL in given:
        yield from _of_the_issuer(given)
    elif idle := [f"kafka.{name}" for name in (CLIENT_ID, SECRET, SCOPE, CAFILE) if name in given]:
        yield f"{', '.join(idle)} would have no effect without kafka.{URL}; set it, or remove the options"
    try:
        names = [name for name, _ in pairs(given.get(EXTENSIONS, ""))]
    except ValueError as error:
        yield (
            f"kafka.{EXTENSIONS}: {error.args[0]!r} is no name=value; write name=value pairs divided by commas, "
            "with names of letters"
        )
    else:
        if "auth" in names:
            yield f"kafka.{EXTENSIONS}: `auth` is the token's own name; rename the extension"


def _of_the_issuer(given: Mapping[str, Any]) -> Iterator[str]:
    try:
        parts = urlsplit(given[URL])
        usable = parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        yield f"kafka.{URL} is no address; write it as https://issuer.example/token"
    if CLIENT_ID not in given:
        yield f"kafka.{CLIENT_ID} is missing, kafka.{URL} needs it"
    if (SECRET in given) == (JWT_PATH in given):
        yield (
            f"kafka.{URL} takes either a secret or an assertion; give one of kafka.{SECRET}_file and kafka.{JWT_PATH}"
        )
