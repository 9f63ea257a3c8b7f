"""Events reach everybody, whatever one of them does with its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from clusterregistry.apiserver.storage.interface import Event, KeyValue
from clusterregistry.apiserver.storage.subscriptions import Subscriptions


def event(key: str, revision: int) -> Event:
    return Event(key, revision, KeyValue(key, b"", revision), None)


def test_a_subscriber_that_raises_is_interrupted_and_the_others_get_all_events(
    caplog: pytest.LogCaptureFixture,
) -> None:
    publisher, told, received = Subscriptions(), list[str](), list[Event]()

    def raises(_: Sequence[Event]) -> None:
        raise ValueError("one that cannot be read")

    publisher.subscribe("/a/", raises, interrupted=lambda: told.append("first"))
    publisher.subscribe("/a/", received.extend, interrupted=lambda: told.append("second"))
    publisher.subscribe("/b/", received.extend)
    events = [event("/a/1", 5), event("/b/1", 5)]
    publisher.publish(events)
    assert told == ["first"]
    assert received == events
    assert "one that cannot be read" in caplog.text


def test_one_that_raises_when_it_is_interrupted_keeps_nobody_from_being_told() -> None:
    publisher, told = Subscriptions(), list[str]()

    def raises(*_: object) -> None:
        raise ValueError

    publisher.subscribe("/", raises, interrupted=raises)
    publisher.subscribe("/", lambda _: None, interrupted=lambda: told.append("second"))
    publisher.publish([event("/a", 1)])
    assert told == []
    publisher.interrupt()
    assert told == ["second"]


def test_one_that_has_left_is_told_nothing() -> None:
    publisher, told = Subscriptions(), list[str]()
    subscription = publisher.subscribe("/", lambda _: told.append("events"), interrupted=lambda: told.append("gap"))
    subscription.close()
    publisher.publish([event("/a", 1)])
    publisher.interrupt()
    assert told == []
