"""Runs the commands of ``exec`` rules: bounded in number, time and output, and no slow one holds up the others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from clusterregistry.client.errors import ConfigError
from clusterregistry.client.exec_credential import ExecCredentialSource, ExecPlugin
from clusterregistry.controllers.access.resolver import PAUSE, Resolved, ResolveError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecLimits:
    """Processes at once, and when one counts as slow."""

    prompt: int = 8
    """Commands that are not slow."""
    slow: int = 24
    """Slow commands: they wait for something, and cost memory rather than CPU."""
    slow_after: float = 2.0
    """Seconds after which a command counts as slow, and leaves its place to the next one."""

    @property
    def processes(self) -> int:
        return self.prompt + self.slow


class ExecRunner:
    """Runs at most so many commands at once. A command that hangs takes a place among the slow ones."""

    def __init__(self, *, environ: Mapping[str, str], limits: ExecLimits | None = None) -> None:
        """``environ`` is the environment of the commands, besides what the rules add."""
        self._environ, self._limits = environ, limits or ExecLimits()
        self._prompt = asyncio.Semaphore(self._limits.prompt)
        self._slow = asyncio.Semaphore(self._limits.slow)

    async def run(self, plugin: ExecPlugin, *, limit: float) -> Resolved:
        """The credential that a command prints within ``limit`` seconds.

        Raises ResolveError, without anything that the command printed.
        """
        source = ExecCredentialSource(plugin, timeout=limit, isolated=True, environ=self._environ)
        try:
            credential, ends = await self._in_place(source.fetch)
        except ConfigError as error:
            raise ResolveError("; ".join(str(error).split("\n")), pause=PAUSE) from None
        return Resolved(credential=credential, ends_at=ends.timestamp() if ends else None)

    async def _in_place(self, work: Callable[[], Awaitable[T]]) -> T:
        place = _Place()
        await place.take(self._prompt)
        moving = asyncio.create_task(self._move(place))
        try:
            return await work()
        finally:
            moving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await moving
            place.leave()

    async def _move(self, place: _Place) -> None:
        """Gives the place of a slow command to the next one, once there is a place among the slow ones."""
        await asyncio.sleep(self._limits.slow_after)
        await self._slow.acquire()
        place.leave()
        place.held = self._slow


@dataclass(slots=True)
class _Place:
    held: asyncio.Semaphore | None = field(default=None)

    async def take(self, semaphore: asyncio.Semaphore) -> None:
        await semaphore.acquire()
        self.held = semaphore

    def leave(self) -> None:
        if self.held is not None:
            self.held.release()
            self.held = None
