"""Keeps current what the host cluster says about users and front proxies.

The configmap is read, then watched, and read again when the watch ends, at the latest after a minute: whatever is
missed between the two is found then. While the host cluster cannot be reached, what it said last goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

from clusterregistry.apiserver.hostcluster import authentication_config
from clusterregistry.apiserver.hostcluster.authentication_config import AuthenticationConfig
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState

WATCH_SECONDS = 60
SILENCE_SECONDS = WATCH_SECONDS + 15.0
LONGEST_PAUSE = 5.0
_FIRST_PAUSE = 0.5

_log = logging.getLogger(__name__)
_CONFIGMAPS = f"/api/v1/namespaces/{authentication_config.NAMESPACE}/configmaps"

Listener = Callable[[AuthenticationConfig], Awaitable[None]]
"""Makes a configuration count. Raises ValueError for one that cannot be used."""


class Objects(Protocol):
    """Whom we read from. Both raise CallFailed, and nothing else."""

    async def get(self, path: str) -> dict[str, Any]: ...

    def watch(self, path: str, *, silence: float) -> AsyncGenerator[dict[str, Any], None]: ...


class AuthConfigWatch:
    """Follows the configmap for ever. ``state`` is a health check: whether what counts is what the host says."""

    def __init__(self, objects: Objects, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._objects, self._sleep = objects, sleep
        self._current: AuthenticationConfig | None = None
        self.state = HealthState(
            f"{authentication_config.SHOWN} of the host cluster",
            consequence="what it said last goes on",
            at_first=f"{authentication_config.SHOWN} was not read yet",
        )

    async def follow(self, listener: Listener) -> None:
        """Never returns and never raises."""
        pause = _FIRST_PAUSE
        while True:
            pause = _FIRST_PAUSE if await self._once(listener) else min(pause * 2, LONGEST_PAUSE)
            await self._sleep(pause * (1 + 0.2 * random.random()))  # noqa: S311 - no secret

    async def _once(self, listener: Listener) -> bool:
        """Reads and watches until the watch ends; whether that went well."""
        try:
            version = await self.read(listener)
            await self._watch(version, listener)
        except (CallFailed, ValueError) as error:
            self.state.failed(error)
            return False
        except Exception:  # noqa: BLE001 - whatever it is: the server goes on with what it has, and tries again
            _log.exception("the authentication configuration of the host cluster could not be followed")
            self.state.failed("an unexpected error, see the log")
            return False
        return True

    async def read(self, listener: Listener) -> str:
        """Reads once and answers the resource version. Raises CallFailed and ValueError."""
        return await self._take(await self._objects.get(f"{_CONFIGMAPS}/{authentication_config.NAME}"), listener)

    async def _take(self, configmap: Mapping[str, Any], listener: Listener) -> str:
        config = authentication_config.read(configmap)
        if config != self._current:
            await listener(config)
            _log.info("the authentication configuration of the host cluster was read")
            self._current = config
        self.state.worked()
        metadata = configmap.get("metadata")
        return str(metadata.get("resourceVersion", "")) if isinstance(metadata, dict) else ""

    async def _watch(self, version: str, listener: Listener) -> None:
        watched = self._objects.watch(_watch_path(version), silence=SILENCE_SECONDS)
        async with contextlib.aclosing(watched) as events:
            async for event in events:
                if event.get("type") not in ("ADDED", "MODIFIED"):
                    return  # deleted, or too old to go on from: read anew
                await self._take(event.get("object") or {}, listener)


def _watch_path(version: str) -> str:
    query = {
        "watch": "true",
        "fieldSelector": f"metadata.name={authentication_config.NAME}",
        "resourceVersion": version,
        "timeoutSeconds": WATCH_SECONDS,
    }
    return f"{_CONFIGMAPS}?{urlencode(query)}"
