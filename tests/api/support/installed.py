"""The built wheel in a virtual environment of its own, which borrows the dependencies of the present one."""

import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

from tests.support.project import ROOT

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
ENVIRON = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Installed:
    """Where it is, and what runs in it."""

    wheel: Path
    environment: Path

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.environment / "bin" / "python"

    def run(self, folder: Path, program: str | Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a program of the environment in a folder of the user's; it may fail."""
        return subprocess.run(
            [str(self.environment / "bin" / program), *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env=ENVIRON,
            timeout=240,
        )

    def names(self) -> set[str]:
        """What the wheel puts into site-packages."""
        with zipfile.ZipFile(self.wheel) as content:
            return {name.partition("/")[0] for name in content.namelist()}

    def metadata(self) -> Any:
        """What an index would show of it, as an e-mail's head and text."""
        with zipfile.ZipFile(self.wheel) as content:
            (name,) = (each for each in content.namelist() if each.endswith(".dist-info/METADATA"))
            return message_from_bytes(content.read(name), policy=policy.default)


def build(folder: Path) -> Path:
    """The wheel, built into the folder; what the build needs may be fetched."""
    subprocess.run([*PIP, "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)], check=True, timeout=240)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(folder: Path) -> Installed:
    """Build the wheel and install it. Dependencies are found, not fetched; those of the build may be."""
    environment = folder / "environment"
    wheel = build(folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True, timeout=240)
    python = environment / "bin" / "python"
    subprocess.run(
        [*PIP, "--python", str(python), "install", "-q", "--no-deps", "--no-index", str(wheel)],
        check=True,
        timeout=240,
    )
    # A folder on this path is not searched for further paths: the editable install stays out of sight.
    (site_packages,) = environment.glob("lib/python*/site-packages")
    (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(wheel, environment)
