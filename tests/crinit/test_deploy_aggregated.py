"""``crinit aggregated`` from beginning to end: kubectl reaches the registry through a real kube-apiserver."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.crinit.main import main
from tests.crinit.kubelets import Kubelet
from tests.crinit.test_deploy_standalone import kubectl, use_with_every_kubectl
from tests.system.e2e.host_clusters import HostCluster

pytestmark = pytest.mark.e2e


@pytest.mark.skew("init, use, status and delete", of="crinit aggregated")
def test_a_registry_is_aggregated_used_through_its_host_and_removed(
    host: HostCluster, namespace: str, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--host-cluster-context=host", f"--kubeconfig={kubeconfig}", f"--cluster-registry-namespace={namespace}"]

    with Kubelet(host, tmp_path / "node", namespace):
        assert main(["aggregated", "init", "fleet", *where], {}) == 0, capsys.readouterr()
        said = capsys.readouterr().out
        assert "APIService v1alpha1.clusterregistry.k8s.io: available (" in said
        assert "kubectl get clusters --context fleet: works (" in said

        for context in ("fleet", "host"):
            use_with_every_kubectl(kubeconfig, context)

        assert main(["aggregated", "status", "fleet", *where], {}) == 0, capsys.readouterr()
        assert "APIService: available" in capsys.readouterr().out
        assert main(["aggregated", "delete", "fleet", *where], {}) == 0

    assert host.admin.get("/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.clusterregistry.k8s.io") is None
    contexts = kubectl(kubeconfig, "config", "get-contexts", "-o", "name").split()
    assert contexts == ["host"]
