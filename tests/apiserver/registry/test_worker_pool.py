"""Large work is done beside the loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from clusterregistry.apiserver.registry.worker_pool import LARGE, run_in_worker


async def test_small_work_is_done_at_once_and_large_work_in_another_thread() -> None:
    here = threading.get_ident()
    assert await run_in_worker(threading.get_ident, size=LARGE) == here
    assert await run_in_worker(threading.get_ident, size=LARGE + 1) != here


async def test_the_loop_turns_while_large_work_is_done() -> None:
    ended = threading.Event()
    work = asyncio.ensure_future(run_in_worker(lambda: ended.wait(30), size=LARGE + 1))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not work.done()
    ended.set()
    assert await work


async def test_what_large_work_raises_is_raised() -> None:
    def fail() -> None:
        raise KeyError("a")

    with pytest.raises(KeyError, match="a"):
        await run_in_worker(fail, size=LARGE + 1)
