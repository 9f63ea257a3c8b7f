"""One process per file.

SQLite's own exclusive mode would also lock out backups and the ``sqlite3`` shell, so the claim is an
operating system lock on a file beside the database. The system drops it when the process ends, however
it ends; the file itself stays, since removing it would let two processes lock two different ones.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from clusterregistry.apiserver.storage.errors import StorageUnavailable


class FileLock:
    """A claim on a database file, held from construction to ``release``."""

    @staticmethod
    def exists(database: Path) -> bool:
        """Whether there ever was a claim."""
        return Path(f"{database}.lock").exists()

    def __init__(self, database: Path) -> None:
        self._descriptor = os.open(f"{database}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._claim(database)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        os.close(self._descriptor)

    def _claim(self, database: Path) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            raise StorageUnavailable(
                f"{database} is in use by another server process (pid {holder}): an SQLite file serves one process",
                remedy="stop that process, or give this one a --data-dir of its own; nothing was changed",
            ) from None

    def sign(self) -> None:
        """Says who has the claim: once it is certain that the file will be used, for else nothing is to be touched."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, b"%d\n" % os.getpid(), 0)
