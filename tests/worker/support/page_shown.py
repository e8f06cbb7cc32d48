"""The status page in a browser: opened, read, and photographed where that is asked for."""

import os
from pathlib import Path
from typing import Any

from tests.worker.support.browser import Browser

SHOTS = os.environ.get("MISTAKEBOUND_TEST_SCREENSHOTS")
"""A folder for screenshots; none are taken without it."""


def visit(browser: Browser, url: str) -> None:
    """Open the page, and wait for its first numbers."""
    browser.open(url, "document.body?.dataset.shown")


def text(browser: Browser, part: str) -> str:
    """What a person reads in a part of the page."""
    found: str = browser.ask(f"document.getElementById({part!r}).innerText.trim()")
    return found.replace("\xa0", " ")


def texts(browser: Browser, selector: str) -> Any:
    """The text of every element of a kind."""
    read = "one.textContent.replaceAll('\\u00a0', ' ')"
    return browser.ask(f"[...document.querySelectorAll({selector!r})].map((one) => {read})")


def title(browser: Browser) -> str:
    """What the tab is called."""
    found: str = browser.ask("document.title")
    return found.replace("\xa0", " ")


def wide_by(browser: Browser) -> int:
    """By how many pixels the page is wider than its window."""
    excess: int = browser.ask("document.documentElement.scrollWidth - innerWidth")
    return excess


def photograph(browser: Browser, name: str) -> None:
    """Every way to look at it, for a person to judge."""
    if SHOTS is None:
        return
    for way, width, dark in (
        ("light", 1100, False), ("dark", 1100, True), ("phone", 375, False), ("phone-dark", 375, True),
    ):  # fmt: skip
        browser.look(width=width, dark=dark)
        browser.ask("new Promise((done) => setTimeout(done, 600))")  # bars move to their places
        browser.screenshot(Path(SHOTS) / f"{name}-{way}.png")
