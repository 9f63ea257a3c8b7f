"""The controller as a process, with a real registry over TLS and simulated members with every fault."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

from clusterregistry.api.clusterregistry.agents import AGENT, OBSERVER
from clusterregistry.client.rest import Call, PatchType, metadata
from tests.controllers.fleets import (
    Fleet,
    condition,
    running_fleet,
    shown,
    until,
    with_members,
)
from tools.simulator import Fault

EXPECTED = {
    Fault.NONE: {("Ready", "Ready")},
    Fault.REFUSED: {("Unreachable", "ConnectionRefused")},
    Fault.SILENT: {("Unreachable", "TimedOut")},
    Fault.TLS_SILENT: {("Unreachable", "TimedOut")},
    Fault.RESET: {("Unreachable", "ConnectionRefused"), ("Unreachable", "TLSUntrusted")},
    Fault.PLAIN_HTTP: {("Unreachable", "ConnectionRefused"), ("Unreachable", "TLSUntrusted")},
    Fault.OTHER_CA: {("Unreachable", "TLSUntrusted")},
    Fault.EXPIRED_CERTIFICATE: {("Unreachable", "TLSUntrusted")},
    Fault.WRONG_NAME: {("Unreachable", "TLSUntrusted")},
    Fault.UNAUTHORIZED: {("Denied", "Unauthorized")},
    Fault.FORBIDDEN: {("Denied", "Forbidden")},
    Fault.TOO_MANY_REQUESTS: {("Degraded", "NotReady")},
    Fault.INTERNAL_ERROR: {("Degraded", "NotReady")},
    Fault.UNAVAILABLE: {("Degraded", "NotReady")},
    Fault.NOT_READY: {("Degraded", "NotReady")},
    Fault.REDIRECT: {("Degraded", "BadResponse")},
    Fault.SLOW: {("Unreachable", "TimedOut")},
    Fault.SLOW_BYTES: {("Unreachable", "TimedOut")},
    Fault.CUT: {("Degraded", "BadResponse")},
    Fault.CLOSE: {("Degraded", "BadResponse")},
    Fault.ENDLESS_BODY: {("Degraded", "BadResponse")},
    Fault.HUGE_JSON: {("Degraded", "BadResponse")},
    Fault.HUGE_CHUNKED_JSON: {("Degraded", "BadResponse")},
    Fault.DEEP_JSON: {("Degraded", "BadResponse")},
    Fault.MANY_VALUES: {("Degraded", "BadResponse")},
    Fault.NO_JSON: {("Degraded", "BadResponse")},
    Fault.NO_HTTP: {("Degraded", "BadResponse")},
    Fault.HUGE_HEADER: {("Degraded", "BadResponse")},
    Fault.FLAPPING: {("Degraded", "NotReady"), ("Ready", "Ready")},
    Fault.ECHO: {("Denied", "Forbidden")},
}


async def all_ready(fleet: Fleet) -> bool:
    return all(shown(each) == ("Ready", "Ready") for each in (await fleet.statuses()).values())


@with_members
async def test_every_fault_has_its_state_and_reason_and_ends(tmp_path: Path) -> None:
    assert set(EXPECTED) == set(Fault)
    async with running_fleet(tmp_path, members=len(EXPECTED)) as fleet:
        by_name = {
            member.name: (member, fault) for member, fault in zip(fleet.simulator.members, EXPECTED, strict=True)
        }
        for member, fault in by_name.values():
            member.fault = fault
        fleet.start_controller()

        async def wrong() -> dict[str, Any]:
            statuses = await fleet.statuses()
            return {
                f"{name} ({fault})": (shown(statuses[name]), condition(statuses[name], "OK").get("message"))
                for name, (_, fault) in by_name.items()
                if shown(statuses[name]) not in EXPECTED[fault]
            }

        differing: dict[str, Any] = {}

        async def is_right() -> bool:
            differing.clear()
            differing.update(await wrong())
            return not differing

        await until(is_right, lambda: f"{differing}\n{fleet.logs()}")
        echo = next(name for name, (_, fault) in by_name.items() if fault is Fault.ECHO)
        assert by_name[echo][0].token not in str(await fleet.status(echo))

        for member, _ in by_name.values():
            member.fault = Fault.NONE
        await until(lambda: all_ready(fleet), fleet.logs)


@with_members
async def test_a_status_has_all_that_is_known_and_is_renewed(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        controller = fleet.start_controller()
        await until(lambda: all_ready(fleet), fleet.logs)
        member = fleet.simulator[0]
        cluster = await fleet.clusters.get(member.name)
        status = cluster["status"]

        assert status["version"]["kubernetes"] == member.contents.version
        assert status["nodes"] == {
            "total": member.contents.nodes,
            "ready": member.contents.nodes - member.contents.not_ready,
        }
        properties = {each["name"]: each["value"] for each in status["properties"]}
        assert properties["clusterregistry.k8s.io/kube-system-uid"] == member.contents.kube_system_uid
        managers = {(each["manager"], each["operation"]) for each in metadata(cluster)["managedFields"]}
        assert ("cluster-status", "Apply") in managers
        alpha = await fleet.client.call(Call("GET", f"/apis/clusterregistry.k8s.io/v1alpha1/clusters/{member.name}"))
        assert alpha["status"]["state"] == "Ready"

        async def renewed() -> bool:
            now = await fleet.status(member.name)
            return bool(now["observedAt"] > status["observedAt"] and now["conditions"] == status["conditions"])

        await until(renewed, fleet.logs)
        code, metrics = await controller.get("/metrics")
        assert code == 200
        assert 'clusterregistry_controller_clusters{reason="Ready",state="Ready"} 4.0' in metrics
        assert "clusterregistry_controller_leader 1.0" in metrics
        assert 'clusterregistry_controller_status_writes_total{result="changed"} 4.0' in metrics
        assert member.name not in metrics
        assert (await controller.get("/livez"))[0] == 200
        assert "readyz check passed" in (await controller.get("/readyz"))[1]
        assert (await controller.get("/nothing"))[0] == 404


@with_members
async def test_transitions_are_told_and_a_flapping_cluster_has_few_events(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        fleet.start_controller()
        await until(lambda: all_ready(fleet), fleet.logs)
        member = fleet.simulator[1]

        async def has(state: str) -> bool:
            return (await fleet.status(member.name)).get("state") == state

        for _ in range(3):
            member.fault = Fault.NOT_READY
            await until(lambda: has("Degraded"), fleet.logs)
            member.fault = Fault.NONE
            await until(lambda: has("Ready"), fleet.logs)

        async def about() -> list[Any]:
            return [each for each in await fleet.events() if each["regarding"]["name"] == member.name]

        async def counted() -> bool:
            return {(each["reason"], each.get("series", {}).get("count")) for each in await about()} == {
                ("ClusterReady", 4), ("ClusterDegraded", 3),
            }  # fmt: skip

        await until(counted, fleet.logs)
        degraded = next(each for each in await about() if each["reason"] == "ClusterDegraded")
        assert degraded["type"] == "Warning"
        assert "it was Ready: NotReady: /readyz fails: etcd" in degraded["note"]
        assert degraded["regarding"]["uid"] == metadata(await fleet.clusters.get(member.name))["uid"]


@with_members
async def test_another_cluster_at_the_address_is_told_until_its_record_is_removed(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        member, other = fleet.simulator[2], fleet.simulator[3]
        await fleet.clusters.delete(member.name)
        await fleet.clusters.create(member.cluster(clusterID=""))
        fleet.start_controller()
        await until(lambda: all_ready(fleet), fleet.logs)
        await fleet.clusters.patch(member.name, {"spec": {**other.cluster()["spec"], "clusterID": None}})

        async def is_changed() -> bool:
            found = condition(await fleet.status(member.name), "IdentityVerified")
            return (found["status"], found["reason"]) == ("False", "IdentityChanged")

        await until(is_changed, fleet.logs)
        assert (await fleet.status(member.name))["state"] == "Degraded"
        await fleet.clusters.patch(
            member.name, {"status": {"properties": None}}, patch_type=PatchType.MERGE, subresource="status"
        )
        await until(lambda: all_ready(fleet), fleet.logs)


@with_members
async def test_clusters_come_and_go_and_change(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        fleet.start_controller()
        await until(lambda: all_ready(fleet), fleet.logs)
        member = fleet.simulator[0]
        await fleet.clusters.delete(member.name)
        await fleet.clusters.create(member.cluster(authInfo={}))

        async def is_denied() -> bool:
            return shown(await fleet.status(member.name)) == ("Denied", "CredentialMissing")

        await until(is_denied, fleet.logs)
        await fleet.clusters.patch(member.name, {"spec": member.cluster()["spec"]})
        await until(lambda: all_ready(fleet), fleet.logs)
        assert condition(await fleet.status(member.name), "OK")["observedGeneration"] == 2


@with_members
async def test_a_cluster_with_an_agent_is_left_to_it(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        member = fleet.simulator[0]
        annotate = {"metadata": {"annotations": {OBSERVER: AGENT}}}
        await fleet.clusters.patch(member.name, annotate)
        fleet.start_controller()

        async def others_are_ready() -> bool:
            statuses = await fleet.statuses()
            statuses.pop(member.name)
            return all(shown(each) == ("Ready", "Ready") for each in statuses.values())

        await until(others_are_ready, fleet.logs)
        assert await fleet.status(member.name) == {}
        assert member.request_count == 0
        await fleet.clusters.patch(member.name, {"metadata": {"annotations": {OBSERVER: None}}})
        await until(lambda: all_ready(fleet), fleet.logs)
        await fleet.clusters.patch(member.name, annotate)

        async def is_left() -> bool:
            count = fleet.simulator[1].request_count
            before = member.request_count
            await until(lambda: fleet.simulator[1].request_count > count + 4, fleet.logs)
            return member.request_count == before

        await until(is_left, fleet.logs)


@with_members
async def test_a_restart_repeats_no_state_and_no_event(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        fleet.simulator[3].fault = Fault.REFUSED
        first = fleet.start_controller()

        async def settled() -> bool:
            states = [each.get("state") for each in (await fleet.statuses()).values()]
            return states == ["Ready", "Ready", "Ready", "Unreachable"]

        await until(settled, fleet.logs)
        await until(lambda: _has_events(fleet, 4), fleet.logs)
        before, events = await fleet.statuses(), await fleet.events()
        version = metadata(await fleet.clusters.list())["resourceVersion"]
        first.process.end(signal.SIGTERM)
        fleet.start_controller()

        async def renewed() -> bool:
            now = await fleet.statuses()
            return all(now[name]["observedAt"] > before[name]["observedAt"] for name in before)

        await until(renewed, fleet.logs)
        seen = await _states_since(fleet, version)
        assert set(seen) == {(name, status["state"]) for name, status in before.items()}
        after = await fleet.statuses()
        for name, status in before.items():
            times = {each["type"]: each["lastTransitionTime"] for each in status["conditions"]}
            assert {each["type"]: each["lastTransitionTime"] for each in after[name]["conditions"]} == times
        assert len(await fleet.events()) == len(events)


async def _has_events(fleet: Fleet, count: int) -> bool:
    return len(await fleet.events()) >= count


async def _states_since(fleet: Fleet, version: str) -> list[tuple[str, str]]:
    """The states that a watch from a version on shows."""
    query: dict[str, str | int | bool | None] = {"watch": True, "resourceVersion": version, "timeoutSeconds": 1}
    text = await fleet.client.text(Call("GET", fleet.clusters.path(), query=query))
    events = [json.loads(line) for line in text.splitlines()]
    return [(each["object"]["metadata"]["name"], each["object"]["status"]["state"]) for each in events]


@with_members
async def test_a_standby_takes_over_at_once_from_a_leader_that_ends(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        first = fleet.start_controller()
        await first.wait_ready()
        await until(lambda: all_ready(fleet), fleet.logs)
        second = fleet.start_controller()
        await second.wait_ready()
        leader = (await fleet.lease())["holderIdentity"]
        first.process.end(signal.SIGTERM)
        assert "the controller has ended" in first.process.logged()

        async def is_another() -> bool:
            return (await fleet.lease())["holderIdentity"] not in {"", leader}

        await until(is_another, fleet.logs)
        before = await fleet.statuses()

        async def renewed() -> bool:
            return all(
                status["observedAt"] > before[name]["observedAt"] for name, status in (await fleet.statuses()).items()
            )

        await until(renewed, fleet.logs)
        assert (await fleet.lease())["leaseTransitions"] == 1


@with_members
async def test_a_registry_that_is_away_is_waited_for(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        fleet.program.stop()
        controller = fleet.start_controller()

        async def says_so() -> bool:
            return "What to do: start the registry" in controller.process.logged()

        await until(says_so, fleet.logs)
        assert (await controller.get("/readyz"))[0] == 503
        await asyncio.to_thread(fleet.program.start)
        await until(lambda: all_ready(fleet), fleet.logs)
        fleet.program.stop()
        member = fleet.simulator[0]
        member.fault = Fault.NOT_READY
        count = member.request_count
        await until(lambda: member.request_count > count + 4, fleet.logs)
        await asyncio.to_thread(fleet.program.start)

        async def is_told() -> bool:
            return shown(await fleet.status(member.name)) == ("Degraded", "NotReady")

        await until(is_told, fleet.logs)


@with_members
async def test_a_registry_without_v1beta1_is_enough(tmp_path: Path) -> None:
    flags = ["--runtime-config=clusterregistry.k8s.io/v1beta1=false"]
    async with running_fleet(tmp_path, members=1, flags=flags, version="v1alpha1") as fleet:
        fleet.start_controller()
        await until(lambda: all_ready(fleet), fleet.logs)
        assert "observedGeneration" not in condition(await fleet.status(fleet.simulator[0].name), "OK")
