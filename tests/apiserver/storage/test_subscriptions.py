"""Events reach all subscribers, even if one of them raises."""

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
    subscriptions, reported, received = Subscriptions(), list[str](), list[Event]()

    def raises(_: Sequence[Event]) -> None:
        raise ValueError("one that cannot be read")

    subscriptions.subscribe("/a/", raises, interrupted=lambda: reported.append("first"))
    subscriptions.subscribe("/a/", received.extend, interrupted=lambda: reported.append("second"))
    subscriptions.subscribe("/b/", received.extend)
    events = [event("/a/1", 5), event("/b/1", 5)]
    subscriptions.publish(events)
    assert reported == ["first"]
    assert received == events
    assert "one that cannot be read" in caplog.text


def test_a_subscriber_that_raises_on_interruption_does_not_affect_others() -> None:
    subscriptions, reported = Subscriptions(), list[str]()

    def raises(*_: object) -> None:
        raise ValueError

    subscriptions.subscribe("/", raises, interrupted=raises)
    subscriptions.subscribe("/", lambda _: None, interrupted=lambda: reported.append("second"))
    subscriptions.publish([event("/a", 1)])
    assert reported == []
    subscriptions.interrupt()
    assert reported == ["second"]


def test_a_closed_subscription_gets_nothing() -> None:
    subscriptions, reported = Subscriptions(), list[str]()
    subscription = subscriptions.subscribe(
        "/", lambda _: reported.append("events"), interrupted=lambda: reported.append("gap")
    )
    subscription.close()
    subscriptions.publish([event("/a", 1)])
    subscriptions.interrupt()
    assert reported == []
