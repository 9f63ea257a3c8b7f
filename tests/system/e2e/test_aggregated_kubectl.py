"""What users do with kubectl, through kube-apiserver."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.system.e2e.host_clusters import ADMIN, JANE, NOBODY, HostCluster
from tests.system.e2e.kubectls import Kubectl
from tests.system.e2e.real_programs import KUBECTLS

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("registry")]

CLUSTERS = "clusters.clusterregistry.k8s.io"
BY_VERSION = {version: f"clusters.{version}.clusterregistry.k8s.io" for version in ("v1beta1", "v1alpha1")}


@pytest.fixture(params=KUBECTLS)
def kubectl(request: pytest.FixtureRequest, host: HostCluster, tmp_path: Path) -> Kubectl:
    """Each release in turn: for what kubectl itself has a part in."""
    return Kubectl(request.param, host, tmp_path)


@pytest.fixture
def newest(host: HostCluster, tmp_path: Path) -> Kubectl:
    """For what the servers decide, with any kubectl."""
    return Kubectl(KUBECTLS[-1], host, tmp_path)


def cluster(name: str, **endpoint: str) -> dict[str, Any]:
    served = endpoint or {"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.1"}
    return {
        "apiVersion": "clusterregistry.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"kubernetesApiEndpoints": {"serverEndpoints": [served]}},
    }


@pytest.mark.skew("apply (also server-side), get and delete")
def test_an_administrator_applies_gets_and_deletes(kubectl: Kubectl) -> None:
    assert kubectl.must(ADMIN, "apply", "-f", "-", document=cluster("a")).endswith("/a created\n")
    assert kubectl.must(ADMIN, "apply", "-f", "-", document=cluster("a")).endswith("/a unchanged\n")
    assert "10.0.0.1" in kubectl.must(ADMIN, "get", "clusters", "a", "-o", "wide")
    assert kubectl.must(ADMIN, "apply", "--server-side", "--force-conflicts", "-f", "-", document=cluster("a"))
    assert kubectl.must(ADMIN, "delete", "clusters", "a") == 'cluster.clusterregistry.k8s.io "a" deleted\n'
    assert kubectl.run(ADMIN, "get", "clusters", "a").err.startswith("Error from server (NotFound)")


@pytest.mark.skew("get --watch")
def test_a_watch_goes_through_kube_apiserver(kubectl: Kubectl) -> None:
    kubectl.must(ADMIN, "create", "-f", "-", document=cluster("watched"))
    with kubectl.lines(JANE, "get", "clusters", "--watch", "--output-watch-events", "--no-headers") as lines:
        events = (line.split() for line in lines if " watched " in line)
        assert next(events)[0] == "ADDED"
        # A kubectl that has printed the first event watches from there on.
        kubectl.must(ADMIN, "delete", "clusters", "watched")
        assert next(events)[0] == "DELETED"


def test_clusters_are_listed_in_the_preferred_version_and_in_the_one_that_is_asked_for(kubectl: Kubectl) -> None:
    kubectl.must(ADMIN, "apply", "-f", "-", document=cluster("both"))
    preferred = kubectl.must(JANE, "get", "clusters")
    assert preferred.split()[:7] == ["NAME", "STATE", "VERSION", "NODES", "SERVER", "SEEN", "AGE"]
    assert kubectl.must(JANE, "get", BY_VERSION["v1beta1"]).split()[:7] == preferred.split()[:7]
    asked_for = kubectl.must(JANE, "get", BY_VERSION["v1alpha1"])
    assert asked_for.split()[:6] == ["NAME", "OK", "VERSION", "NODES", "SERVER", "AGE"]
    for version, plural in BY_VERSION.items():
        found = kubectl.must(JANE, "get", plural, "both", "-o", "jsonpath={.apiVersion}")
        assert found == f"clusterregistry.k8s.io/{version}"
    kubectl.must(ADMIN, "delete", "clusters", "both")


def test_a_change_is_seen_by_the_watches_of_both_versions(newest: Kubectl) -> None:
    newest.must(ADMIN, "create", "-f", "-", document=cluster("seen"))
    shown = ["--watch", "--output-watch-events", "-o", "jsonpath={.type} {.object.apiVersion}{'\\n'}"]
    with ExitStack() as stack:
        watches = {
            version: stack.enter_context(newest.lines(JANE, "get", plural, "seen", *shown))
            for version, plural in BY_VERSION.items()
        }
        for version, lines in watches.items():
            assert next(lines) == f"ADDED clusterregistry.k8s.io/{version}"
        newest.must(ADMIN, "label", BY_VERSION["v1alpha1"], "seen", "stage=test")
        newest.must(ADMIN, "delete", "clusters", "seen")
        for version, lines in watches.items():
            assert next(lines) == f"MODIFIED clusterregistry.k8s.io/{version}"
            assert next(lines) == f"DELETED clusterregistry.k8s.io/{version}"


def test_each_version_is_explained_as_it_is(kubectl: Kubectl) -> None:
    assert "region" in kubectl.must(ADMIN, "explain", "clusters.spec.location")
    version = "--api-version=clusterregistry.k8s.io/v1alpha1"
    assert "location" not in kubectl.must(ADMIN, "explain", "clusters.spec", version)


@pytest.mark.skew("explain")
def test_kinds_are_explained(kubectl: Kubectl) -> None:
    text = kubectl.must(ADMIN, "explain", "clusters.spec.kubernetesApiEndpoints.serverEndpoints")
    assert "serverAddress" in text
    assert "clientCIDR" in text


@pytest.mark.skew("refusal of mistyped fields")
def test_mistyped_fields_are_refused(kubectl: Kubectl) -> None:
    said = kubectl.run(ADMIN, "create", "-f", "-", document=cluster("b", serverAdress="10.0.0.1"))
    assert said.code != 0
    assert "serverAdress" in said.err


@pytest.mark.skew("auth can-i")
def test_kubectl_asks_the_host_cluster_what_users_may_do(kubectl: Kubectl) -> None:
    assert kubectl.must(JANE, "auth", "can-i", "list", CLUSTERS) == "yes\n"
    assert kubectl.run(JANE, "auth", "can-i", "delete", CLUSTERS).out == "no\n"
    assert kubectl.run(NOBODY, "auth", "can-i", "list", CLUSTERS).out == "no\n"


def test_users_may_do_what_their_roles_in_the_host_cluster_say(newest: Kubectl) -> None:
    newest.must(ADMIN, "apply", "-f", "-", document=cluster("shared"))
    assert "shared" in newest.must(JANE, "get", "clusters", "-o", "name")
    refused = newest.run(JANE, "delete", "clusters", "shared")
    assert 'User "jane" cannot delete resource "clusters"' in refused.err
    assert 'User "mallory" cannot list resource "clusters"' in newest.run(NOBODY, "get", "clusters").err


def test_an_unknown_token_is_refused(newest: Kubectl) -> None:
    assert "You must be logged in to the server" in newest.run("no-such-token", "get", CLUSTERS).err
