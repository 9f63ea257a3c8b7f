"""Time that passes at once: a loop whose clock jumps to the next timer when nothing else is to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


class FakeClockLoop(asyncio.SelectorEventLoop):
    """For code without sockets."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        # Those that were cancelled stay in the queue for a while: nothing waits for them.
        due = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        if not self._ready and due:  # type: ignore[attr-defined]
            self.now = max(self.now, min(due))
        super()._run_once()  # type: ignore[misc]


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        return runner.run(work)


def now() -> float:
    return asyncio.get_running_loop().time()


async def until(holds: Callable[[], bool], otherwise: Callable[[], object] = lambda: "") -> None:
    """Waits, by whatever clock the loop has, and fails after a while."""
    try:
        async with asyncio.timeout(60):
            while not holds():  # noqa: ASYNC110 - anything may be waited for
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"waited for 60 s: {otherwise()}")
