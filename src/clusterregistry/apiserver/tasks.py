"""Helpers for asyncio tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


async def cancel_and_wait(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels tasks and returns once all of them have ended. Their exceptions are not raised.

    If the caller is cancelled meanwhile, CancelledError is raised and the tasks stay cancelled.
    """
    running = list(tasks)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
