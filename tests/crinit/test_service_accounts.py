"""An aggregated registry is its pod's service account in the host cluster, found where Kubernetes mounts it.

The token is a real one of the host's kube-apiserver. When the kubelet replaces it, the registry goes on with the new
one: here first with one that is void as soon as the object to which it is bound is gone.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from clusterregistry.crinit.main import main
from tests.crinit.containers import mounting
from tests.crinit.kubelets import Kubelet
from tests.system.e2e.host_clusters import HostCluster
from tools.processes import wait_for

pytestmark = pytest.mark.e2e

CLUSTERS = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"
READERS = "readers"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_users = itertools.count(1)


def status_for_a_new_user(host: HostCluster) -> int:
    """The status that a new user gets through the host: 200 if the registry could ask the host about the user."""
    user = {"impersonate_user": f"reader-{next(_users)}", "impersonate_group": READERS}
    return host.call("GET", CLUSTERS, **user).status


def let_readers_read(host: HostCluster) -> None:
    rule = {"apiGroups": ["clusterregistry.k8s.io"], "resources": ["clusters"], "verbs": ["list"]}
    subject = {"kind": "Group", "name": READERS, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": READERS, "apiGroup": "rbac.authorization.k8s.io"}
    host.create(f"{_RBAC}/clusterroles", {"metadata": {"name": READERS}, "rules": [rule]})
    binding = {"metadata": {"name": READERS}, "subjects": [subject], "roleRef": role}
    host.create(f"{_RBAC}/clusterrolebindings", binding)


@pytest.mark.skipif(not mounting(), reason="processes may not have mounts of their own here (unshare --mount)")
def test_a_new_token_of_the_service_account_is_used_without_a_restart(
    host: HostCluster, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    where = ["--host-cluster-context=host", f"--kubeconfig={kubeconfig}", f"--cluster-registry-namespace={namespace}"]
    secrets = f"/api/v1/namespaces/{namespace}/secrets"

    let_readers_read(host)
    with Kubelet(host, tmp_path / "node", namespace) as kubelet:
        assert main(["aggregated", "init", "fleet", *where], {}) == 0
        pod = kubelet.pods["fleet"]
        assert not any("kubeconfig" in word for word in (*pod.command, *pod.environ))
        wait_for(lambda: status_for_a_new_user(host) == 200)

        secret = host.create(secrets, {"metadata": {"name": "passing"}})["metadata"]
        bound = {"apiVersion": "v1", "kind": "Secret", "name": "passing", "uid": secret["uid"]}
        kubelet.rotate("fleet", kubelet.volumes.token("fleet", bound))
        assert status_for_a_new_user(host) == 200
        host.admin.delete(f"{secrets}/passing")
        wait_for(lambda: status_for_a_new_user(host) == 503)

        described = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        kubelet.rotate("fleet", kubelet.volumes.token("fleet", described))
        wait_for(lambda: status_for_a_new_user(host) == 200)
        assert pod.restarts == 0

        assert main(["aggregated", "delete", "fleet", *where], {}) == 0
