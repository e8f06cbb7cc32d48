"""`learner.concepts = "@FILE"`: truth tables from a file, which replace its name so that the epoch holds them."""

from pathlib import Path

MARK = "@"
LARGEST_BYTES = 500_000
"""The epoch's record holds the tables, and must fit its topic."""


class BadConceptFile(ValueError):
    """The file cannot be used; the text names it, and the line."""


def read_tables(name: str) -> str:
    """The file's tables as `table:0110,1001`: one a line, digits 0 and 1; `#` begins a comment.

    Raises BadConceptFile.
    """
    try:
        text = Path(name).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise BadConceptFile(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadConceptFile(f"{name} is not UTF-8 text at byte {error.start}") from None
    rows: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        row = "".join(line.partition("#")[0].split())
        if not row:
            continue
        if strange := set(row) - {"0", "1"}:
            raise BadConceptFile(f"{name}, line {number}: {min(strange)!r} is neither 0 nor 1")
        if len(row) & (len(row) - 1):
            wrong = f"{len(row)} digits; over n variables a table has 2^n, one for each example"
            raise BadConceptFile(f"{name}, line {number}: {wrong}")
        if rows and len(row) != len(rows[0]):
            wrong = f"{len(row)} digits, the first table has {len(rows[0])}"
            raise BadConceptFile(f"{name}, line {number}: {wrong}")
        rows.append(row)
    if not rows:
        raise BadConceptFile(f"{name} holds no table")
    whole = "table:" + ",".join(rows)
    if len(whole) > LARGEST_BYTES:
        wrong = f"{len(whole)} bytes of tables; the epoch's record takes {LARGEST_BYTES}"
        raise BadConceptFile(f"{name} holds {wrong}")
    return whole
