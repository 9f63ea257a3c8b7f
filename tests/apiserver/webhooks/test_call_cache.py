from __future__ import annotations

import asyncio

import pytest

from clusterregistry.apiserver.webhooks import call_cache
from clusterregistry.apiserver.webhooks.call_cache import SingleFlight, TTLCache
from clusterregistry.apiserver.webhooks.errors import CallFailed


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_value_is_kept_until_its_time() -> None:
    clock = Clock()
    cache: TTLCache[str, int] = TTLCache(10, clock=clock)
    cache.keep_for("a", 1, seconds=5)
    clock.now = 4.9
    assert cache.get("a") == 1
    clock.now = 5.0
    assert cache.get("a") is None
    assert len(cache) == 0


def test_without_a_time_nothing_is_kept() -> None:
    cache: TTLCache[str, int] = TTLCache(10, clock=Clock())
    cache.keep_for("a", 1, seconds=0)
    assert cache.get("a") is None


def test_the_oldest_values_are_removed() -> None:
    cache: TTLCache[int, int] = TTLCache(16, clock=Clock())
    for key in range(1000):
        cache.keep(0, 0, until=1)  # kept again and again
        cache.keep(key, key, until=1)
        assert len(cache) <= 16
    assert cache.get(999) == 999
    assert cache.get(0) == 0
    assert cache.get(5) is None


def test_a_cleared_cache_is_empty() -> None:
    cache: TTLCache[str, int] = TTLCache(1, clock=Clock())
    cache.keep("a", 1, until=9)
    cache.clear()
    assert cache.get("a") is None


class Held:
    """A call that ends when the test sets the event."""

    def __init__(self) -> None:
        self.asked, self.go_on = 0, asyncio.Event()

    async def __call__(self) -> str:
        self.asked += 1
        await self.go_on.wait()
        return "answer"


async def test_equal_calls_at_the_same_time_are_one_call() -> None:
    held, asking = Held(), SingleFlight[str, str]()
    waiting = [asyncio.ensure_future(asking.ask("a", held)) for _ in range(5)]
    await asyncio.sleep(0)
    assert asking.under_way == 1
    held.go_on.set()
    assert await asyncio.gather(*waiting) == ["answer"] * 5
    assert held.asked == 1
    await asyncio.sleep(0)
    assert asking.under_way == 0


async def test_a_call_goes_on_when_its_first_caller_is_cancelled() -> None:
    held, asking = Held(), SingleFlight[str, str]()
    first, second = (asyncio.ensure_future(asking.ask("a", held)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    held.go_on.set()
    assert await second == "answer"


async def test_an_error_is_raised_and_not_kept() -> None:
    async def fails() -> str:
        raise CallFailed("no")

    asking = SingleFlight[str, str]()
    with pytest.raises(CallFailed):
        await asking.ask("a", fails)
    await asyncio.sleep(0)
    assert asking.under_way == 0


async def test_too_many_calls_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_cache, "MAX_UNDER_WAY", 2)
    held, asking = Held(), SingleFlight[int, str]()
    waiting = [asking.ask(number, held) for number in range(2)]
    with pytest.raises(CallFailed):
        asking.ask(3, held)
    held.go_on.set()
    assert await waiting[0] == await waiting[1] == "answer"


async def test_closing_cancels_the_calls() -> None:
    asking = SingleFlight[str, str]()
    waiting = asyncio.ensure_future(asking.ask("a", Held()))
    await asyncio.sleep(0)
    await asking.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
