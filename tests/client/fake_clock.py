"""Time that passes at once: a loop whose clock jumps to the next timer when nothing else is to do."""

from __future__ import annotations

import asyncio
import heapq
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
        self._drop_cancelled()
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]

    def _drop_cancelled(self) -> None:
        """A jump to a timer that was cancelled would leave the loop waiting for the next one by the real clock."""
        while self._scheduled and self._scheduled[0].cancelled():  # type: ignore[attr-defined]
            heapq.heappop(self._scheduled)._scheduled = False  # type: ignore[attr-defined]
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]


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
