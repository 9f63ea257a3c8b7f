"""The stores that the conformance suite runs over. A new engine is one more entry here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from clusterregistry.storage.cacher import Cacher
from clusterregistry.storage.interface import Storage
from clusterregistry.storage.sqlite import SQLiteStorage


class Engine(Protocol):
    """One store that can be closed and opened again, as a restart of the server does."""

    async def open(self) -> Storage: ...

    async def close(self) -> None: ...


class SQLiteEngine:
    def __init__(self, directory: Path) -> None:
        self._path = directory / "registry.db"
        self._storage: SQLiteStorage | None = None

    async def open(self) -> SQLiteStorage:
        self._storage = await SQLiteStorage.open(self._path)
        return self._storage

    async def close(self) -> None:
        if self._storage is not None:
            await self._storage.close()


class CachedEngine:
    """A cache around another engine's store."""

    def __init__(self, inner: Engine, *, most_events: int = 10_000) -> None:
        self._inner, self._most_events = inner, most_events
        self._cacher: Cacher | None = None

    async def open(self) -> Cacher:
        self._cacher = await Cacher.open(await self._inner.open(), "/", most_events=self._most_events)
        return self._cacher

    async def close(self) -> None:
        if self._cacher is not None:
            await self._cacher.close()
        await self._inner.close()


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "sqlite": SQLiteEngine,
    "cacher": lambda directory: CachedEngine(SQLiteEngine(directory)),
    # Its memory is of no use for the past: everything old comes from the store behind.
    "forgetful-cacher": lambda directory: CachedEngine(SQLiteEngine(directory), most_events=1),
}
