"""Candidates of a leader election."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from clusterregistry.client.leader_election import LeaderElector, LeadershipLostError


async def forever() -> None:
    await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def candidate(made: LeaderElector, lead: Any = forever) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(made.run(lead))
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, LeadershipLostError):
            await task
