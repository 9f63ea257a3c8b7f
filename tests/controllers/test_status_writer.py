"""Writing the status of clusters: when, how often, and what becomes of failures. With a fake clock."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from clusterregistry.client import errors
from clusterregistry.controllers.observer.observation import Observation, Reason
from clusterregistry.controllers.status_writer import StatusWriter
from tests.client.fake_clock import now, run
from tests.controllers.observations import NOW, failed, well
from tests.controllers.registries import PlayedRegistry


def clock() -> float:
    """Unix time that goes with the loop's."""
    return NOW + now() - 1000.0


def seen(observation: Observation | None = None) -> Observation:
    """An observation that was made now."""
    chosen, time = observation or well(), clock()
    parts = {
        name: replace(section, at=time)
        for name in ("health", "version", "nodes", "kube_system_uid")
        if (section := getattr(chosen, name)).value is not None
    }
    return replace(chosen, at=time, asked_at=time, **parts)


@contextlib.asynccontextmanager
async def writing(registry: PlayedRegistry, **parts: Any) -> AsyncIterator[StatusWriter]:
    given: dict[str, Any] = {"find": registry.find, "clock": clock, **parts}
    writer = StatusWriter(registry.client(), **given)
    task = asyncio.create_task(writer.run())
    try:
        yield writer
    finally:
        task.cancel()
        await asyncio.wait({task})


def played(scene: Callable[[PlayedRegistry], Awaitable[None]]) -> PlayedRegistry:
    registry = PlayedRegistry()

    async def play() -> None:
        await scene(registry)

    run(play())
    return registry


def states(registry: PlayedRegistry) -> list[str]:
    return [status["state"] for _, _, status in registry.writes]


def test_a_change_is_written_at_once_and_a_heartbeat_after_half_a_minute() -> None:
    async def scene(registry: PlayedRegistry) -> None:
        registry.add()
        async with writing(registry) as writer:
            for _ in range(10):
                writer.note("alpha", seen())
                await asyncio.sleep(28)
            writer.note("alpha", seen(failed(Reason.TIMED_OUT)))
            await asyncio.sleep(1)

    registry = played(scene)

    times = [time for time, _, _ in registry.writes]
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert states(registry) == ["Ready"] * (len(times) - 1) + ["Unreachable"]
    assert all(29.9 <= pause <= 57 for pause in pauses[:-1])
    assert len(times) >= 9
    assert times[-1] - 1000.0 < 281


def test_nothing_is_written_without_a_new_observation() -> None:
    async def scene(registry: PlayedRegistry) -> None:
        registry.add()
        async with writing(registry) as writer:
            writer.note("alpha", seen())
            await asyncio.sleep(1000)

    assert len(played(scene).writes) == 1


def test_a_new_writer_goes_on_where_the_last_one_ended() -> None:
    """After a restart: the status in the registry is twenty seconds old, and nothing has changed."""

    async def scene(registry: PlayedRegistry) -> None:
        registry.add()
        async with writing(registry) as writer:
            writer.note("alpha", seen())
            await asyncio.sleep(20)
        async with writing(registry) as writer:
            writer.note("alpha", seen())
            await asyncio.sleep(5)
            assert len(registry.writes) == 1
            await asyncio.sleep(20)

    registry = played(scene)
    (first, _, before), (second, _, after) = registry.writes
    assert second - first >= 29
    assert after["conditions"] == before["conditions"]


def test_a_conflict_is_read_and_written_again_from_what_another_client_wrote() -> None:
    async def scene(registry: PlayedRegistry) -> None:
        registry.add()
        outdated = copy.deepcopy(registry.clusters)
        registry.change(properties=[{"name": "clusterregistry.k8s.io/kube-system-uid", "value": "another"}])
        async with writing(registry, find=outdated.get) as writer:
            writer.note("alpha", seen())
            await asyncio.sleep(1)
            assert writer.counts.results["conflict"] == 1

    registry = played(scene)
    assert states(registry) == ["Degraded"]


def test_a_cluster_that_was_made_anew_gets_no_status_of_the_former_one() -> None:
    async def scene(registry: PlayedRegistry) -> None:
        registry.add(uid="1")
        async with writing(registry) as writer:
            writer.note("alpha", seen())
            await asyncio.sleep(1)
            registry.add(uid="2")
            writer.forget("alpha")
            await asyncio.sleep(100)

    registry = played(scene)
    assert len(registry.writes) == 1
    assert "status" not in registry.clusters["alpha"]


def test_a_deleted_cluster_is_no_problem() -> None:
    async def scene(registry: PlayedRegistry) -> None:
        gone = copy.deepcopy(registry.add())
        registry.clusters.clear()
        async with writing(registry, find=lambda _: gone) as writer:
            writer.note("alpha", seen())
            await asyncio.sleep(100)
            assert not writer.problem

    assert not played(scene).writes


@pytest.mark.parametrize(("ahead", "state", "written"), [
    (60, "Ready", False),   # another observer is alive, and its clock is ahead
    (60, "Stale", True),    # it is not alive
    (86400, "Ready", True),  # no clock is that far ahead
    (-60, "Ready", True),
])  # fmt: skip
def test_a_newer_observation_of_another_observer_stays(ahead: float, state: str, *, written: bool) -> None:
    async def scene(registry: PlayedRegistry) -> None:
        async with writing(registry) as writer:
            first = registry.add()
            writer.note("alpha", seen())
            await asyncio.sleep(1)
            stamp = NOW + ahead
            text = _wire(stamp)
            registry.change(state=state, observedAt=text)
            registry.writes.clear()
            writer.note("alpha", seen(failed(Reason.TIMED_OUT)))
            await asyncio.sleep(1)
            assert first

    assert bool(played(scene).writes) is written


def _wire(time: float) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415 - here alone

    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("failure", [
    errors.UnreachableError("away"),
    errors.from_code(503, "starting"),
    errors.from_code(429, "busy", retry_after=7),
    errors.from_code(403, "forbidden"),
])  # fmt: skip
def test_while_the_registry_takes_no_writes_only_the_newest_status_is_kept(
    failure: errors.ClientError, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def scene(registry: PlayedRegistry) -> None:
        for number in range(50):
            registry.add(f"c{number}")
        registry.failure = failure
        async with writing(registry) as writer:
            for _ in range(10):
                for number in range(50):
                    writer.note(f"c{number}", seen(failed(Reason.TIMED_OUT)))
                await asyncio.sleep(30)
            assert writer.problem
            attempts, registry.failure = registry.attempts, None
            for number in range(50):
                writer.note(f"c{number}", seen())
            await asyncio.sleep(40)
            assert not writer.problem
            assert attempts < 400

    registry = played(scene)
    assert states(registry)[:50] == ["Ready"] * 50
    assert 1 <= len(caplog.records) <= 12
    assert all("tried again" in record.message for record in caplog.records)


def test_a_missing_right_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(registry: PlayedRegistry) -> None:
        registry.add()
        registry.failure = errors.from_code(403, 'User "eve" cannot patch resource "clusters/status"')
        async with writing(registry) as writer:
            writer.note("alpha", seen())
            await asyncio.sleep(1)

    played(scene)

    assert 'User "eve" cannot patch resource "clusters/status"' in caplog.text
    assert "What to do: let this user patch clusters/status" in caplog.text


def test_a_status_that_is_refused_delays_no_other_cluster() -> None:
    async def scene(registry: PlayedRegistry) -> None:
        registry.add("bad")
        registry.add("good")
        async with writing(registry) as writer:
            registry.failure = errors.from_code(422, "invalid")
            writer.note("bad", seen())
            await asyncio.sleep(1)
            registry.failure = None
            writer.note("good", seen())
            await asyncio.sleep(1)
            assert [name for _, name, _ in registry.writes] == ["good"]
            await asyncio.sleep(100)

    assert sorted({name for _, name, _ in played(scene).writes}) == ["bad", "good"]


def test_an_answer_that_was_lost_is_no_second_transition() -> None:
    told: list[tuple[str, str]] = []

    async def scene(registry: PlayedRegistry) -> None:
        registry.add()
        registry.loses_answers = True
        async with writing(registry) as writer:
            writer.note("alpha", seen())
            await asyncio.sleep(0.1)
            registry.loses_answers = False
            await asyncio.sleep(100)
            assert not told

    registry = played(scene)
    assert states(registry) == ["Ready"]


def test_writes_are_bounded_in_number() -> None:
    async def scene(registry: PlayedRegistry) -> None:
        for number in range(200):
            registry.add(f"c{number}")
        async with writing(registry) as writer:
            for number in range(200):
                writer.note(f"c{number}", seen())
            await asyncio.sleep(10)

    registry = played(scene)
    assert len(registry.writes) == 200
    assert registry.most_at_once <= 8


def test_who_must_not_write_does_not() -> None:
    may = [True]

    async def scene(registry: PlayedRegistry) -> None:
        registry.add()
        async with writing(registry, may_write=lambda: may[0]) as writer:
            writer.note("alpha", seen())
            await asyncio.sleep(1)
            may[0] = False
            writer.note("alpha", seen(failed(Reason.TIMED_OUT)))
            await asyncio.sleep(100)

    assert states(played(scene)) == ["Ready"]
