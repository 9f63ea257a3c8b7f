"""Removes bootstrap tokens an hour after their end. Until then a list shows why a member cannot join."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.registry.deletion import DeleteOptions, Preconditions
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.object_bytes import decoded_to_read
from clusterregistry.registry.bootstraptoken.tokens import Token

KEPT = 3600.0
"""Seconds for which a token is kept after its end."""

_INTERVAL = 600.0
_OF_ANOTHER_WRITER = ("NotFound", "Conflict")

_log = logging.getLogger(__name__)


class TokenCleaner:
    """Runs in every replica, and all may act."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store, self._clock, self._sleep = store, clock, sleep

    def close(self) -> None:
        """There is nothing to end."""

    async def run(self) -> None:
        """Cleans up at once, and then now and again, until it is cancelled."""
        while True:
            try:
                await self.clean_up()
            except (APIError, StorageError) as error:
                _log.warning("bootstrap tokens that have ended cannot be removed now: %s", error)
            await self._sleep(_INTERVAL)

    async def clean_up(self) -> None:
        """Removes what ended long ago. Raises APIError and StorageError."""
        store = self._store
        page = await store.storage.list(store.prefix, revision=store.storage.revision)
        for kv in page.items:
            token = Token.of(decoded_to_read(kv))
            if self._clock() - token.ends > KEPT:
                await self._remove(token, str(kv.revision))

    async def _remove(self, token: Token, revision: str) -> None:
        wanted = Preconditions(uid=token.uid, resource_version=revision)
        try:
            await self._store.delete(token.id, DeleteOptions(preconditions=wanted))
        except APIError as error:
            if error.reason not in _OF_ANOTHER_WRITER:
                raise
