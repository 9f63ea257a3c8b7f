"""Leader election on a lease in memory with a fake clock; ``test_kube_apiserver`` has the real one."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from typing import Any, cast

import pytest

from clusterregistry.client import errors
from clusterregistry.client.leader_election import LeaderElectionConfig, LeaderElector, LeadershipLostError
from clusterregistry.client.rest import ResourceClient
from tests.client.candidates import candidate, forever
from tests.client.fake_clock import now, run, until


class Leases:
    """One lease as a server keeps it, with optimistic locking; it can be cut off from its clients."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.is_cut_off: set[str] = set()
        self.loses_answers = False

    def seen_by(self, identity: str) -> ResourceClient:
        return cast("ResourceClient", _View(self, identity))

    def stored(self, lease: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        self.lease = copy.deepcopy(lease)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(self.lease)


class _View:
    def __init__(self, leases: Leases, identity: str) -> None:
        self._leases, self._identity = leases, identity

    async def _reach(self) -> None:
        await asyncio.sleep(0.01)
        if self._identity in self._leases.is_cut_off:
            raise errors.UnreachableError("cut off")

    async def get(self, name: str) -> dict[str, Any]:
        await self._reach()
        if self._leases.lease is None:
            raise errors.from_code(404, name)
        return copy.deepcopy(self._leases.lease)

    async def create(self, lease: dict[str, Any]) -> dict[str, Any]:
        await self._reach()
        if self._leases.lease is not None:
            raise errors.from_status({"code": 409, "reason": "AlreadyExists"})
        return self._leases.stored(lease)

    async def update(self, lease: dict[str, Any]) -> dict[str, Any]:
        await self._reach()
        current = self._leases.lease
        if current is None or current["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"]:
            raise errors.from_status({"code": 409, "reason": "Conflict"})
        stored = self._leases.stored(lease)
        if self._leases.loses_answers:
            raise errors.DisconnectedError("cut")
        return stored


def elector(leases: Leases, identity: str, **changes: Any) -> LeaderElector:
    on_new_leader = changes.pop("on_new_leader", lambda _: None)
    config = LeaderElectionConfig(name="lock", identity=identity, **changes)
    return LeaderElector(leases.seen_by(identity), config, on_new_leader=on_new_leader)


def test_the_first_candidate_leads_and_the_second_waits() -> None:
    async def work() -> None:
        leases = Leases()
        one, two = elector(leases, "one"), elector(leases, "two")
        async with candidate(one), candidate(two):
            await asyncio.sleep(60)
            assert (one.is_leader, two.is_leader, two.leader) == (True, False, "one")
            assert leases.lease is not None
            spec = leases.lease["spec"]
            assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("one", 15, 0)
            assert spec["renewTime"] >= spec["acquireTime"]

    run(work())


def test_a_leader_that_ends_in_order_is_followed_at_once() -> None:
    async def handover() -> float:
        leases = Leases()
        one, two = elector(leases, "one"), elector(leases, "two")
        first = asyncio.create_task(one.run(forever))
        await asyncio.sleep(1)
        async with candidate(two):
            await asyncio.sleep(10)
            first.cancel()
            ended = now()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert not one.is_leader
            await until(lambda: two.is_leader)
            assert leases.lease is not None
            assert leases.lease["spec"]["leaseTransitions"] >= 1
            return now() - ended

    assert run(handover()) < 3


def test_a_leader_that_vanishes_is_followed_after_the_duration_of_its_lease() -> None:
    async def work() -> float:
        leases = Leases()
        one, two = elector(leases, "one", release_on_cancel=False), elector(leases, "two")
        first = asyncio.create_task(one.run(forever))
        await asyncio.sleep(1)
        async with candidate(two):
            await asyncio.sleep(10)
            first.cancel()
            vanished = now()
            await until(lambda: two.is_leader)
            return now() - vanished

    assert 12.5 <= run(work()) <= 20  # a renewal is up to 2 s old, and seen up to 2.4 s later, twice


def test_a_leader_that_cannot_renew_stops_before_another_may_begin() -> None:
    async def work() -> None:
        leases, times = Leases(), dict[str, float]()

        def lead_as(name: str) -> Any:
            async def lead() -> None:
                times[f"{name} began"] = now()
                try:
                    await forever()
                finally:
                    times[f"{name} ended"] = now()

            return lead

        one, two = elector(leases, "one"), elector(leases, "two")
        async with candidate(one, lead_as("one")) as first:
            await asyncio.sleep(5)
            async with candidate(two, lead_as("two")):
                await asyncio.sleep(20)
                leases.is_cut_off.add("one")
                with pytest.raises(LeadershipLostError):
                    await first
                assert not one.is_leader
                await until(lambda: "two began" in times)
        assert times["one ended"] < times["two began"]

    run(work())


def test_a_leader_that_does_not_stop_is_no_leader_any_more_when_another_may_begin() -> None:
    """The fence: a leader that hangs sees by its own clock that its time is over."""

    async def work() -> None:
        leases, overlaps = Leases(), 0
        one, two = elector(leases, "one"), elector(leases, "two")

        async def stubborn() -> None:
            while now() < 1100:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)

        task = asyncio.create_task(one.run(stubborn))
        await asyncio.sleep(5)
        leases.is_cut_off.add("one")
        async with candidate(two):
            while now() < 1080:
                overlaps += one.is_leader and two.is_leader
                await asyncio.sleep(0.05)
            assert (two.is_leader, overlaps) == (True, 0)
        with pytest.raises(LeadershipLostError):
            await task

    run(work())


def test_a_short_interruption_is_survived() -> None:
    async def work() -> None:
        leases = Leases()
        one = elector(leases, "one")
        async with candidate(one) as leading:
            await asyncio.sleep(5)
            for _ in range(5):
                leases.is_cut_off.add("one")
                await asyncio.sleep(7)
                leases.is_cut_off.clear()
                await asyncio.sleep(5)
            assert one.is_leader
            assert not leading.done()

    run(work())


def test_a_renewal_whose_answer_is_lost_is_found_by_reading_the_lease() -> None:
    async def work() -> None:
        leases = Leases()
        one = elector(leases, "one")
        async with candidate(one) as leading:
            await asyncio.sleep(5)
            leases.loses_answers = True
            await asyncio.sleep(5)
            leases.loses_answers = False
            await asyncio.sleep(60)
            assert (one.is_leader, leading.done()) == (True, False)

    run(work())


def test_a_lease_that_is_deleted_or_taken_by_force_ends_or_continues_leadership() -> None:
    async def work() -> None:
        leases = Leases()
        one = elector(leases, "one")
        async with candidate(one) as leading:
            await asyncio.sleep(5)
            leases.lease = None
            await asyncio.sleep(5)
            assert (one.is_leader, leases.lease is not None) == (True, True)
            assert leases.lease is not None
            leases.lease["spec"]["holderIdentity"] = "usurper"
            leases.stored(leases.lease)
            with pytest.raises(LeadershipLostError):
                await leading

    run(work())


def test_work_that_ends_by_itself_releases_the_lease_and_its_failure_is_raised() -> None:
    async def work() -> None:
        leases = Leases()

        async def brief() -> None:
            await asyncio.sleep(3)

        await elector(leases, "one").run(brief)
        assert leases.lease is not None
        assert leases.lease["spec"]["holderIdentity"] == ""

        async def failing() -> None:
            raise RuntimeError("mistake")

        with pytest.raises(RuntimeError, match="mistake"):
            await elector(leases, "two").run(failing)

    run(work())


@pytest.mark.parametrize(
    "changes",
    [{"identity": ""}, {"lease_duration": 10}, {"renew_deadline": 2.1}, {"lease_duration": 15.5}, {"retry_period": 0}],
)
def test_times_that_exclude_each_other_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        LeaderElectionConfig(**{"name": "lock", "identity": "one", **changes})
