"""The real command as something that can be killed and started again, and worked on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.api.clients import ADMIN_TOKEN
from tests.faults.connections import Target
from tests.serving.programs import Program


class Server:
    """One replica in a directory of its own: a victim, and a target. Starts at the same address each time."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self._program = Program(directory, *flags)
        self.name = f"server on port {self._program.port}"

    @property
    def pid(self) -> int:
        return self._program.process.pid

    async def start(self) -> None:
        await asyncio.to_thread(self._program.start)

    async def ended(self) -> None:
        await asyncio.to_thread(self._program.wait)

    def target(self) -> Target:
        """Once it has been started: it makes its certificates then."""
        return Target.trusting(
            f"https://127.0.0.1:{self._program.port}", ca_file=self._program.data / "ca.crt", token=ADMIN_TOKEN
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self.start()
        try:
            yield
        finally:
            self._program.end()
