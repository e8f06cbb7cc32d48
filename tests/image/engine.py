"""What builds images and runs containers here, and the base image that stands for Python's.

No registry of images is asked: the base is made from Debian's packages. Its Python is Debian's of the same version as the
Dockerfile's, its pip lies where Python's own image has it, and it trusts whom this machine trusts.

Everything is kept in one folder, and `Engine.close` ends and removes it all.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PROGRAMS = ("buildah", "podman", "runc", "debootstrap")
MISSING = (
    "{} not on the PATH; install what is needed (Debian and Ubuntu: apt-get install buildah podman runc debootstrap), or "
    "leave these tests out with: pytest -m 'not image'"
)
BASE = "localhost/python"
PACKAGES = ("python3", "python3-venv", "libpython3-dev", "python-is-python3", "ca-certificates")
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
SUITE = "bookworm"
BASE_S = 600.0
CONFINED = ("--network", "host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000")
"""Limits are named since the engine's own are higher than what a machine that is a container itself may ask for."""


class Unavailable(Exception):
    """No container can be made on this machine; the text says why."""


class Engine:
    """One store of images and the containers made of them, kept apart from the machine's own."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is a new one in the system's folder for temporary files unless named. Raises Unavailable."""
        absent = [each for each in PROGRAMS if shutil.which(each) is None]
        if absent:
            raise Unavailable(MISSING.format(", ".join(absent) + (" is" if len(absent) == 1 else " are")))
        if os.geteuid() != 0:
            raise Unavailable("only root may make the base image of these tests")
        # Short: the paths of sockets below it are limited to some hundred characters.
        self.folder = Path(tempfile.mkdtemp(prefix="image-")) if folder is None else folder
        self.folder.mkdir(exist_ok=True)
        self._chosen = self.folder / "driver"

    def prepare(self) -> None:
        """Make the base image, and try what a build and a container need. Raises Unavailable."""
        if self._chosen.exists():
            return
        root = self.folder / "base"
        try:
            self._debian(root)
            for driver in ("overlay", "vfs"):
                try:
                    self._try(driver, root)
                except subprocess.CalledProcessError:
                    if driver == "vfs":
                        raise
                else:
                    self._chosen.write_text(driver)
                    return
        except subprocess.CalledProcessError as error:
            raise Unavailable(_said(error)) from error
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"`{' '.join(error.cmd)}` took more than {error.timeout:g} s") from error
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def build(self, context: Path, tag: str, **arguments: str) -> None:
        """`deploy/Dockerfile` with these arguments, as the documents say, on the base image that is here."""
        given = [f"--build-arg={name}={value}" for name, value in {"PYTHON_IMAGE": BASE, **arguments}.items()]
        file = context / "deploy" / "Dockerfile"
        options = ("--pull-never", "--format", "docker", "-f", str(file), "-t", tag)
        try:
            self._ran("buildah", "build", *options, *given, str(context), timeout_s=1_500)
        except subprocess.CalledProcessError as error:
            raise AssertionError(_said(error)) from None

    def podman(self, *arguments: str, timeout_s: float = 90.0) -> "subprocess.CompletedProcess[str]":
        """Its result, whatever it is."""
        command = self._command("podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs", *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)

    def close(self) -> None:
        """End and remove what runs, and the folder."""
        if self._chosen.exists():
            self.podman("rm", "--all", "--force", "--volumes")
            self.podman("rmi", "--all", "--force")
        subprocess.run(["umount", self.folder / "store" / "overlay"], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _debian(self, root: Path) -> None:
        wanted = f"--include={','.join(PACKAGES)}"
        _ran(["debootstrap", "--variant=minbase", wanted, SUITE, str(root)], BASE_S)
        shutil.copy(AUTHORITIES, root / AUTHORITIES.lstrip("/"))
        # Debian's Python and pip belong to its packages; Python's own image may be changed by pip, and its pip be removed.
        (managed,) = root.glob("usr/lib/python3.*/EXTERNALLY-MANAGED")
        managed.unlink()
        (wheel,) = (root / "usr/share/python-wheels").glob("pip-*.whl")
        inside = f"/usr/share/python-wheels/{wheel.name}"
        install = ("install", "--quiet", "--no-index", inside)
        _ran(["chroot", str(root), "python3", f"{inside}/pip", *install], BASE_S)

    def _try(self, driver: str, root: Path) -> None:
        self._chosen.write_text(driver)
        try:
            (container,) = self._ran("buildah", "from", "scratch").split()
            self._ran("buildah", "copy", "--quiet", container, str(root), "/")
            for name, value in _of_pip().items():
                self._ran("buildah", "config", "--env", f"{name}={value}", container)
            fetch = "python -m pip download -q --no-deps -d /tmp/tried structlog && rm -r /tmp/tried"
            self._ran("buildah", "run", container, "--", "sh", "-c", fetch)
            self._ran("buildah", "commit", "--quiet", "--rm", container, BASE)
            done = self.podman("run", "--rm", *CONFINED, "--read-only", BASE, "python", "--version")
            if done.returncode != 0:
                raise subprocess.CalledProcessError(
                    done.returncode, ["podman", "run"], done.stdout.encode(), done.stderr.encode()
                )
        finally:
            self._chosen.unlink()

    def _ran(self, program: str, *arguments: str, timeout_s: float = 300.0) -> str:
        return _ran(self._command(program, *arguments), timeout_s).decode()

    def _command(self, program: str, *arguments: str) -> list[str]:
        driver = self._chosen.read_text()
        places = ("--root", str(self.folder / "store"), "--runroot", str(self.folder / "run"))
        return [program, "--storage-driver", driver, *places, *arguments]


def _said(error: subprocess.CalledProcessError) -> str:
    said = (error.stdout + error.stderr).decode(errors="replace").strip()
    return f"`{' '.join(error.cmd)}` failed: {said[-3_000:]}"


def _ran(command: list[str], timeout_s: float) -> bytes:
    environ = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    done = subprocess.run(command, capture_output=True, check=False, timeout=timeout_s, env=environ)
    if done.returncode != 0:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return done.stdout


def _of_pip() -> dict[str, str]:
    """Where this machine's pip gets packages from, as far as variables say."""
    named = {
        name: os.environ[name]
        for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT")
        if name in os.environ
    }
    return {**named, "PIP_CERT": AUTHORITIES}
