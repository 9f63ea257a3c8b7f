"""Who gets a connection when there are many."""

from __future__ import annotations

import logging
import resource

import pytest

from clusterregistry.apiserver import fd_limit
from clusterregistry.apiserver.http.listener import ConnectionLimit, holder_of


def taken_by(places: ConnectionLimit, holder: str, tries: int) -> int:
    return sum(places.acquire(holder) for _ in range(tries))


def test_one_address_cannot_take_the_last_tenth() -> None:
    places = ConnectionLimit(100)
    assert taken_by(places, "noisy", 1000) == 90
    assert taken_by(places, "quiet", 1000) == 10
    assert places.taken == 100
    assert not places.acquire("late")


def test_many_addresses_may_take_everything() -> None:
    places = ConnectionLimit(100)
    assert sum(taken_by(places, f"10.0.0.{number}", 5) for number in range(50)) == 100


def test_a_place_that_is_given_back_can_be_taken_again() -> None:
    places = ConnectionLimit(2)
    assert taken_by(places, "a", 3) == 1
    assert taken_by(places, "b", 3) == 1
    places.release("a")
    assert (places.taken, places.acquire("a"), places.acquire("c")) == (1, True, False)


def test_released_addresses_are_forgotten() -> None:
    places = ConnectionLimit(10)
    for number in range(1000):
        assert places.acquire(str(number))
        places.release(str(number))
    assert places.taken == 0
    assert not places._held


def test_there_is_room_for_one_at_least() -> None:
    assert taken_by(ConnectionLimit(1), "a", 5) == 1


@pytest.mark.parametrize(
    ("address", "holder"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:0:7:1:2:3:4", "2001:db8:0:7::/64"),
        ("2001:db8:0:7::9", "2001:db8:0:7::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_the_key_of_an_address(address: str, holder: str) -> None:
    assert holder_of(address) == holder


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """The limit of open files, which a process could lower only for good."""
    now = {"limit": (1024, 20_000)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: now["limit"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: now.update(limit=limit))
    return now


def test_the_limit_of_open_files_is_raised(limits: dict[str, tuple[int, int]]) -> None:
    assert fd_limit.connection_limit(10_000) == 10_000
    assert limits["limit"] == (20_000, 20_000)


def test_a_reduced_connection_limit_is_logged(
    limits: dict[str, tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    limits["limit"] = (1024, 4096)
    with caplog.at_level(logging.WARNING):
        assert fd_limit.connection_limit(10_000) == 4096 - fd_limit.OWN
    assert "at most 3840 connections are taken, not 10000" in caplog.text


@pytest.mark.parametrize(("hard", "room"), [(100, 50), (1, 1)])
def test_few_open_files_leave_room_for_some(
    limits: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch, hard: int, room: int
) -> None:
    monkeypatch.setattr(fd_limit, "_in_use", lambda: 20)  # this process has as many as the tests before have left
    limits["limit"] = (hard, hard)
    assert fd_limit.connection_limit(10_000) == room


def test_a_limit_that_cannot_be_raised_stays(
    limits: dict[str, tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    limits["limit"] = (1000, resource.RLIM_INFINITY)
    assert fd_limit.connection_limit(10_000) == 744


def test_no_limit_at_all(limits: dict[str, tuple[int, int]]) -> None:
    limits["limit"] = (1024, resource.RLIM_INFINITY)
    assert fd_limit.connection_limit(10_000) == 10_000
