"""The breaker of one cluster, by a clock that the test moves."""

from __future__ import annotations

import pytest

from clusterregistry.controllers.observer.breaker import Breaker
from clusterregistry.controllers.observer.settings import ObserverSettings

SETTINGS = ObserverSettings()


def broken(times: int, *, now: float = 0.0, random: float = 0.0) -> Breaker:
    breaker = Breaker(SETTINGS, random=lambda: random)
    for _ in range(times):
        breaker.fail(now)
    return breaker


def test_it_opens_after_three_failures_one_after_the_other() -> None:
    assert not broken(2).is_open(0.0)
    assert broken(3).is_open(0.0)


def test_a_success_between_failures_begins_the_count_again() -> None:
    breaker = broken(2)
    breaker.succeed()
    breaker.fail(0.0)
    breaker.fail(0.0)
    assert not breaker.is_open(0.0)
    breaker.fail(0.0)
    assert breaker.is_open(0.0)


@pytest.mark.parametrize(
    ("failures", "pause"), [(2, 0.0), (3, 60.0), (4, 120.0), (5, 240.0), (6, 300.0), (7, 300.0), (10_000, 300.0)]
)
def test_the_pause_doubles_up_to_five_minutes(failures: int, pause: float) -> None:
    assert broken(failures).open_until == pause


def test_after_the_pause_one_failure_opens_it_again_for_longer() -> None:
    breaker = broken(3)
    assert not breaker.is_open(60.0)
    breaker.fail(60.0)
    assert breaker.is_open(60.0)
    assert breaker.open_until == 60.0 + 120.0


def test_after_the_pause_a_success_closes_it() -> None:
    breaker = broken(5)
    breaker.succeed()
    assert (breaker.failures, breaker.open_until) == (0, 0.0)
    breaker.fail(1000.0)
    assert not breaker.is_open(1000.0)


def test_chance_makes_a_pause_shorter_never_longer() -> None:
    assert broken(3, random=1.0).open_until == pytest.approx(54.0)
    assert broken(9, random=1.0).open_until == pytest.approx(270.0)
    assert broken(9, random=0.0).open_until == 300.0
