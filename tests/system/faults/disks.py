"""A disk that fails on demand, for the real server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

COMPILER = shutil.which("cc") or shutil.which("gcc")
WHY_NOT = "there is no C compiler (cc)"
NEEDS_COMPILER = pytest.mark.skipif(COMPILER is None, reason=WHY_NOT)

_SOURCE = Path(__file__).with_name("failing_disk.c")


class FailingDisk:
    """Made with a directory of its own. Programs that run in its environment cannot sync a file while it fails."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._library, self._switch = directory / "failing_disk.so", directory / "failing"
        assert COMPILER is not None
        subprocess.run(
            [COMPILER, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", self._library, _SOURCE, "-ldl"], check=True
        )

    @property
    def environment(self) -> Mapping[str, str]:
        return {"LD_PRELOAD": str(self._library), "FAILING_DISK": str(self._switch)}

    def fail(self) -> None:
        """No sync succeeds from now on."""
        self._switch.write_text("always")

    def fail_once(self) -> None:
        """The next sync fails."""
        self._switch.write_text("once")

    @property
    def has_failed(self) -> bool:
        """Whether the one sync that was to fail has done so."""
        return not self._switch.exists()

    def repair(self) -> None:
        self._switch.unlink(missing_ok=True)
