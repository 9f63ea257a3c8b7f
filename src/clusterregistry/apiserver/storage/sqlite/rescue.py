"""Files that have no name any more, but that a server still has open: Linux hands them out under ``/proc``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROCESSES = Path("/proc")
_DELETED = " (deleted)"
"""What Linux adds to the name of an open file that was removed or replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDatabase:
    """A database that was removed or replaced under the server that has it open. That server takes no writes."""

    pid: int
    database: Path
    log: Path | None

    def copy_to(self, target: Path) -> None:
        """Makes files under names of their own. Raises OSError."""
        shutil.copyfile(self.database, target)
        if self.log is not None:
            shutil.copyfile(self.log, f"{target}-wal")


def find_removed(path: Path) -> OpenDatabase | None:
    """What a server has open in place of the file that is, or is not, under this name. None on other systems.

    None also when a server has the present file, whoever else still has an older one: only servers have a claim on it.
    """
    name = str(path.resolve())
    servers = {pid: files for pid, files in _processes() if {f"{name}.lock", f"{name}.lock{_DELETED}"} & files.keys()}
    if any(name in files for files in servers.values()):
        return None
    for pid, files in servers.items():
        database = files.get(name + _DELETED)
        if database is not None:
            log = files.get(f"{name}-wal{_DELETED}") or files.get(f"{name}-wal")
            return OpenDatabase(pid=pid, database=database, log=log)
    return None


def _processes() -> Iterator[tuple[int, dict[str, Path]]]:
    """Those that run, by their ids, and what they have open."""
    if _PROCESSES.is_dir():
        yield from ((int(entry.name), _open_files(entry)) for entry in _PROCESSES.iterdir() if entry.name.isdecimal())


def _open_files(process: Path) -> dict[str, Path]:
    """What a process has open, by name. Nothing of a process that is gone, or another user's."""
    found: dict[str, Path] = {}
    with suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with suppress(OSError):
                found[os.readlink(descriptor)] = descriptor  # noqa: PTH115 - a name as Linux gives it, and no path
    return found
