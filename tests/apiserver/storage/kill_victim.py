"""A process that writes until it is killed, and says on its standard output what was acknowledged.

Run as a script with the database's path. Each of its writers owns one key, and reports ``key revision value``.
"""

import asyncio
import os
import sys
from pathlib import Path

from clusterregistry.apiserver.storage.errors import KeyExists
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage

WRITERS = 6


async def write(storage: SQLiteStorage, key: str) -> None:
    count = 0
    try:
        revision = await storage.create(key, b"0")
    except KeyExists:
        item = await storage.get(key)
        assert item is not None
        count, revision = int(item.value), item.revision
    while True:
        count += 1
        # Deletes and creates now and then, since a lost tombstone is as bad as a lost value.
        if count % 10 == 0:
            await storage.delete(key, expected=revision)
            revision = await storage.create(key, b"%d" % count)
        else:
            revision = await storage.update(key, b"%d" % count, expected=revision)
        os.write(1, f"{key} {revision} {count}\n".encode())


async def main(path: Path) -> None:
    storage = await SQLiteStorage.open(path)
    await asyncio.gather(*(write(storage, f"/{n}") for n in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
