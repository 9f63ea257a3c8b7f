"""The Pythons that this machine has, of the releases that the project supports."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")


def get_cached() -> dict[str, Path]:
    """A Python for each supported release that is installed: on the PATH, in /usr/bin, or kept by pyenv."""
    return {release: found for release in SUPPORTED if (found := _find(release))}


def _find(release: str) -> Path | None:
    return next((python for python in _candidates(release) if _answers(python, release)), None)


def _candidates(release: str) -> Iterator[Path]:
    yield Path(f"/usr/bin/python{release}")
    for directory in map(Path, os.environ.get("PATH", "").split(os.pathsep)):
        if directory.name == "shims":  # of pyenv: they work only for the release that is switched on
            yield from sorted((directory.parent / "versions").glob(f"{release}.*/bin/python{release}"))
    if found := shutil.which(f"python{release}"):
        yield Path(found)


def _answers(python: Path, release: str) -> bool:
    if not python.exists():
        return False
    program = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", program], check=False, capture_output=True, text=True)
    return done.stdout.strip() == release
