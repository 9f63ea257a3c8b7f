"""Keeps the host cluster's configuration of users and front proxies current.

The configmap is read, then watched, and read again when the watch ends, at the latest after a minute: a change that is
missed between the two is found then. While the host cluster cannot be reached, the last configuration stays in use.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Protocol

from clusterregistry.apiserver.hostcluster import authentication_config
from clusterregistry.apiserver.hostcluster.authentication_config import AuthenticationConfig
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState
from clusterregistry.client.retry import Backoff
from clusterregistry.client.watch import ADDED, MODIFIED, Event

BACKOFF = Backoff(first=0.5, factor=2.0, longest=5.0, jitter=0.2)

_log = logging.getLogger(__name__)

Listener = Callable[[AuthenticationConfig], Awaitable[None]]
"""Puts a configuration into use. Raises ValueError for one that cannot be used."""


class ConfigMap(Protocol):
    """The configmap of the host cluster. Both calls raise CallFailed, and nothing else."""

    async def get(self) -> dict[str, Any]: ...

    def watch(self, resource_version: str) -> AsyncGenerator[Event, None]:
        """The changes since a version, until the watch ends."""
        ...


class AuthConfigWatch:
    """Follows the configmap without end. ``state`` is a health check: whether the current configuration is in use."""

    def __init__(self, configmap: ConfigMap, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._configmap, self._sleep = configmap, sleep
        self._current: AuthenticationConfig | None = None
        self.state = HealthState(
            f"{authentication_config.SHOWN} of the host cluster",
            consequence="the last configuration stays in use",
            at_first=f"{authentication_config.SHOWN} was not read yet",
        )

    async def follow(self, listener: Listener) -> None:
        """Never returns and never raises."""
        failures = 0
        while True:
            failures = 0 if await self._once(listener) else failures + 1
            await self._sleep(BACKOFF.pause(failures + 1))

    async def _once(self, listener: Listener) -> bool:
        """Reads and watches until the watch ends. Returns whether there was no failure."""
        try:
            version = await self.read(listener)
            await self._watch(version, listener)
        except (CallFailed, ValueError) as error:
            self.state.failed(error)
            return False
        except Exception:  # noqa: BLE001 - the server keeps its configuration, and tries again
            _log.exception("the authentication configuration of the host cluster could not be followed")
            self.state.failed("an unexpected error, see the log")
            return False
        return True

    async def read(self, listener: Listener) -> str:
        """Reads once and returns the resource version. Raises CallFailed and ValueError."""
        return await self._use(await self._configmap.get(), listener)

    async def _use(self, configmap: Mapping[str, Any], listener: Listener) -> str:
        config = authentication_config.read(configmap)
        if config != self._current:
            await listener(config)
            _log.info("the authentication configuration of the host cluster was read")
            self._current = config
        self.state.worked()
        metadata = configmap.get("metadata")
        return str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""

    async def _watch(self, version: str, listener: Listener) -> None:
        async with contextlib.aclosing(self._configmap.watch(version)) as events:
            async for event in events:
                if event.type not in {ADDED, MODIFIED}:
                    return  # deleted: read again
                await self._use(event.object, listener)
