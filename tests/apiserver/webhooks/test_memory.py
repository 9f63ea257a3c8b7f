from __future__ import annotations

import asyncio
import logging

import pytest

from clusterregistry.apiserver.webhooks import singleflight
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import HealthState
from clusterregistry.apiserver.webhooks.singleflight import SingleFlight
from clusterregistry.apiserver.webhooks.ttl_cache import TTLCache


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_answer_holds_until_its_time() -> None:
    clock = Clock()
    answers: TTLCache[str, int] = TTLCache(10, clock=clock)
    answers.keep_for("a", 1, seconds=5)
    clock.now = 4.9
    assert answers.get("a") == 1
    clock.now = 5.0
    assert answers.get("a") is None
    assert len(answers) == 0


def test_no_time_is_no_memory() -> None:
    answers: TTLCache[str, int] = TTLCache(10, clock=Clock())
    answers.keep_for("a", 1, seconds=0)
    assert answers.get("a") is None


def test_the_oldest_make_room() -> None:
    answers: TTLCache[int, int] = TTLCache(16, clock=Clock())
    for key in range(1000):
        answers.keep(0, 0, until=1)  # the one that is used again and again
        answers.keep(key, key, until=1)
        assert len(answers) <= 16
    assert answers.get(999) == 999
    assert answers.get(0) == 0
    assert answers.get(5) is None


def test_a_cleared_memory_is_empty() -> None:
    answers: TTLCache[str, int] = TTLCache(1, clock=Clock())
    answers.keep("a", 1, until=9)
    answers.clear()
    assert answers.get("a") is None


class Held:
    """A question that is answered when the test says so."""

    def __init__(self) -> None:
        self.asked, self.go_on = 0, asyncio.Event()

    async def __call__(self) -> str:
        self.asked += 1
        await self.go_on.wait()
        return "answer"


async def test_a_question_is_asked_once_however_many_wait() -> None:
    held, asking = Held(), SingleFlight[str, str]()
    waiting = [asyncio.ensure_future(asking.ask("a", held)) for _ in range(5)]
    await asyncio.sleep(0)
    assert asking.under_way == 1
    held.go_on.set()
    assert await asyncio.gather(*waiting) == ["answer"] * 5
    assert held.asked == 1
    await asyncio.sleep(0)
    assert asking.under_way == 0


async def test_a_question_goes_on_when_the_first_who_asked_has_left() -> None:
    held, asking = Held(), SingleFlight[str, str]()
    first, second = (asyncio.ensure_future(asking.ask("a", held)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    held.go_on.set()
    assert await second == "answer"


async def test_an_error_reaches_those_who_wait_and_is_forgotten() -> None:
    async def fails() -> str:
        raise CallFailed("no")

    asking = SingleFlight[str, str]()
    with pytest.raises(CallFailed):
        await asking.ask("a", fails)
    await asyncio.sleep(0)
    assert asking.under_way == 0


async def test_too_many_questions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(singleflight, "MAX_UNDER_WAY", 2)
    held, asking = Held(), SingleFlight[int, str]()
    waiting = [asking.ask(number, held) for number in range(2)]
    with pytest.raises(CallFailed):
        asking.ask(3, held)
    held.go_on.set()
    assert await waiting[0] == await waiting[1] == "answer"


async def test_closing_ends_what_is_under_way() -> None:
    asking = SingleFlight[str, str]()
    waiting = asyncio.ensure_future(asking.ask("a", Held()))
    await asyncio.sleep(0)
    await asking.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_a_state_is_logged_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    state = HealthState("the hook", consequence="requests get a 503")
    state.worked()
    for _ in range(3):
        state.failed("down")
    for _ in range(3):
        state.worked()
    state.failed("down again")
    assert [record.getMessage() for record in caplog.records] == [
        "the hook fails: down; requests get a 503",
        "the hook answers again",
        "the hook fails: down again; requests get a 503",
    ]
