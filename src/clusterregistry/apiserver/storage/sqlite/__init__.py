"""The embedded engine: one SQLite file, one server process.

All writes go through one thread that commits them in groups (``writing``); reads run in a small pool
(``reading``), so the event loop never waits for a disk. It must not know of caches or of what the
bytes mean, and no ``sqlite3`` exception may leave it: ``failures`` turns them into StorageUnavailable.
"""

from clusterregistry.apiserver.storage.sqlite.store import SQLiteStorage

__all__ = ["SQLiteStorage"]
