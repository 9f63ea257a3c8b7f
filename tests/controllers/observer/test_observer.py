"""The observer over many clusters: in virtual time, and with simulated members."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.controllers.observer.observation import Observation, Reason
from clusterregistry.controllers.observer.observer import Observer, observe_once
from clusterregistry.controllers.observer.probe import Probe
from clusterregistry.controllers.observer.settings import ObserverSettings
from tests.client.fake_clock import now, run, until
from tests.controllers.fleets import with_members
from tests.controllers.observer.subjects import PATIENCE, PATIENT, access_to, changed, failure_of
from tests.controllers.observer.worlds import UNIX, World, busy, dead
from tools.simulator import Fault, Simulator

MINUTE, HOUR = 60.0, 3600.0


# Clusters that come, change and go


def test_a_cluster_is_asked_at_once_and_then_by_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Early by chance, never late; the first pause is much shorter for some."""

    async def check() -> None:
        world = World()
        async with world.observing(monkeypatch) as observer:
            begin = now()
            for number in range(200):
                observer.put(world.cluster(f"c{number}"))
            await asyncio.sleep(10 * MINUTE)
        firsts = [world.times(f"c{number}")[0] - begin for number in range(200)]
        assert firsts == pytest.approx([number * 0.005 for number in range(200)])
        seconds: list[float] = []
        for number in range(200):
            pauses = [after - before for before, after in itertools.pairwise(world.times(f"c{number}"))]
            seconds.append(pauses[0])
            assert 15.0 <= pauses[0] <= 30.0 + 1e-6
            assert all(27.0 - 1e-6 <= pause <= 30.0 + 1e-6 for pause in pauses[1:])
        assert len({round(pause) for pause in seconds}) > 8

    run(check())


def test_each_round_is_reported_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World()
        async with world.observing(monkeypatch) as observer:
            assert observer.last("alpha") is None
            observer.put(world.cluster())
            assert observer.last("alpha") is None
            await asyncio.sleep(1.0)
            (first,) = world.reported()
            assert observer.last("alpha") is first
            assert str(first.health.value) == "alpha"
            assert first.at == first.asked_at == UNIX + world.times()[0]
            assert (first.failed_rounds, first.breaker_open_until) == (0, 0.0)

    run(check())


def test_a_removed_cluster_is_not_reported_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World()
        world.lengths["alpha"] = 3.0
        async with world.observing(monkeypatch) as observer:
            observer.put(world.cluster())
            await asyncio.sleep(2.0)
            observer.remove("alpha")
            observer.remove("alpha")
            assert observer.last("alpha") is None
            await asyncio.sleep(2 * MINUTE)
            assert not world.reports
            with pytest.raises(KeyError):
                await observer.observe_now("alpha", deadline=1.0)

    run(check())


def test_a_changed_spec_is_asked_at_once_and_keeps_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World()
        async with world.observing(monkeypatch) as observer:
            one = world.cluster()
            observer.put(one)
            await asyncio.sleep(1.0)
            first = observer.last("alpha")
            observer.put(changed(one, location={"region": "north"}))
            assert observer.last("alpha") == first
            await asyncio.sleep(1.0)
            assert len(world.times()) == 2
            observer.put({**changed(one, location={"region": "north"}), "status": {"state": "Ready"}})
            await asyncio.sleep(1.0)
            assert len(world.times()) == 2

    run(check())


def test_another_uid_is_another_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World()
        async with world.observing(monkeypatch) as observer:
            one = world.cluster()
            observer.put(one)
            await asyncio.sleep(1.0)
            observer.put(changed(one, uid="u2"))
            assert observer.last("alpha") is None
            world.access.give("alpha")
            await asyncio.sleep(1.0)
            second = world.reported()[-1]
            assert failure_of(second).reason is Reason.CREDENTIAL_MISSING
            assert second.health.value is None

    run(check())


def test_a_change_in_the_middle_of_a_round_reports_the_new_round_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World()
        world.lengths["alpha"] = 3.0
        async with world.observing(monkeypatch) as observer:
            one = world.cluster()
            observer.put(one)
            await asyncio.sleep(2.0)
            observer.put(changed(one, location={"region": "north"}))
            await asyncio.sleep(4.0)
        assert len(world.times()) == 2
        assert len(world.reports) == 1
        assert world.most_of_one == 1

    run(check())


# The breaker


def test_a_dead_cluster_is_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World(ObserverSettings(jitter=0.0))
        world.errors["alpha"] = dead()
        async with world.observing(monkeypatch) as observer:
            observer.put(world.cluster())
            await asyncio.sleep(HOUR)
            pauses = [after - before for before, after in itertools.pairwise(world.times())]
            assert 15.0 <= pauses[0] <= 30.0
            assert pauses[1:6] == pytest.approx([30.0, 60.0, 120.0, 240.0, 300.0])
            assert pauses[6:] == pytest.approx([300.0] * len(pauses[6:]))
            last = observer.last("alpha")
            assert last is not None
            assert failure_of(last).reason is Reason.CONNECTION_REFUSED
            assert last.failed_rounds == len(world.times())

    run(check())


def test_rounds_that_the_breaker_skips_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the failure of the round before them, so that a status is renewed."""

    async def check() -> None:
        world = World(ObserverSettings(jitter=0.0))
        world.errors["alpha"] = dead()
        async with world.observing(monkeypatch) as observer:
            observer.put(world.cluster())
            await asyncio.sleep(20 * MINUTE)
        pauses = [after.at - before.at for before, after in itertools.pairwise(world.reported())]
        assert max(pauses) <= 30.0 + 1e-6
        skipped = [each for each in world.reported() if each.at != each.asked_at]
        assert len(world.reported()) - len(skipped) == len(world.times())
        for each in skipped:
            assert failure_of(each).reason is Reason.CONNECTION_REFUSED
            assert each.at < each.breaker_open_until <= each.at + 300.0
        assert [each.breaker_open_until for each in world.reported()[:2]] == [0.0, 0.0]

    run(check())


def test_the_first_success_closes_the_breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World(ObserverSettings(jitter=0.0))
        world.errors["alpha"] = dead()
        async with world.observing(monkeypatch) as observer:
            observer.put(world.cluster())
            await asyncio.sleep(10 * MINUTE)
            world.errors.clear()
            await asyncio.sleep(6 * MINUTE)
            last = observer.last("alpha")
            assert last is not None
            assert (last.failure, last.failed_rounds, last.breaker_open_until) == (None, 0, 0.0)
            before = len(world.times())
            await asyncio.sleep(5 * MINUTE)
            assert len(world.times()) - before == 10

    run(check())


def test_a_changed_spec_closes_the_breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World()
        world.errors["alpha"] = dead()
        async with world.observing(monkeypatch) as observer:
            one = world.cluster()
            observer.put(one)
            await asyncio.sleep(10 * MINUTE)
            before = len(world.times())
            observer.put(changed(one, location={"region": "north"}))
            last = observer.last("alpha")
            assert last is not None
            assert (last.failed_rounds, last.breaker_open_until) == (0, 0.0)
            await asyncio.sleep(1.0)
            assert len(world.times()) == before + 1
            assert world.reported()[-1].failed_rounds == 1

    run(check())


@pytest.mark.parametrize(("asked_for", "pause"), [(7.0, 30.0), (100.0, 100.0), (10_000.0, 300.0)])
def test_a_cluster_is_left_alone_for_as_long_as_it_asks(
    monkeypatch: pytest.MonkeyPatch, asked_for: float, pause: float
) -> None:
    async def check() -> None:
        world = World(ObserverSettings(jitter=0.0))
        world.errors["alpha"] = busy(asked_for)
        async with world.observing(monkeypatch) as observer:
            observer.put(world.cluster())
            await asyncio.sleep(HOUR)
        pauses = [after - before for before, after in itertools.pairwise(world.times())]
        assert pauses[1:] == pytest.approx([pause] * len(pauses[1:]))

    run(check())


# On demand


def test_observe_now_asks_whatever_the_breaker_says(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World()
        world.errors["alpha"] = dead()
        async with world.observing(monkeypatch) as observer:
            observer.put(world.cluster())
            await asyncio.sleep(10 * MINUTE)
            last = observer.last("alpha")
            assert last is not None
            assert last.breaker_open_until
            world.errors.clear()
            begin = now()
            found = await observer.observe_now("alpha", deadline=10.0)
            assert now() == begin
            assert (found.failure, found.breaker_open_until) == (None, 0.0)

    run(check())


def test_observe_now_gives_what_is_known_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World()
        world.lengths["alpha"] = 5.0
        async with world.observing(monkeypatch) as observer:
            observer.put(world.cluster())
            begin = now()
            found = await observer.observe_now("alpha", deadline=3.0)
            assert now() - begin == 3.0
            assert failure_of(found).reason is Reason.NEVER_OBSERVED
            assert (await observer.observe_now("alpha", deadline=3.0)).failure is None
            assert len(world.times()) == 1
            again = asyncio.create_task(observer.observe_now("alpha", deadline=3.0))
            await asyncio.sleep(3.5)
            assert again.result() is observer.last("alpha")

    run(check())


def test_observe_now_waits_for_the_round_of_the_changed_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World()
        world.lengths["alpha"] = 2.0
        async with world.observing(monkeypatch) as observer:
            one = world.cluster()
            observer.put(one)
            waiting = asyncio.create_task(observer.observe_now("alpha", deadline=60.0))
            await asyncio.sleep(1.0)
            observer.put(changed(one, location={"region": "north"}))
            found = await waiting
            assert found.failure is None
            assert found is world.reported()[-1]
            assert len(world.times()) == 2

    run(check())


def test_observe_now_of_a_cluster_that_goes_away_raises_key_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def check() -> None:
        world = World()
        world.lengths["alpha"] = 2.0
        async with world.observing(monkeypatch) as observer:
            observer.put(world.cluster())
            waiting = asyncio.create_task(observer.observe_now("alpha", deadline=60.0))
            await asyncio.sleep(1.0)
            observer.remove("alpha")
            with pytest.raises(KeyError):
                await waiting

    run(check())


# One cluster and the others


def test_slow_clusters_and_slow_credentials_delay_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred that take all their time, beside a hundred that are well: these are asked as if they were alone."""

    async def check() -> None:
        world = World(ObserverSettings(concurrency=8))
        async with world.observing(monkeypatch) as observer:
            for number in range(100):
                world.lengths[f"slow{number}"] = 5.0
                world.access.pauses[f"slow{number}"] = 12.0 * (number % 2)
                observer.put(world.cluster(f"slow{number}"))
            await asyncio.sleep(20.0)
            for number in range(100):
                observer.put(world.cluster(f"well{number}"))
            await asyncio.sleep(10 * MINUTE)
        for number in range(100):
            times = world.times(f"well{number}")
            assert all(after - before <= 30.0 + 1.5 for before, after in itertools.pairwise(times))
            assert len(times) >= 20
        assert world.most_of_one == 1

    run(check())


def test_a_report_that_fails_is_told_and_the_next_ones_come(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def check() -> None:
        world = World()
        reports: list[str] = []

        def report(name: str, _: Observation) -> None:
            reports.append(name)
            raise RuntimeError("a bug")

        monkeypatch.setattr(world, "report", report)
        async with world.observing(monkeypatch) as observer:
            observer.put(world.cluster("a"))
            observer.put(world.cluster("b"))
            await asyncio.sleep(40.0)
        assert reports.count("a") == reports.count("b") == 2

    with caplog.at_level(logging.ERROR):
        run(check())
    assert caplog.text.count("could not be reported") == 4


# With members


@contextlib.asynccontextmanager
async def observing(simulator: Simulator, **settings: Any) -> AsyncIterator[Observer]:
    """An observer of all members that is closed at the end: then no connection and no task of it is left."""
    before = asyncio.all_tasks()
    access = access_to(*simulator.members)
    observer = Observer(access, settings=replace(PATIENT, **settings), report=lambda *_: None)
    running = asyncio.create_task(observer.run())
    try:
        yield observer
    finally:
        running.cancel()
        await asyncio.wait([running])
        await observer.close()
        assert observer.running == 0
        await until(lambda: not any(each.open_count for each in simulator.members))
        await until(lambda: asyncio.all_tasks() == before)


@with_members
async def test_hostile_and_dead_clusters_leave_the_others_as_they_are(tmp_path: Path) -> None:
    """Every fault at once, beside members that are well: these are observed again and again."""
    faults = [each for each in Fault if each is not Fault.NONE]
    async with Simulator(len(faults) + 3, directory=tmp_path) as simulator:
        for member, fault in zip(simulator.members[3:], faults, strict=True):
            member.fault = fault
        async with observing(simulator, interval=1.0, deadline=2.0, breaker_pause=1.0) as observer:
            for member in simulator.members:
                observer.put(member.cluster())
            await until(lambda: all(observer.last(each.name) for each in simulator.members))
            counts = [each.readyz_count for each in simulator.members[:3]]

            def are_well() -> bool:
                """Each was asked again, and is well. On a busy machine an answer may come too late now and then."""
                asked = zip(simulator.members[:3], counts, strict=True)
                return all(
                    member.readyz_count > count + 1
                    and (last := observer.last(member.name)) is not None
                    and last.failure is None
                    for member, count in asked
                )

            await until(are_well)


@with_members
async def test_connections_are_kept_between_rounds_up_to_a_number(tmp_path: Path) -> None:
    async with (
        Simulator(3, directory=tmp_path) as simulator,
        observing(simulator, interval=1000.0, kept_connections=2) as observer,
    ):
        for member in simulator.members[:2]:
            observer.put(member.cluster())
        for _ in range(3):
            for member in simulator.members[:2]:
                await observer.observe_now(member.name, deadline=PATIENCE)
        assert [each.connection_count for each in simulator.members] == [1, 1, 0]
        observer.put(simulator[2].cluster())
        for _ in range(2):
            for member in simulator.members:
                await observer.observe_now(member.name, deadline=PATIENCE)
        await until(lambda: [each.open_count for each in simulator.members] == [1, 1, 0])
        assert [each.connection_count for each in simulator.members[:2]] == [1, 1]
        assert (before := simulator[2].connection_count) >= 2
        observer.remove(simulator[0].name)  # its place is free
        for _ in range(2):
            await observer.observe_now(simulator[2].name, deadline=PATIENCE)
        await until(lambda: [each.open_count for each in simulator.members] == [0, 1, 1])
        assert simulator[2].connection_count == before + 1


@with_members
async def test_removed_and_changed_clusters_lose_their_connections(tmp_path: Path) -> None:
    async with Simulator(2, directory=tmp_path) as simulator:
        first, second = simulator.members
        async with observing(simulator, interval=1000.0) as observer:
            for member in simulator.members:
                observer.put(member.cluster())
                await observer.observe_now(member.name, deadline=PATIENCE)
            observer.remove(first.name)
            await until(lambda: not first.open_count)
            observer.put(second.cluster(location={"region": "north"}))
            await observer.observe_now(second.name, deadline=PATIENCE)
            await until(lambda: second.open_count == 1)
            assert second.connection_count == 2


@with_members
async def test_closing_in_the_middle_of_rounds_leaves_nothing(tmp_path: Path) -> None:
    async with Simulator(4, directory=tmp_path) as simulator:
        for member, fault in zip(
            simulator.members, (Fault.TLS_SILENT, Fault.SILENT, Fault.SLOW_BYTES, Fault.ENDLESS_BODY), strict=True
        ):
            member.fault = fault
        async with observing(simulator) as observer:
            for member in simulator.members:
                observer.put(member.cluster())
            await until(lambda: all(each.connection_count for each in simulator.members))


@with_members
async def test_programs_may_bring_probes_of_their_own(tmp_path: Path) -> None:
    async with Simulator(directory=tmp_path) as simulator:
        member = simulator[0]

        async def count_pods(client: Any) -> int:
            return len((await client.get_object("/api/v1/pods", limit=1 << 20))["items"])

        probe = Probe(name="pods", interval=0.0, read=count_pods)
        observer = Observer(access_to(member), settings=PATIENT, report=lambda *_: None, probes=[probe])
        running = asyncio.create_task(observer.run())
        observer.put(member.cluster())
        found = await observer.observe_now(member.name, deadline=PATIENCE)
        assert found.more["pods"].value == member.contents.pods
        running.cancel()
        await asyncio.wait([running])
        await observer.close()


@with_members
async def test_one_observation_leaves_no_connection(tmp_path: Path) -> None:
    async with Simulator(directory=tmp_path) as simulator:
        member = simulator[0]
        found = await observe_once(member.cluster(), access_to(member), settings=PATIENT)
        assert found.failure is None
        assert found.nodes.value is not None
        await until(lambda: not member.open_count)
