"""Real kubectl with cluster sets, over TLS."""

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
PATIENCE = "--timeout=60s"

OBJECTS = """
apiVersion: clusterregistry.k8s.io/v1beta1
kind: Cluster
metadata: {name: oslo, labels: {env: prod}}
---
apiVersion: clusterregistry.k8s.io/v1beta1
kind: Cluster
metadata: {name: bergen, labels: {env: dev}}
---
apiVersion: clusterregistry.k8s.io/v1beta1
kind: ClusterSet
metadata: {name: prod}
spec:
  selector: {matchLabels: {env: prod}, matchExpressions: [{key: tier, operator: NotIn, values: [test, lab]}]}
  clusters: [atlantis]
---
apiVersion: clusterregistry.k8s.io/v1alpha1
kind: ClusterSet
metadata: {name: all}
spec: {selector: {}}
"""


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    """Runs kubectl on an empty registry, and gives what it prints."""
    with live_server.running(tmp_path / "server") as server:

        def run(*arguments: str, stdin: str = "", failing: bool = False) -> str:
            program = str(conformance.kubectl(conformance.QUICK_RELEASES[-1]))
            done = subprocess.run(
                [program, f"--kubeconfig={server.kubeconfig}", *arguments],
                input=stdin,
                env={**os.environ, "HOME": str(tmp_path)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode != 0) == failing, done.stderr
            return done.stderr if failing else done.stdout

        yield run


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_kubectl_makes_shows_and_explains_sets_and_waits_for_their_members(kubectl: Kubectl) -> None:
    assert "clusterset.clusterregistry.k8s.io/prod created" in kubectl("apply", "-f", "-", stdin=OBJECTS)
    kubectl("wait", "--for=condition=ClustersFound=False", "clusterset/prod", PATIENCE)
    kubectl("wait", "--for=jsonpath={.status.clusters}=2", "cset/all", PATIENCE)
    header, *rows = lines(kubectl("get", "clustersets"))
    assert header == ["NAME", "CLUSTERS", "AGE"]
    assert [row[:2] for row in rows] == [["all", "2"], ["prod", "1"]]
    header, *rows = lines(kubectl("get", "cset", "-o=wide"))
    assert header == ["NAME", "CLUSTERS", "AGE", "SELECTOR"]
    assert rows[1][3:] == ["env=prod,tier", "notin", "(lab,test)"]
    kubectl("label", "cluster", "bergen", "env=prod", "--overwrite")
    kubectl("wait", "--for=jsonpath={.status.clusters}=2", "clusterset/prod", PATIENCE)
    kubectl("create", "-f", "-", stdin=OBJECTS.split("---", maxsplit=1)[0].replace("oslo", "atlantis"))
    kubectl("wait", "--for=condition=ClustersFound", "clusterset/prod", PATIENCE)
    described = kubectl("describe", "clusterset", "prod")
    assert "All clusters that spec.clusters names exist." in described
    assert "Match Labels" in described
    assert "label selector" not in kubectl("explain", "clusterset.spec.clusters")
    explained = kubectl("explain", "cset.spec.selector.matchExpressions")
    assert "operator\t<string> -required-" in explained
    kubectl("delete", "clusterset", "prod")
    assert [row[0] for row in lines(kubectl("get", "cset", "--no-headers"))] == ["all"]


def test_kubectl_applies_a_set_again_and_shows_what_is_wrong(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=OBJECTS)
    changed = OBJECTS.replace("atlantis", "oslo, bergen")
    kubectl("apply", "--server-side", "-f", "-", stdin=changed)
    kubectl("wait", "--for=jsonpath={.status.clusters}=2", "clusterset/prod", PATIENCE)
    wrong = OBJECTS.replace("NotIn", "Gt").replace("atlantis", "Atlantis")
    message = kubectl("apply", "--server-side", "-f", "-", stdin=wrong, failing=True)
    assert "spec.clusters[0]" in message
    assert "not a valid selector operator" in message
