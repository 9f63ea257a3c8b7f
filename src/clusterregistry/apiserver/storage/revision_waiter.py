"""Waiting for a revision: shared by the engines and the cacher."""

from __future__ import annotations

import asyncio

from clusterregistry.apiserver.storage.errors import RevisionInFuture, StorageUnavailable
from clusterregistry.apiserver.storage.interface import Storage

WAIT_SECONDS = 3.0
"""How long a read waits for a revision that has not been seen, as in kube-apiserver."""


async def committed_by_now(storage: Storage) -> int:
    """A revision that includes everything committed at the call, without I/O if the store knows one."""
    known = storage.known_revision()
    return await storage.current_revision() if known is None else known


class RevisionWaiter:
    """The newest revision that a store has seen (``value``), and the callers that wait for a later one."""

    def __init__(self, value: int) -> None:
        self.value = value
        self._waiting: dict[asyncio.Future[None], int] = {}

    async def reach(self, revision: int, *, seconds: float) -> None:
        """Returns once the revision is seen. Raises RevisionInFuture after ``seconds``."""
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
        """Sets the revision, once everything up to it can be read."""
        self.value = revision
        for future, wanted in self._waiting.items():
            if wanted <= revision and not future.done():
                future.set_result(None)

    def fail(self, reason: str) -> None:
        """Ends all waiting with StorageUnavailable."""
        for future in self._waiting:
            if not future.done():
                future.set_exception(StorageUnavailable(reason))
