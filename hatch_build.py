"""What the metadata says that only a build knows: where the project can be read, in its links and in the README's.

The README's links lead to files beside it. An index shows it without them, so a build is told the public address:

    PROJECT_URL=https://forge.example/owner/mistakebound

Where the forge does not show a file at PROJECT_URL/blob/vVERSION/FILE, PROJECT_FILES_URL says what comes before FILE. A
build that is told nothing has no links: the name of each file stays, in brackets.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"\[([^\]]+)\]\(((?!https?:)[^)\s]+)\)")
"""To a file of the project."""


class PublicAddress(MetadataHookInterface):
    """Gives the fields `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """As hatchling asks it. Ends the build under an older Python: pip would blame a dependency's versions instead."""
        if sys.version_info < (3, 11):  # noqa: UP036 - as above
            found = ".".join(map(str, sys.version_info[:3]))
            raise SystemExit(f"mistakebound needs Python 3.11 or newer, and {sys.executable} is {found}")
        home = os.environ.get("PROJECT_URL", "").rstrip("/")
        files = os.environ.get("PROJECT_FILES_URL", f"{home}/blob/v{metadata['version']}").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        link = rf"[\1]({files}/\2)" if home else r"\1 (\2)"
        metadata["readme"] = {"content-type": "text/markdown", "text": _LINK.sub(link, text)}
        metadata["urls"] = {}
        if home:
            metadata["urls"] = {
                "Homepage": home,
                "Documentation": f"{files}/deploy/operations.md",
                "Changelog": f"{files}/deploy/CHANGELOG.md",
            }
