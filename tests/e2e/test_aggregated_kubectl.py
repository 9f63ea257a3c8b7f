"""What users do with kubectl, through kube-apiserver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.host_clusters import ADMIN, JANE, NOBODY, HostCluster
from tests.e2e.kubectls import Kubectl
from tests.e2e.registries import Registry

pytestmark = pytest.mark.e2e

RELEASES = ("1.27", "1.36")
CLUSTERS = "clusters.clusterregistry.k8s.io"


@pytest.fixture(params=RELEASES)
def kubectl(request: pytest.FixtureRequest, host: HostCluster, registry: Registry, tmp_path: Path) -> Kubectl:  # noqa: ARG001 - it must run
    return Kubectl(request.param, host, tmp_path)


def cluster(name: str, **endpoint: str) -> dict[str, Any]:
    served = endpoint or {"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.1"}
    return {
        "apiVersion": "clusterregistry.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"kubernetesApiEndpoints": {"serverEndpoints": [served]}},
    }


def test_an_administrator_applies_gets_and_deletes(kubectl: Kubectl) -> None:
    assert kubectl.must(ADMIN, "apply", "-f", "-", document=cluster("a")).endswith("/a created\n")
    assert kubectl.must(ADMIN, "apply", "-f", "-", document=cluster("a")).endswith("/a unchanged\n")
    assert "10.0.0.1" in kubectl.must(ADMIN, "get", "clusters", "a", "-o", "wide")
    assert kubectl.must(ADMIN, "apply", "--server-side", "--force-conflicts", "-f", "-", document=cluster("a"))
    assert kubectl.must(ADMIN, "delete", "clusters", "a") == 'cluster.clusterregistry.k8s.io "a" deleted\n'
    assert kubectl.run(ADMIN, "get", "clusters", "a").err.startswith("Error from server (NotFound)")


def test_a_watch_goes_through_kube_apiserver(kubectl: Kubectl) -> None:
    with kubectl.lines(JANE, "get", "clusters", "--watch-only", "--output-watch-events", "--no-headers") as events:
        kubectl.must(ADMIN, "create", "-f", "-", document=cluster("watched"))
        kubectl.must(ADMIN, "delete", "clusters", "watched")
        # What came before the watch had begun is not in it; one of the two must be.
        kubectl.must(ADMIN, "create", "-f", "-", document=cluster("watched"))
        kubectl.must(ADMIN, "delete", "clusters", "watched")
        assert " watched " in next(events)


def test_kinds_are_explained(kubectl: Kubectl) -> None:
    text = kubectl.must(ADMIN, "explain", "clusters.spec.kubernetesApiEndpoints.serverEndpoints")
    assert "serverAddress" in text
    assert "clientCIDR" in text


def test_mistyped_fields_are_refused(kubectl: Kubectl) -> None:
    said = kubectl.run(ADMIN, "create", "-f", "-", document=cluster("b", serverAdress="10.0.0.1"))
    assert said.code != 0
    assert "serverAdress" in said.err


def test_kubectl_asks_the_host_cluster_what_users_may_do(kubectl: Kubectl) -> None:
    assert kubectl.must(JANE, "auth", "can-i", "list", CLUSTERS) == "yes\n"
    assert kubectl.run(JANE, "auth", "can-i", "delete", CLUSTERS).out == "no\n"
    assert kubectl.run(NOBODY, "auth", "can-i", "list", CLUSTERS).out == "no\n"


def test_users_may_do_what_their_roles_in_the_host_cluster_say(kubectl: Kubectl) -> None:
    kubectl.must(ADMIN, "apply", "-f", "-", document=cluster("shared"))
    assert "shared" in kubectl.must(JANE, "get", "clusters", "-o", "name")
    refused = kubectl.run(JANE, "delete", "clusters", "shared")
    assert 'User "jane" cannot delete resource "clusters"' in refused.err
    assert 'User "mallory" cannot list resource "clusters"' in kubectl.run(NOBODY, "get", "clusters").err


def test_somebody_without_a_name_gets_nothing(kubectl: Kubectl) -> None:
    assert "You must be logged in to the server" in kubectl.run("no-such-token", "get", CLUSTERS).err
