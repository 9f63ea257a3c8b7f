"""Unreachable cycles are collected: young ones soon, old ones with the hourly collection."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from clusterregistry.apiserver.gc_tuning import run_full_collections, tune_collector


class Circle:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    gc.enable()
    gc.collect()
    gc.freeze()  # as ``schedule`` does


async def test_a_circle_that_has_grown_old_is_freed_within_the_hour() -> None:
    circle = Circle()
    gc.collect()  # it is old now
    old = weakref.ref(circle)
    del circle
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > 1:
            raise asyncio.CancelledError

    gc.disable()
    with pytest.raises(asyncio.CancelledError):
        await run_full_collections(sleep)
    assert old() is None
    assert slept == [3600.0, 3600.0]


def test_what_is_there_at_the_start_is_left_alone_and_what_comes_is_collected() -> None:
    gc.disable()
    before = Circle()
    tune_collector()
    left_alone = weakref.ref(before)
    del before
    came = weakref.ref(Circle())
    gc.collect()
    assert gc.isenabled()
    assert left_alone() is not None
    assert came() is None


def test_many_new_objects_do_not_have_all_old_ones_looked_at() -> None:
    tune_collector()
    looks = gc.get_stats()
    stored = [[number] for number in range(100_000)]
    young, _, old = [
        after["collections"] - before["collections"] for after, before in zip(gc.get_stats(), looks, strict=True)
    ]
    assert young > 0
    assert old == 0
    assert len(stored) == 100_000
