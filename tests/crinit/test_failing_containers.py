"""A container that ends with an error: crinit shows what it said, through the host's kube-apiserver and its node."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clusterregistry.crinit.main import main
from tests.crinit.kubelets import Kubelet
from tests.system.e2e.host_clusters import HostCluster

pytestmark = pytest.mark.e2e


def test_a_container_that_ends_is_told_with_its_log_its_events_and_what_to_do(
    host: HostCluster, namespace: str, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = kubeconfig.read_bytes()
    where = [f"--kubeconfig={kubeconfig}", f"--cluster-registry-namespace={namespace}", "--host-cluster-context=host"]
    node = ["--api-server-service-type=NodePort", "--api-server-advertise-address=127.0.0.1"]
    wrong = "--apiserver-arg-overrides=--max-request-inflight=800"

    with Kubelet(host, tmp_path / "node", namespace):
        assert main(["standalone", "init", "fleet", *where, *node, wrong], {}) == 3
        printed = capsys.readouterr()
        assert "Pods of Deployment fleet: failed (" in printed.out
        said = printed.err
        assert f"the pods of Deployment {namespace}/fleet do not come up: the server in the container" in said
        assert re.search(r"Pod fleet-\w+ \(Running\): container clusterregistry .*; it ended with status 2", said)
        assert re.search(r"Pod fleet-\w+: BackOff: Back-off restarting failed container clusterregistry", said)
        assert "log:   unknown option --max-request-inflight (did you mean --max-requests-inflight?)" in said
        assert "What to do: correct them, as the log above says, with --apiserver-arg-overrides" in said
        assert f"Made in this run, and left as it is:\n  Namespace {namespace}\n" in said
        assert f"  Deployment {namespace}/fleet\n" in said
        assert "To clean up: crinit standalone delete fleet --host-cluster-context=host" in said
        assert kubeconfig.read_bytes() == before

        assert main(["standalone", "delete", "fleet", *where], {}) == 0
