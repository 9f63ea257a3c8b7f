"""The client against a real kube-apiserver, which `make e2e` runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from clusterregistry.client.informer import Informer
from clusterregistry.client.leader_election import LEASES, LeaderElectionConfig, LeaderElector, LeadershipLostError
from clusterregistry.client.rest import Client, GroupVersionResource, PatchType, WriteOptions
from clusterregistry.client.rest_config import Pem, RestConfig
from tests.client.candidates import candidate, forever
from tests.client.fake_clock import until
from tests.client.hostile_servers import AGENT
from tests.system.e2e.host_clusters import ADMIN, HostCluster

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def host_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostCluster]:
    with HostCluster(tmp_path_factory.mktemp("host")) as started:
        yield started


@pytest.fixture
async def kube(host_cluster: HostCluster) -> AsyncIterator[Client]:
    config = RestConfig(
        server=host_cluster.url,
        user_agent=AGENT,
        certificate_authority=Pem(file=host_cluster.serving.file),
        token=ADMIN,
    )
    async with Client(config) as client:
        yield client


def real(kube: Client, name: str, identity: str) -> LeaderElector:
    config = LeaderElectionConfig(name=name, identity=identity, lease_duration=3, renew_deadline=2, retry_period=0.3)
    return LeaderElector(kube.resource(LEASES, namespace="default"), config)


async def test_candidates_of_a_real_kube_apiserver_lead_one_after_the_other(kube: Client) -> None:
    electors = [real(kube, "one-after-the-other", f"candidate-{number}") for number in range(3)]
    tasks = [asyncio.create_task(each.run(forever)) for each in electors]
    order: list[int] = []
    for _ in electors:
        await until(lambda: any(each.is_leader for each in electors))
        (leading,) = [number for number, each in enumerate(electors) if each.is_leader]
        order.append(leading)
        await asyncio.sleep(1)
        tasks[leading].cancel()
        await asyncio.gather(tasks[leading], return_exceptions=True)
    assert sorted(order) == [0, 1, 2]
    lease = await kube.resource(LEASES, namespace="default").get("one-after-the-other")
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("", 2)


async def test_a_lease_on_a_real_kube_apiserver_outlives_its_restart(kube: Client, host_cluster: HostCluster) -> None:
    one = real(kube, "restart", "one")
    async with candidate(one) as leading:
        await until(lambda: one.is_leader)
        await asyncio.to_thread(host_cluster.go_away)
        with pytest.raises(LeadershipLostError):  # a restart takes longer than this lease
            await leading
        await asyncio.to_thread(host_cluster.start)
    two = real(kube, "restart", "two")
    async with candidate(two):
        await until(lambda: two.is_leader)


async def test_an_informer_follows_a_real_kube_apiserver(kube: Client) -> None:
    configmaps = kube.resource(GroupVersionResource("", "v1", "configmaps"), namespace="default")
    informer = Informer(configmaps)
    task = asyncio.create_task(informer.run())
    async with asyncio.timeout(30):
        await informer.wait_synced()
        await configmaps.create({"metadata": {"name": "followed"}, "data": {"a": "1"}})
        await until(lambda: "default/followed" in informer.store)
        await configmaps.delete("followed")
        await until(lambda: "default/followed" not in informer.store)
    assert informer._streams
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_verbs_of_a_real_kube_apiserver(kube: Client) -> None:
    configmaps = kube.resource(GroupVersionResource("", "v1", "configmaps"), namespace="default")
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "verbs"}, "data": {"a": "1"}}
    await configmaps.apply(applied, WriteOptions(field_manager="tests"))
    for patch, patch_type in (
        ({"data": {"b": "2"}}, PatchType.MERGE),
        ({"data": {"c": "3"}}, PatchType.STRATEGIC_MERGE),
        ([{"op": "add", "path": "/data/d", "value": "4"}], PatchType.JSON),
    ):
        await configmaps.patch("verbs", patch, patch_type=patch_type)
    assert (await configmaps.get("verbs"))["data"] == {"a": "1", "b": "2", "c": "3", "d": "4"}
    everywhere = await kube.resource(configmaps.gvr).list_all(page_size=1)
    assert "verbs" in {obj["metadata"]["name"] for obj in everywhere["items"]}
    await configmaps.delete("verbs")
