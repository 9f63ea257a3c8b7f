"""One round over one cluster: in virtual time with probes that need no server, and with simulated members."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.controllers.observer.credentials import MemberCredential
from clusterregistry.controllers.observer.endpoint import Endpoint, EndpointError
from clusterregistry.controllers.observer.failure import CutError, ProbeError, RoundError
from clusterregistry.controllers.observer.member import RoundClient
from clusterregistry.controllers.observer.observation import Failure, Health, Observation, Reason, Section
from clusterregistry.controllers.observer.probe import Probe
from clusterregistry.controllers.observer.round import Round, Subject
from clusterregistry.controllers.observer.settings import ObserverSettings
from tests.client.fake_clock import now, run
from tests.controllers.fleets import with_members
from tests.controllers.observer.subjects import (
    HASTY,
    PATIENT,
    Access,
    access_to,
    asked,
    cluster,
    credential,
    failure_of,
    other_pem,
    subject,
)
from tools.simulator import Fault, SimulatedMember, Simulator
from tools.simulator.connection import HUGE_BYTES

SETTINGS = ObserverSettings()
TOKENS = Access(alpha=["one"])


class Source:
    """A probe that gives a number more each time, or fails as the test says."""

    def __init__(self, name: str, *, interval: float = 0.0, on_connect: bool = False) -> None:
        self.error: Exception | None = None
        self.reads: list[float] = []
        self.pause = 0.0
        self.probe = Probe(name=name, interval=interval, read=self._read, on_connect=on_connect)
        self._values = itertools.count(1)

    async def _read(self, _: RoundClient) -> int:
        self.reads.append(now())
        await asyncio.sleep(self.pause)
        if self.error is not None:
            raise self.error
        return next(self._values)


def probe_error(reason: Reason = Reason.FORBIDDEN, *, retry_after: float = 0.0) -> ProbeError:
    return ProbeError(Failure(reason=reason, message="no"), retry_after=retry_after)


def round_error(reason: Reason = Reason.TIMED_OUT) -> RoundError:
    return RoundError(Failure(reason=reason, message="no"))


def cut() -> CutError:
    return CutError(Failure(reason=Reason.BAD_RESPONSE, message="cut"))


def reading(*sources: Source, access: Access = TOKENS, **more: Any) -> Subject:
    chosen = {"settings": SETTINGS, "clock": now, "probes": [each.probe for each in sources], **more}
    return subject(cluster(), access, **chosen)


async def probed(one: Subject, *, everything: bool = False) -> Any:
    """The observation after a round. Its sections have the numbers of sources."""
    return await asked(one, everything=everything)


# When probes are read


def test_probes_are_read_by_their_intervals() -> None:
    """Rounds start a little early at random: the nearest one counts."""

    async def check() -> None:
        each, minute, seldom = (
            Source("health"),
            Source("nodes", interval=60.0),
            Source("kube_system_uid", interval=600.0),
        )
        one = reading(each, minute, seldom)
        for _ in range(41):
            await probed(one)
            await asyncio.sleep(29.0)
        assert [len(source.reads) for source in (each, minute, seldom)] == [41, 21, 2]

    run(check())


def test_a_forced_round_reads_everything() -> None:
    async def check() -> None:
        seldom = Source("kube_system_uid", interval=600.0)
        one = reading(Source("health"), seldom)
        await probed(one)
        await probed(one)
        assert len(seldom.reads) == 1
        await probed(one, everything=True)
        assert len(seldom.reads) == 2

    run(check())


def test_what_is_read_seldom_is_read_sooner_after_a_failure() -> None:
    async def check() -> None:
        seldom = Source("kube_system_uid", interval=600.0)
        seldom.error = probe_error()
        one = reading(Source("health"), seldom)
        begin = now()
        for _ in range(5):
            await probed(one)
            await asyncio.sleep(30.0)
        assert [at - begin for at in seldom.reads] == [0.0, 60.0, 120.0]
        seldom.error = None
        for _ in range(8):
            await probed(one)
            await asyncio.sleep(30.0)
        assert [at - begin for at in seldom.reads[3:]] == [180.0]

    run(check())


def test_those_that_wait_longest_come_first_in_a_slow_cluster() -> None:
    """Each round has time for two probes alone: all get their turn."""

    async def check() -> None:
        first, *others = Source("health"), Source("version"), Source("nodes"), Source("more")
        one = reading(first, *others)

        async def read(source: Source, _: RoundClient) -> int:
            source.reads.append(now())
            if len(others_read) == 1:
                raise round_error()
            others_read.append(source)
            return 1

        others_read: list[Source] = []
        for source in others:
            source.probe = replace(source.probe, read=partial(read, source))
        one = reading(first, *others)
        for _ in range(6):
            others_read.clear()
            await probed(one)
            await asyncio.sleep(30.0)
        assert all(len(source.reads) >= 3 for source in others)

    run(check())


# What is kept


def test_a_section_has_the_time_of_its_value() -> None:
    async def check() -> None:
        source = Source("version")
        one = reading(Source("health"), source, clock=lambda: now() + 7000.0)
        source.pause = 3.0
        found = await probed(one)
        assert found.version == Section(value=1, at=now() + 7000.0)
        assert found.at == found.asked_at == now() + 7000.0

    run(check())


def test_the_last_known_value_and_its_time_stay_when_a_probe_fails() -> None:
    async def check() -> None:
        health, version, more = Source("health"), Source("version"), Source("pods")
        one = reading(health, version, more)
        first = await probed(one)
        await asyncio.sleep(30.0)
        version.error = more.error = probe_error()
        second = await probed(one)
        assert second.failure is None
        assert second.version == replace(first.version, failure=Failure(reason=Reason.FORBIDDEN, message="no"))
        assert second.more["pods"].value == 1
        assert second.more["pods"].failure is not None
        assert second.health == Section(value=2, at=now())
        version.error = None
        assert (await probed(one)).version == Section(value=2, at=now())

    run(check())


def test_a_failed_round_leaves_all_sections_as_they_were() -> None:
    async def check() -> None:
        health, version = Source("health"), Source("version")
        one = reading(health, version)
        first = await probed(one)
        health.error = round_error()
        await asyncio.sleep(30.0)
        second = await probed(one)
        assert second == replace(
            first, at=now(), asked_at=now(), failure=Failure(reason=Reason.TIMED_OUT, message="no")
        )
        health.error = None
        assert (await probed(one)).failure is None

    run(check())


def test_what_was_read_before_the_time_ended_counts() -> None:
    async def check() -> None:
        health, version, nodes = Source("health"), Source("version"), Source("nodes")
        version.error = round_error()
        found = await probed(reading(health, version, nodes))
        assert found.failure is None
        assert found.health.value == 1
        assert found.version.failure == Failure(reason=Reason.TIMED_OUT, message="no")
        assert found.nodes == Section()
        assert not nodes.reads

    run(check())


def test_a_cluster_that_cuts_every_response_did_not_answer() -> None:
    async def check() -> None:
        health, version = Source("health"), Source("version")
        health.error, version.error = cut(), cut()
        found = await probed(reading(health, version))
        assert failure_of(found).message == "cut"
        version.error = probe_error()
        assert (await probed(reading(health, version))).failure is None

    run(check())


def test_a_cancelled_round_leaves_what_was_known() -> None:
    async def check() -> None:
        health, version = Source("health"), Source("version")
        one = reading(health, version)
        first = await probed(one)
        version.pause = 4.0
        task = asyncio.create_task(probed(one))
        await asyncio.sleep(1.0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert one.last is first

    run(check())


# Credentials and endpoints


def test_a_credential_that_does_not_come_in_time_is_missing() -> None:
    async def check() -> None:
        access, health = Access(alpha=["one"]), Source("health")
        access.pauses["alpha"] = 1000.0
        begin = now()
        failure = failure_of(await probed(reading(health, access=access)))
        assert failure == Failure(reason=Reason.CREDENTIAL_MISSING, message="there is no credential within 12 s")
        assert now() - begin == SETTINGS.credential_deadline
        assert not health.reads

    run(check())


def test_the_time_for_a_credential_does_not_count_for_the_cluster() -> None:
    async def check() -> None:
        access, health = Access(alpha=["one"]), Source("health")
        access.pauses["alpha"] = 11.0
        deadlines: list[float] = []

        async def read(client: RoundClient) -> int:
            deadlines.append(client._deadline - now())
            return 1

        health.probe = replace(health.probe, read=read)
        assert (await probed(reading(health, access=access))).failure is None
        assert deadlines == [SETTINGS.deadline]

    run(check())


def test_without_a_credential_nothing_is_asked_and_nothing_is_told_of_the_former_one() -> None:
    async def check() -> None:
        access, health = Access(alpha=["one"]), Source("health")
        one = reading(health, access=access)
        assert (await probed(one)).credential is not None
        access.give("alpha")
        found = await probed(one)
        assert failure_of(found).reason is Reason.CREDENTIAL_MISSING
        assert found.credential is None
        assert len(health.reads) == 1

    run(check())


@pytest.mark.parametrize(
    ("given", "reads", "reason"),
    [(["old"], 1, Reason.UNAUTHORIZED), (["old", "new"], 2, None), (["old", "older", "new"], 2, Reason.UNAUTHORIZED)],
)
def test_a_refused_credential_leads_to_one_other(given: list[str], reads: int, reason: Reason | None) -> None:
    async def check() -> None:
        access = Access(alpha=given)
        used: list[str] = []

        async def read(client: RoundClient) -> int:
            used.append(client._credential.authorization)
            if not used[-1].endswith("new"):
                raise round_error(Reason.UNAUTHORIZED)
            return 1

        found = await probed(reading(access=access, probes=[Probe(name="health", interval=0.0, read=read)]))
        assert used == [f"Bearer {each}" for each in given[:reads]]
        assert (found.failure and found.failure.reason) == reason
        assert [each.credential.authorization for each in access.rejected] == [f"Bearer {given[0]}"]

    run(check())


def test_a_credential_that_is_refused_in_the_middle_fails_the_round() -> None:
    async def check() -> None:
        health, version = Source("health"), Source("version")
        version.error = round_error(Reason.UNAUTHORIZED)
        found = await probed(reading(health, version, access=Access(alpha=["one"])))
        assert failure_of(found).reason is Reason.UNAUTHORIZED
        assert found.health.value == 1

    run(check())


def test_a_cluster_without_an_endpoint_is_told() -> None:
    async def check() -> None:
        access = Access(alpha=["one"])
        one = reading(Source("health"), access=access)
        one.cluster = cluster(address="http://host")
        assert failure_of(await probed(one)).reason is Reason.NO_ENDPOINT
        assert not access.asked

    run(check())


def test_an_endpoint_may_be_chosen_in_another_way() -> None:
    def refuse(_: Any) -> Endpoint:
        raise EndpointError("none here")

    async def check() -> None:
        found = await probed(reading(Source("health"), endpoint=lambda _: Endpoint(url="https://inside:443")))
        assert found.endpoint == "https://inside:443"
        assert failure_of(await probed(reading(Source("health"), endpoint=refuse))).message == "none here"

    run(check())


def test_the_longest_pause_that_a_cluster_asks_for_counts() -> None:
    async def check() -> None:
        health, version = Source("health"), Source("version")
        health.error = probe_error(Reason.NOT_READY, retry_after=90.0)
        version.error = probe_error(Reason.NOT_READY, retry_after=40.0)
        made = Round(reading(health, version))
        await made.run()
        assert made.retry_after == 90.0
        assert not made.is_useless

    run(check())


@pytest.mark.parametrize(
    ("error", "useless"),
    [(None, False), (probe_error(), False), (probe_error(Reason.BAD_RESPONSE), True), (round_error(), True)],
)
def test_a_round_is_useless_if_the_health_could_not_be_read(error: Exception | None, *, useless: bool) -> None:
    async def check() -> None:
        health = Source("health")
        health.error = error
        made = Round(reading(health, Source("version")))
        await made.run()
        assert made.is_useless is useless

    run(check())


# With members


@contextlib.asynccontextmanager
async def observed(
    directory: Path, *, settings: ObserverSettings = PATIENT
) -> AsyncIterator[tuple[SimulatedMember, Subject]]:
    async with Simulator(directory=directory) as simulator:
        member = simulator[0]
        one = subject(member.cluster(), access_to(member), settings=settings)
        try:
            yield member, one
        finally:
            await one.disconnect()


def paths(member: SimulatedMember) -> list[str]:
    found = [each.path for each in member.requests]
    member.requests.clear()
    return found


ROUND, WHOLE = ["/readyz", "/version"], ["/readyz", "/version", "/api/v1/namespaces/kube-system", "/api/v1/nodes"]


@with_members
async def test_the_identity_is_read_over_each_new_connection(tmp_path: Path) -> None:
    settings = replace(PATIENT, node_interval=10_000.0, identity_interval=10_000.0)
    async with observed(tmp_path, settings=settings) as (member, one):
        await asked(one)
        assert paths(member) == WHOLE
        for _ in range(3):
            await asked(one)
            assert paths(member) == ROUND
        assert member.connection_count == 1
        member.cut()
        member.contents.kube_system_uid = "another"
        found = await asked(one)
        assert sorted(paths(member)) == sorted([*ROUND, WHOLE[2]])
        assert found.kube_system_uid.value == "another"
        assert found.nodes.value is not None
        assert member.open_count == 1


@with_members
async def test_the_last_known_values_stay_when_a_cluster_is_gone(tmp_path: Path) -> None:
    async with observed(tmp_path) as (member, one):
        first = await asked(one)
        assert isinstance(first.health.value, Health)
        member.fault = Fault.REFUSED
        second = await asked(one)
        assert failure_of(second).reason is Reason.CONNECTION_REFUSED
        assert replace(second, failure=None, at=0.0, asked_at=0.0) == replace(first, at=0.0, asked_at=0.0)


@pytest.mark.parametrize(
    "fault", [Fault.ENDLESS_BODY, Fault.HUGE_JSON, Fault.HUGE_CHUNKED_JSON, Fault.DEEP_JSON, Fault.MANY_VALUES]
)
@with_members
async def test_a_hostile_cluster_makes_a_round_read_little(tmp_path: Path, fault: Fault) -> None:
    """Four bodies are asked for: not even one of them is read."""
    async with observed(tmp_path) as (member, one):
        member.fault = fault
        made = Round(one)
        found = await made.run()
        sections = found.health, found.version, found.kube_system_uid, found.nodes
        assert {each.failure and each.failure.reason for each in sections} == {Reason.BAD_RESPONSE}
        assert made.is_useless
        assert member.sent_bytes < HUGE_BYTES
        await until_alone(member)
        member.fault = Fault.NONE
        assert (await asked(one, everything=True)).nodes.failure is None


async def until_alone(member: SimulatedMember) -> None:
    async with asyncio.timeout(60):
        while member.open_count:  # noqa: ASYNC110 - the other end notices it by itself
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.TLS_SILENT, Fault.SLOW_BYTES])
@with_members
async def test_a_round_that_gets_no_answer_in_time_ends_its_connection(tmp_path: Path, fault: Fault) -> None:
    async with observed(tmp_path, settings=HASTY) as (member, one):
        member.fault = fault
        assert failure_of(await asked(one)).reason is Reason.TIMED_OUT
        await until_alone(member)
        assert member.request_count <= 1


@with_members
async def test_a_token_that_was_rotated_is_replaced_within_the_round(tmp_path: Path) -> None:
    async with observed(tmp_path) as (member, one):
        access = access_to(member)
        access.give(member.name, "former", member.token)
        one.parts = replace(one.parts, access=access)
        assert (await asked(one)).failure is None
        assert [each.authorization for each in member.requests] == ["Bearer former", *[f"Bearer {member.token}"] * 4]
        assert (member.connection_count, len(access.rejected)) == (1, 1)


@with_members
async def test_a_refused_credential_is_not_sent_again_in_the_round(tmp_path: Path) -> None:
    async with observed(tmp_path) as (member, _):
        access = Access()
        access.give(member.name, "former", "wrong", member.token)
        one = subject(member.cluster(), access)
        assert failure_of(await asked(one)).reason is Reason.UNAUTHORIZED
        assert [each.authorization for each in member.requests] == ["Bearer former", "Bearer wrong"]


@with_members
async def test_a_client_certificate_is_replaced_over_a_new_connection(tmp_path: Path) -> None:
    async with observed(tmp_path) as (member, _):
        access = Access()
        certificate, key = member.identity.client_pair()
        access.give(member.name, "former", credential(certificate=certificate, key=key))
        one = subject(member.cluster(), access)
        assert (await asked(one)).failure is None
        assert member.certificates == ["", "observer"]
        await one.disconnect()


@with_members
async def test_a_client_certificate_that_is_none_is_told(tmp_path: Path) -> None:
    async with observed(tmp_path) as (member, _):
        access = Access()
        access.give(member.name, credential(certificate=b"none", key=b"secret-key"))
        one = subject(member.cluster(), access)
        failure = failure_of(await asked(one))
        assert "client certificate" in failure.message
        assert "secret-key" not in failure.message
        assert member.request_count == 0


@with_members
async def test_another_endpoint_gets_a_connection_and_trust_of_its_own(tmp_path: Path) -> None:
    async with Simulator(2, directory=tmp_path) as simulator:
        first, second = simulator.members
        access = access_to(first)
        one = subject(first.cluster(), access)
        assert (await asked(one)).failure is None
        moved = second.cluster()
        one.cluster = {**moved, "metadata": first.cluster()["metadata"]}
        access.give(first.name, second.token)
        found = await asked(one, everything=True)
        assert found.failure is None
        assert found.kube_system_uid.value == second.contents.kube_system_uid
        assert {each.authorization for each in first.requests} == {f"Bearer {first.token}"}
        assert {each.authorization for each in second.requests} == {f"Bearer {second.token}"}
        await until_alone(first)
        await one.disconnect()


@with_members
async def test_a_server_of_another_authority_gets_no_credential(tmp_path: Path) -> None:
    """The address is that of another cluster now, and the authority that of the former one."""
    async with observed(tmp_path) as (member, one):
        one.parts = replace(one.parts, endpoint=lambda _: Endpoint(url=member.url, authorities=other_pem(tmp_path)))
        made = Round(one)
        assert failure_of(await made.run()).reason is Reason.TLS_UNTRUSTED
        assert made.is_useless
        assert member.request_count == 0


def test_an_observation_never_shows_a_credential() -> None:
    async def check() -> None:
        found: Observation = await asked(reading(Source("health"), access=Access(alpha=["s3cr3t"])))
        given: MemberCredential = credential("s3cr3t")
        assert "s3cr3t" not in f"{found!r}{given!r}"

    run(check())
