"""Waiting for a revision; what every engine and the cacher have in common."""

from __future__ import annotations

import asyncio

from clusterregistry.apiserver.storage.errors import RevisionInFuture, StorageUnavailable
from clusterregistry.apiserver.storage.interface import Storage

WAIT_SECONDS = 3.0
"""How long a read waits for a revision that has not been seen, as kube-apiserver's does."""


async def committed_by_now(storage: Storage) -> int:
    """A revision that has all that was committed at the call. A store that knows one is not asked."""
    known = storage.known_revision()
    return await storage.current_revision() if known is None else known


class RevisionWaiter:
    """How far a store has come, and those who wait for it to come further."""

    def __init__(self, value: int) -> None:
        self.value = value
        self._waiting: dict[asyncio.Future[None], int] = {}

    async def reach(self, revision: int, *, seconds: float) -> None:
        """Returns once the revision is seen. Raises RevisionInFuture when that takes longer."""
        if revision <= self.value:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = revision
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            raise RevisionInFuture(revision, current=self.value) from None
        finally:
            del self._waiting[future]

    def advance(self, revision: int) -> None:
        """To be called when what belongs to the revision can be read."""
        self.value = revision
        for future, wanted in self._waiting.items():
            if wanted <= revision and not future.done():
                future.set_result(None)

    def give_up(self, reason: str) -> None:
        """Ends all waiting with StorageUnavailable."""
        for future in self._waiting:
            if not future.done():
                future.set_exception(StorageUnavailable(reason))
