"""Tasks of asyncio that run beside other work and end with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any


@contextlib.asynccontextmanager
async def run_in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs a coroutine as a task within the block, and cancels it at the end. Raises what the task has raised."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def cancel_and_wait(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels tasks and returns once all of them have ended. Their exceptions are not raised.

    If the caller is cancelled meanwhile, CancelledError is raised and the tasks stay cancelled.
    """
    running = list(tasks)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
