"""The real command as something that can be killed and started again, and worked on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.server.programs import Program
from tests.system.faults.connections import Target

TRACEBACK = "Traceback (most recent call last)"


class Server:
    """One replica in a directory of its own: a victim, and a target. Starts at the same address each time."""

    def __init__(self, directory: Path, *flags: str, environment: Mapping[str, str] | None = None) -> None:
        self._program = Program(directory, *flags, environment=environment)
        self.name = f"server on port {self._program.port}"

    @property
    def pid(self) -> int:
        return self._program.process.pid

    @property
    def is_running(self) -> bool:
        return self._program.process.poll() is None

    async def start(self) -> None:
        await asyncio.to_thread(self._program.start)

    async def ended(self) -> None:
        await asyncio.to_thread(self._program.wait)

    def tracebacks(self) -> list[str]:
        """What it logged of errors that nobody was prepared for, each as far as it can be read in a report."""
        _, *found = self._program.logged().split(TRACEBACK)
        return [f"{TRACEBACK}{text[:4000]}" for text in found]

    def target(self) -> Target:
        """Once it has been started: it makes its certificates then."""
        return Target.trusting(
            f"https://127.0.0.1:{self._program.port}", ca_file=self._program.data / "ca.crt", token=ADMIN_TOKEN
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            await self.start()
            yield
        finally:
            self._program.end()
