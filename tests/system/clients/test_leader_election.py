"""client-go's leader election: candidates of one Lease, which tell of themselves by events."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster
from tests.system.clients import servers
from tests.system.clients.conftest import StartClient
from tests.system.clients.go_clients import JSON, PROTOBUF
from tests.system.clients.servers import Ours, Server
from tools.processes import wait_for

CANDIDATE = [
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]
"""The rights that operators give to what leads by a Lease."""


def lease(server: Server, namespace: str, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = server.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")["spec"]
    return spec


def messages(server: Server, namespace: str, name: str) -> list[str]:
    """What the events of a Lease say, in their order."""
    selector = quote(f"involvedObject.kind=Lease,involvedObject.name={name},reason=LeaderElection")
    items = server.get(f"/api/v1/namespaces/{namespace}/events?fieldSelector={selector}")["items"]
    return [each["message"] for each in sorted(items, key=lambda each: int(each["metadata"]["resourceVersion"]))]


@pytest.mark.parametrize(("release", "content_type"), [("0.36", PROTOBUF), ("0.36", JSON), ("0.28", PROTOBUF)])
def test_a_second_candidate_leads_when_the_first_is_killed(
    server: Server, start: StartClient, release: str, content_type: str
) -> None:
    namespace = server.namespace_for("killed", release, "json" if content_type == JSON else "protobuf")
    server.allow(CANDIDATE, namespace=namespace)
    flags = f"--namespace={namespace}", "--name=leader", f"--content-type={content_type}"
    first = start(release, "elect", server.user_kubeconfig, "--identity=first", *flags)
    first.expect("leads", identity="first")
    second = start(release, "elect", server.user_kubeconfig, "--identity=second", *flags)
    second.expect("leader", identity="first")
    wait_for(lambda: messages(server, namespace, "leader") == ["first became leader"], first.logged)

    first.kill()
    second.expect("leads", identity="second")
    spec = lease(server, namespace, "leader")
    assert (spec["holderIdentity"], spec["leaseTransitions"], spec["leaseDurationSeconds"]) == ("second", 1, 5)
    assert spec["acquireTime"] <= spec["renewTime"]
    expected = ["first became leader", "second became leader"]
    wait_for(lambda: messages(server, namespace, "leader") == expected, second.logged)
    assert {line["type"] for line in second.seen("response")} == {content_type}


@NEEDS_ETCD
@pytest.mark.skipif(bool(servers.AGAINST), reason="the replicas are ours")
def test_candidates_of_two_replicas_have_one_leader(start: StartClient, tmp_path: Path) -> None:
    with EtcdCluster(tmp_path) as etcd, ExitStack() as stack:
        flags = "--etcd-servers", ",".join(etcd.endpoints)
        one, two = (stack.enter_context(Ours(tmp_path / name, *flags)) for name in ("one", "two"))
        namespace = one.namespace_for("replicas")
        first = start("0.36", "elect", one.admin_kubeconfig, "--identity=first", f"--namespace={namespace}", "--name=a")
        first.expect("leads")
        second = start(
            "0.36", "elect", two.admin_kubeconfig, "--identity=second", f"--namespace={namespace}", "--name=a"
        )
        second.expect("leader", identity="first")
        assert first.stop() == 0
        second.expect("leads")
        third = start("0.36", "elect", one.admin_kubeconfig, "--identity=third", f"--namespace={namespace}", "--name=a")
        third.expect("leader", identity="second")
        second.kill()
        third.expect("leads")
        assert lease(two, namespace, "a")["holderIdentity"] == "third"
        assert one.failed_requests() + two.failed_requests() == []


def test_a_leader_that_stops_makes_room_at_once(server: Server, start: StartClient, release: str) -> None:
    namespace = server.namespace_for("stopped", release)
    server.allow(CANDIDATE, namespace=namespace)
    # So long that a successor can only lead because the Lease was given up.
    flags = f"--namespace={namespace}", "--name=leader", "--lease=300s"
    first = start(release, "elect", server.user_kubeconfig, "--identity=first", *flags)
    first.expect("leads", identity="first")
    # A leader renews its Lease at once, and then waits: to stop it in a renewal could have it give up in vain.
    wait_for(
        lambda: lease(server, namespace, "leader")["renewTime"] > lease(server, namespace, "leader")["acquireTime"]
    )
    assert first.stop() == 0
    spec = lease(server, namespace, "leader")
    assert (spec.get("holderIdentity", ""), spec["leaseTransitions"]) == ("", 0)
    wait_for(
        lambda: messages(server, namespace, "leader") == ["first became leader", "first stopped leading"], first.logged
    )

    second = start(release, "elect", server.user_kubeconfig, "--identity=second", *flags)
    second.expect("leads", identity="second")
    assert lease(server, namespace, "leader")["leaseTransitions"] == 1


def test_a_leader_leads_on_after_a_restart_of_the_server(server: Server, start: StartClient) -> None:
    namespace = server.namespace_for("restarted")
    flags = f"--namespace={namespace}", "--name=leader", "--lease=60s"
    leader = start("0.36", "elect", server.admin_kubeconfig, "--identity=leader", *flags)
    leader.expect("leads")
    renewed = lease(server, namespace, "leader")["renewTime"]
    server.restart()
    wait_for(lambda: lease(server, namespace, "leader")["renewTime"] > renewed, leader.logged)
    assert lease(server, namespace, "leader")["leaseTransitions"] == 0
    assert not leader.seen("stopped")


def test_a_candidate_without_rights_never_leads(server: Server, start: StartClient) -> None:
    namespace = server.namespace_for("no-rights")
    flags = f"--namespace={namespace}", "--name=leader"
    candidate = start("0.36", "elect", server.user_kubeconfig, "--identity=nobody", *flags)
    wait_for(lambda: "is forbidden" in candidate.logged(), candidate.logged)
    assert not server.has(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/leader")
