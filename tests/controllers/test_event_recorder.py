"""Events about clusters, with a registry in memory and a fake clock."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any, cast

from clusterregistry.client import errors
from clusterregistry.client.rest import Client
from clusterregistry.controllers.event_recorder import BURST, WARNING, EventRecorder, Happening
from clusterregistry.controllers.observer.observation import Reason
from clusterregistry.controllers.status import next_status
from clusterregistry.controllers.transitions import told, transitions
from tests.client.fake_clock import now, run
from tests.controllers.observations import NOW, cluster, failed, well

DOWN = Happening(reason="ClusterDegraded", note="It is down.", type=WARNING)
UP = Happening(reason="ClusterReady", note="It is up.")


class PlayedEvents:
    """Keeps events as a registry does."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.writes = 0
        self.failure: errors.ClientError | None = None

    def resource(self, *_: Any, **__: Any) -> PlayedEvents:
        return self

    async def create(self, event: dict[str, Any]) -> dict[str, Any]:
        await self._reach()
        self.stored[event["metadata"]["name"]] = copy.deepcopy(event)
        return event

    async def patch(self, name: str, patch: dict[str, Any]) -> dict[str, Any]:
        await self._reach()
        if name not in self.stored:
            raise errors.from_code(404, name)
        self.stored[name].update(copy.deepcopy(patch))
        return self.stored[name]

    async def _reach(self) -> None:
        self.writes += 1
        await asyncio.sleep(0.01)
        if self.failure is not None:
            raise self.failure


def played(scene: Callable[[EventRecorder, PlayedEvents], Awaitable[None]]) -> PlayedEvents:
    registry = PlayedEvents()

    async def play() -> None:
        recorder = EventRecorder(
            cast("Client", registry), controller="example.com/c", instance="x" * 200, clock=lambda: NOW + now()
        )
        task = asyncio.create_task(recorder.run())
        await scene(recorder, registry)
        task.cancel()
        await asyncio.wait({task})

    run(play())
    return registry


def counts(registry: PlayedEvents) -> list[tuple[str, int]]:
    return [(each["reason"], each.get("series", {}).get("count", 1)) for each in registry.stored.values()]


def test_an_event_names_the_cluster_and_who_tells() -> None:
    async def scene(recorder: EventRecorder, _: PlayedEvents) -> None:
        recorder.record(cluster(), DOWN)
        await asyncio.sleep(1)

    (event,) = played(scene).stored.values()
    assert event["regarding"] == {
        "apiVersion": "clusterregistry.k8s.io/v1beta1", "kind": "Cluster", "name": "alpha", "uid": "1",
        "resourceVersion": "5",
    }  # fmt: skip
    assert (event["type"], event["reason"], event["note"]) == ("Warning", "ClusterDegraded", "It is down.")
    assert event["metadata"]["namespace"] == "default"
    assert len(event["reportingInstance"]) == 128


def test_a_flapping_cluster_has_one_event_for_each_state() -> None:
    async def scene(recorder: EventRecorder, registry: PlayedEvents) -> None:
        for _ in range(50):
            for happening in (DOWN, UP):
                recorder.record(cluster(), happening)
                await asyncio.sleep(10)
        assert registry.writes < 2 * (BURST + 55)
        assert recorder.results["held"]

    found = counts(played(scene))
    assert [reason for reason, _ in found] == ["ClusterDegraded", "ClusterReady"]
    assert all(count > 40 for _, count in found), found


def test_what_happens_again_after_a_while_is_another_event() -> None:
    async def scene(recorder: EventRecorder, _: PlayedEvents) -> None:
        recorder.record(cluster(), DOWN)
        await asyncio.sleep(400)
        recorder.record(cluster(), DOWN)
        await asyncio.sleep(1)

    assert counts(played(scene)) == [("ClusterDegraded", 1)] * 2


def test_a_series_whose_event_has_expired_begins_again() -> None:
    async def scene(recorder: EventRecorder, registry: PlayedEvents) -> None:
        recorder.record(cluster(), DOWN)
        await asyncio.sleep(1)
        registry.stored.clear()
        recorder.record(cluster(), DOWN)
        await asyncio.sleep(1)

    assert counts(played(scene)) == [("ClusterDegraded", 1)]


def test_a_cluster_that_flaps_takes_nothing_from_another_one() -> None:
    async def scene(recorder: EventRecorder, _registry: PlayedEvents) -> None:
        for _ in range(100):
            recorder.record(cluster(), DOWN)
        other = cluster()
        other["metadata"] = {"name": "beta", "uid": "2"}
        recorder.record(other, UP)
        await asyncio.sleep(10)

    events = played(scene)
    assert ("ClusterReady", 1) in counts(events)
    assert events.writes == BURST + 1


def test_events_are_lost_rather_than_waited_for() -> None:
    async def scene(recorder: EventRecorder, registry: PlayedEvents) -> None:
        registry.failure = errors.UnreachableError("away")
        recorder.record(cluster(), DOWN)
        await asyncio.sleep(1)
        registry.failure = None
        recorder.record(cluster(), UP)
        await asyncio.sleep(1)
        assert recorder.results == {"failed": 1, "created": 1}

    assert counts(played(scene)) == [("ClusterReady", 1)]


def test_a_long_name_makes_a_valid_event() -> None:
    async def scene(recorder: EventRecorder, _: PlayedEvents) -> None:
        long = cluster()
        long["metadata"]["name"] = "a" * 253
        recorder.record(long, Happening(reason="X", note="y" * 5000))
        await asyncio.sleep(1)

    (event,) = played(scene).stored.values()
    assert len(event["metadata"]["name"]) <= 253
    assert len(event["note"]) <= 1024


# What is told


def reasons(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each.type, each.reason) for each in transitions(told(before), after)]


def test_transitions_of_state_identity_and_expiry_are_told() -> None:
    ready = next_status(well(), cluster(), now=NOW)
    down = next_status(failed(Reason.TIMED_OUT), cluster(ready), now=NOW)
    late = NOW + 360 * 86400
    expiring = next_status(well(at=late, asked_at=late), cluster(ready), now=NOW + 360 * 86400)

    assert reasons({}, ready) == [("Normal", "ClusterReady")]
    assert reasons(ready, ready) == []
    assert reasons(ready, down) == [("Warning", "ClusterUnreachable")]
    assert reasons(down, ready) == [("Normal", "ClusterReady")]
    assert ("Warning", "CertificateExpiring") in reasons(ready, expiring)
    assert ("Normal", "CertificateRenewed") in reasons(expiring, ready)


def test_that_the_server_finds_a_status_stale_is_not_told() -> None:
    ready = next_status(well(), cluster(), now=NOW)

    assert reasons(ready, {**ready, "state": "Stale"}) == []
