"""Real kubectl in both versions of clusters."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools import conformance, live_server

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="the kubectl programs are for linux/amd64"
)

Kubectl = Callable[..., str]
OLD = "clusters.v1alpha1.clusterregistry.k8s.io"

BETA = """
apiVersion: clusterregistry.k8s.io/v1beta1
kind: Cluster
metadata: {name: oslo}
spec:
  kubernetesApiEndpoints: {serverEndpoints: [{serverAddress: oslo.example.com}]}
  authInfo: {providers: [{name: corp, type: files}]}
  location: {region: north, latitude: 59.91, longitude: "10.75"}
"""
ALPHA = """
apiVersion: clusterregistry.k8s.io/v1alpha1
kind: Cluster
metadata: {name: oslo}
spec: {cloudProvider: {name: metal}}
"""
STATUS = '{"status": {"state": "Ready", "observedAt": "2020-01-01T00:00:00Z", "version": {"kubernetes": "v1.36.4"}}}'


@pytest.fixture(params=conformance.QUICK_RELEASES)
def kubectl(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kubectl]:
    """Runs a release of kubectl on an empty registry, and gives what it prints."""
    with live_server.running(tmp_path / "server") as server:

        def run(*arguments: str, stdin: str = "") -> str:
            done = subprocess.run(
                [str(conformance.kubectl(request.param)), f"--kubeconfig={server.kubeconfig}", *arguments],
                input=stdin,
                env={**os.environ, "HOME": str(tmp_path)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        yield run


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_kubectl_sees_one_cluster_in_both_versions(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=BETA) == "cluster.clusterregistry.k8s.io/oslo created\n"
    header, (*row, _age) = lines(kubectl("get", "clusters"))
    assert header == ["NAME", "STATE", "VERSION", "NODES", "SERVER", "SEEN", "AGE"]
    assert row == ["oslo", "oslo.example.com"]
    kubectl("patch", "cluster", "oslo", "--subresource=status", "--type=merge", "-p", STATUS)
    _, row = lines(kubectl("get", "clusters", "--field-selector=status.state=Ready"))
    assert row[:4] == ["oslo", "Ready", "v1.36.4", "oslo.example.com"]
    assert row[4].endswith(("y", "d"))
    header, row = lines(kubectl("get", OLD))
    assert header == ["NAME", "OK", "VERSION", "NODES", "SERVER", "AGE"]
    assert row[:3] == ["oslo", "v1.36.4", "oslo.example.com"]
    assert kubectl("get", "cluster", "oslo", "-o=jsonpath={.spec.authInfo.providers[0].type}") == "files"
    assert kubectl("get", OLD, "oslo", "-o=jsonpath={.spec.authInfo.providers[0].type.name}") == "files"


def test_kubectl_applies_in_both_versions(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=BETA)
    kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=ALPHA)
    kubectl("label", OLD, "oslo", "env=prod")
    read = kubectl(
        "get", "cluster", "oslo", "-o=jsonpath={.spec.location} {.spec.cloudProvider.name} {.metadata.labels}"
    )
    assert read == '{"latitude":59.91,"longitude":"10.75","region":"north"} metal {"env":"prod"}'
    assert kubectl("apply", "--server-side", "-f", "-", stdin=BETA).endswith("serverside-applied\n")
    assert kubectl("diff", "--server-side", "-f", "-", stdin=BETA) == ""
    old = kubectl("get", OLD, "oslo", "-o=yaml")
    assert kubectl("replace", "-f", "-", stdin=old) == "cluster.clusterregistry.k8s.io/oslo replaced\n"
    assert "10.75" in kubectl("get", "cluster", "oslo", "-o=jsonpath={.spec.location.longitude}")


def test_kubectl_applies_on_the_client_in_one_version_after_the_other(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BETA)
    kubectl("apply", "-f", "-", stdin=ALPHA)
    shown = kubectl("get", "cluster", "oslo", "-o=jsonpath={.spec.cloudProvider.name} {.spec.location.region}")
    assert shown == "metal north"
    kubectl("apply", "-f", "-", stdin=BETA)
    assert kubectl("get", "cluster", "oslo", "-o=jsonpath={.spec.location.latitude}") == "59.91"


def test_kubectl_explains_both_versions(kubectl: Kubectl) -> None:
    assert "latitude" in kubectl("explain", "cluster.spec.location")
    assert "observedGeneration" in kubectl("explain", "cluster.status.conditions")
    old = kubectl("explain", "cluster.status.conditions", "--api-version=clusterregistry.k8s.io/v1alpha1")
    assert "lastHeartbeatTime" in old
    assert "observedGeneration" not in old
