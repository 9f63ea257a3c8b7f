"""Whether the files that a server has open are still those that others find under their names.

A file that was removed or replaced takes writes as before. They are lost when the process ends, so none is taken.
"""

from __future__ import annotations

import os
from pathlib import Path

from clusterregistry.apiserver.storage.errors import StorageUnavailable

_REMEDY = (
    "do not stop the server yet: it still has the data. If the file was moved, move it back. Otherwise write a backup "
    "(`clusterregistry storage backup FILE`), stop the server, restore that backup (`clusterregistry storage restore "
    "FILE`) and start the server"
)


class ServedFiles:
    """The database and its write-ahead log, as they are when this is made: after both were opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # By their names alone: to open and close a file would give up all locks that SQLite has on it.
        self._files = [(name, _identity(os.lstat(name))) for name in (str(path), f"{path}-wal")]

    def check(self) -> None:
        """Raises StorageUnavailable when one of the files is not the one that is open. Takes some microseconds."""
        for name, identity in self._files:
            if _present_identity(name) != identity:
                raise StorageUnavailable(f"{name} was removed or replaced while the server runs", remedy=_REMEDY)

    def problem(self) -> str:
        """What ``check`` raises, for a person; empty when all is well."""
        try:
            self.check()
        except StorageUnavailable as error:
            return f"{error}; {error.remedy}"
        return ""


def _present_identity(name: str) -> tuple[int, int] | None:
    try:
        # Not what a link stands for: the next server would look for the log beside that.
        return _identity(os.lstat(name))
    except OSError:
        return None


def _identity(found: os.stat_result) -> tuple[int, int]:
    """Device and inode. No other file gets them as long as one has this file open."""
    return found.st_dev, found.st_ino
