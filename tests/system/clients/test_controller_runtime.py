"""controller-runtime: managers that lead one after the other, and a controller of clusters as operators write it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.system.clients import servers
from tests.system.clients.conftest import StartClient
from tests.system.clients.servers import CLUSTERS, Server
from tools.processes import wait_for

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}"
LEADER_ELECTION_ROLE = [
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
    },
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
]
MANAGER_ROLE = [
    {
        "apiGroups": ["clusterregistry.k8s.io"],
        "resources": ["clusters"],
        "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
    },
    {"apiGroups": ["clusterregistry.k8s.io"], "resources": ["clusters/finalizers"], "verbs": ["update"]},
    {"apiGroups": ["clusterregistry.k8s.io"], "resources": ["clusters/status"], "verbs": ["get", "update", "patch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]
"""What kubebuilder makes for an operator: a role in its own namespace, and one for its kind."""


def cluster(name: str) -> dict[str, Any]:
    return {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}}


def events_of(server: Server, name: str) -> list[str]:
    selector = quote(f"involvedObject.kind=Cluster,involvedObject.name={name}")
    items = server.get(f"/api/v1/namespaces/default/events?fieldSelector={selector}")["items"]
    return [each["reason"] for each in items]


@pytest.fixture
def namespace(server: Server, release: str) -> str:
    made = server.namespace_for("manager", release)
    server.allow(LEADER_ELECTION_ROLE, namespace=made)
    server.allow(MANAGER_ROLE)
    return made


def test_managers_lead_one_after_the_other_and_reconcile(
    server: Server, start: StartClient, release: str, namespace: str
) -> None:
    flags = f"--namespace={namespace}", "--name=manager"
    first = start(release, "manage", server.user_kubeconfig, "--identity=first", *flags)
    first.expect("leads")
    second = start(release, "manage", server.user_kubeconfig, "--identity=second", *flags)
    second.expect("candidate")

    one, two = (f"{place}-{release.replace('.', '-')}" for place in ("one", "two"))
    uid = server.create(CLUSTERS, cluster(one))["metadata"]["uid"]
    first.expect("reconciled", name=one)
    found = server.get(f"{CLUSTERS}/{one}")
    assert found["metadata"]["finalizers"] == ["example.com/manager"]
    assert [(each["type"], each["status"]) for each in found["status"]["conditions"]] == [("OK", "True")]
    lease = server.get(LEASES.format(namespace, one))
    assert lease["spec"]["holderIdentity"] == uid
    (owner,) = lease["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (
        "Cluster",
        uid,
        True,
        True,
    )
    wait_for(lambda: events_of(server, one) == ["Observed"], first.logged)

    # What the cluster owns comes back: the manager watches it in its namespace.
    server.delete(LEASES.format(namespace, one))
    first.expect("lease", name=one, result="created")
    first.expect("lease", name=one, result="created")

    first.kill()
    second.expect("leads")
    server.create(CLUSTERS, cluster(two))
    second.expect("reconciled", name=two)
    server.delete(f"{CLUSTERS}/{one}")
    second.expect("released", name=one)
    wait_for(lambda: not server.has(f"{CLUSTERS}/{one}"))
    if not servers.AGAINST:  # that takes kube-controller-manager
        wait_for(lambda: not server.has(LEASES.format(namespace, one)))
    assert server.get(LEASES.format(namespace, "manager"))["spec"]["leaseTransitions"] == 1
    assert second.stop() == 0
    assert server.get(LEASES.format(namespace, "manager"))["spec"].get("holderIdentity", "") == ""
