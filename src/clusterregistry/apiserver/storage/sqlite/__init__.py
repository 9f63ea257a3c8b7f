"""The embedded storage engine: one SQLite file, one server process.

All writes go through one thread that commits them in groups (``writer``); reads run in a small pool of threads
(``reader``). So the event loop never waits for a disk. The package must not know caches, nor what the bytes mean. No
``sqlite3`` exception leaves it: ``errors`` translates them into StorageUnavailable.
"""

from clusterregistry.apiserver.storage.sqlite.store import SQLiteStorage

__all__ = ["SQLiteStorage"]
