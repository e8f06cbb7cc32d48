"""Secrets out of files, such as those that containers mount under /run/secrets."""

from pathlib import Path

LIMIT_BYTES = 65_536
ENDING = "_file"


class BadSecretFile(Exception):
    """The file cannot be used; the text says why."""


def read_secret(name: str) -> str:
    """What the file holds, without the line end that editors leave. Raises BadSecretFile."""
    try:
        with Path(name).open("rb") as file:
            found = file.read(LIMIT_BYTES + 1)
        if len(found) > LIMIT_BYTES:
            raise BadSecretFile(f"the file {name} is larger than {LIMIT_BYTES} bytes")
        return found.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise BadSecretFile(f"the file {name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadSecretFile(f"the file {name} is not UTF-8 text") from None
    except ValueError as error:
        raise BadSecretFile(f"{name!r} is not the name of a file: {error}") from None
