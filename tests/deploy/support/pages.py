"""The README and the pages under `deploy`, as text, fenced blocks and commands."""

import re
import shlex
from itertools import takewhile
from pathlib import Path

from tests.support.project import ROOT

README = ROOT / "README.md"
DEPLOY = ROOT / "deploy"
PAGES = (README, *sorted(DEPLOY.glob("*.md")))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def section(page: Path, heading: str) -> str:
    """What stands below a heading of the second level, up to the next one."""
    return text_of(page).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def fenced(text: str) -> list[tuple[str, str]]:
    """Every fenced block with its language, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return [block for found, block in fenced(text_of(page)) if found == language]


def commands(page: Path) -> list[list[str]]:
    """The words of each command of the program that a page shows, in a sentence or in a block, without its name."""
    text = text_of(page)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL).replace("\n", " ")
    lines = [
        line for language, block in fenced(text) if language in ("sh", "text") for line in block.splitlines()
    ]
    shown = re.findall(r"`(mistakebound [^`]+)`", prose) + [
        line for line in lines if line.startswith("mistakebound ")
    ]
    return [list(takewhile(_is_argument, shlex.split(one, comments=True)[1:])) for one in shown]


def _is_argument(word: str) -> bool:
    """Rather than a pipe or a file for what is printed."""
    return word[:1] not in ("|", ">")
