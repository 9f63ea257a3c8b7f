"""``crinit aggregated`` from beginning to end: kubectl reaches the registry through a real kube-apiserver."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.crinit.main import main
from tests.crinit.kubelets import Kubelet
from tests.crinit.test_deploy_standalone import kubectl, use_with_every_kubectl
from tests.system.e2e.host_clusters import HostCluster
from tools.processes import wait_for

pytestmark = pytest.mark.e2e

VERSIONS = ("v1beta1", "v1alpha1")


def path_to(version: str) -> str:
    return f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.clusterregistry.k8s.io"


@pytest.mark.skew("init, use, status and delete", of="crinit aggregated")
def test_a_registry_is_aggregated_used_through_its_host_and_removed(
    host: HostCluster, namespace: str, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--host-cluster-context=host", f"--kubeconfig={kubeconfig}", f"--cluster-registry-namespace={namespace}"]

    with Kubelet(host, tmp_path / "node", namespace):
        assert main(["aggregated", "init", "fleet", *where], {}) == 0, capsys.readouterr()
        said = capsys.readouterr().out
        for version in VERSIONS:
            assert f"APIService {version}.clusterregistry.k8s.io: available (" in said
        assert "kubectl get clusters --context fleet: works (" in said

        for context in ("fleet", "host"):
            use_with_every_kubectl(kubeconfig, context)

        assert main(["aggregated", "status", "fleet", *where], {}) == 0, capsys.readouterr()
        said = capsys.readouterr().out
        for version in VERSIONS:
            assert f"  ok  APIService {version}.clusterregistry.k8s.io: available" in said
        assert main(["aggregated", "delete", "fleet", *where], {}) == 0

    assert not any(host.admin.get(path_to(version)) for version in VERSIONS)
    contexts = kubectl(kubeconfig, "config", "get-contexts", "-o", "name").split()
    assert contexts == ["host"]


def test_the_registration_of_an_earlier_release_is_completed_and_follows_the_served_versions(
    host: HostCluster, namespace: str, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The release before registered v1alpha1 alone."""
    where = ["--host-cluster-context=host", f"--kubeconfig={kubeconfig}", f"--cluster-registry-namespace={namespace}"]

    def run(command: str, *flags: str, status: int = 0) -> str:
        assert main(["aggregated", command, "fleet", *where, *flags], {}) == status, capsys.readouterr()
        return capsys.readouterr().out

    def versions() -> list[str]:
        found = host.admin.get("/apis/clusterregistry.k8s.io") or {}
        return [each["version"] for each in found["versions"]]

    with Kubelet(host, tmp_path / "node", namespace):
        run("init")
        host.admin.delete(path_to("v1beta1"))
        kept = host.admin.get(path_to("v1alpha1")) or {}
        said = run("status", status=1)
        assert "!!  APIService v1beta1.clusterregistry.k8s.io: not there; repair it: crinit aggregated init" in said

        said = run("init")
        assert "APIService v1beta1.clusterregistry.k8s.io: created (" in said
        assert "APIService v1alpha1.clusterregistry.k8s.io: unchanged (" in said
        assert (host.admin.get(path_to("v1alpha1")) or {})["metadata"]["uid"] == kept["metadata"]["uid"]
        wait_for(lambda: versions() == ["v1beta1", "v1alpha1"])

        off = "--apiserver-arg-overrides=--runtime-config=clusterregistry.k8s.io/v1beta1=false"
        assert "APIService v1beta1.clusterregistry.k8s.io: deleted (" in run("init", off)
        assert "v1beta1" not in run("status")
        wait_for(lambda: versions() == ["v1alpha1"])

        assert "v1beta1" not in run("delete", "--dry-run")
        run("delete")
    assert not any(host.admin.get(path_to(version)) for version in VERSIONS)
