"""``crinit standalone`` from beginning to end, against a real kube-apiserver."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest

from clusterregistry.client.kubeconfig import read_document
from clusterregistry.crinit.main import main
from tests.crinit.kubelets import Kubelet
from tests.crinit.volumes import ROOT_AUTHORITY
from tests.system.e2e import real_programs
from tests.system.e2e.host_clusters import HostCluster
from tests.system.e2e.real_programs import KUBECTLS

pytestmark = pytest.mark.e2e

_PLURALS = {
    "apis/apps/v1": ("deployments",),
    "apis/networking.k8s.io/v1": ("networkpolicies",),
    "api/v1": ("services", "secrets", "configmaps"),
}
CLUSTER = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "c1"}}


def kubectl(kubeconfig: Path, *arguments: str, stdin: str = "", release: str = KUBECTLS[-1]) -> str:
    command = [
        str(real_programs.kubectl(release)),
        f"--kubeconfig={kubeconfig}",
        f"--cache-dir={kubeconfig.parent}/cache",
    ]
    done = subprocess.run([*command, *arguments], input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def use_with_every_kubectl(kubeconfig: Path, context: str) -> None:
    for release in KUBECTLS:
        kubectl(kubeconfig, f"--context={context}", "apply", "-f", "-", stdin=json.dumps(CLUSTER), release=release)
        assert "c1" in kubectl(kubeconfig, f"--context={context}", "get", "clusters", release=release)


def entry(kubeconfig: Path, plural: str, name: str) -> dict[str, object]:
    document = read_document(kubeconfig) or {}
    return next(each for each in document[plural] if each["name"] == name)


@pytest.mark.skew("init, use, repair, upgrade, status and delete", of="crinit standalone")
def test_a_registry_is_deployed_repaired_upgraded_and_deleted(
    host: HostCluster, namespace: str, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--host-cluster-context=host", f"--kubeconfig={kubeconfig}", f"--cluster-registry-namespace={namespace}"]
    node = ["--api-server-service-type=NodePort", "--api-server-advertise-address=127.0.0.1"]
    secret = f"/api/v1/namespaces/{namespace}/secrets/fleet-credentials"
    kubeconfig.chmod(0o644)

    with Kubelet(host, tmp_path / "node", namespace) as kubelet:
        assert main(["standalone", "init", "fleet", *where, *node, "--apiserver-enable-token-auth"], {}) == 0, (
            capsys.readouterr()
        )
        said = capsys.readouterr().out
        assert f"Deployment {namespace}/fleet: created (" in said
        assert f"Context fleet in {kubeconfig}: written, and now readable by its owner only (" in said
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        assert "kubectl get clusters --context fleet: works (" in said

        use_with_every_kubectl(kubeconfig, "fleet")
        written = kubeconfig.read_bytes()
        credentials = (host.admin.get(secret) or {})["data"]
        first = kubelet.pods["fleet"].name

        # A second init needs no flags again, changes nothing, and gives nobody new credentials.
        assert main(["standalone", "init", "fleet", *where], {}) == 0
        said = capsys.readouterr().out
        assert ": created" not in said
        assert ": updated" not in said
        assert kubeconfig.read_bytes() == written

        # A broken object is repaired.
        host.admin.delete(f"/api/v1/namespaces/{namespace}/serviceaccounts/fleet")
        assert main(["standalone", "init", "fleet", *where], {}) == 0
        assert f"ServiceAccount {namespace}/fleet: created" in capsys.readouterr().out

        assert main(["standalone", "upgrade", "fleet", *where, "--image=registry.example.com/cr:2"], {}) == 0
        assert kubelet.pods["fleet"].name != first
        assert (host.admin.get(secret) or {})["data"] == credentials
        assert "c1" in kubectl(kubeconfig, "--context=fleet", "get", "clusters")
        capsys.readouterr()

        # Policies that are not wanted any more are gone.
        policy = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/fleet"
        assert host.admin.get(policy)
        assert main(["standalone", "init", "fleet", *where, "--network-policy=false"], {}) == 0
        assert f"NetworkPolicy {namespace}/fleet: deleted (" in capsys.readouterr().out
        assert host.admin.get(policy) is None
        assert main(["standalone", "init", "fleet", *where, "--network-policy"], {}) == 0
        assert host.admin.get(policy)
        capsys.readouterr()

        assert main(["standalone", "status", "fleet", *where], {}) == 0
        printed = capsys.readouterr().out
        assert "fleet: 1 of 1 pods ready, image registry.example.com/cr:2" in printed
        assert "!!" not in printed

        assert main(["standalone", "delete", "fleet", *where], {}) == 0

    left = [
        item["metadata"]["name"]
        for path in _PLURALS
        for plural in _PLURALS[path]
        for item in host.admin.items(f"/{path}/namespaces/{namespace}/{plural}")
    ]
    assert set(left) <= {ROOT_AUTHORITY}
    document = read_document(kubeconfig) or {}
    assert [each["name"] for each in document["contexts"]] == ["host"]
    assert [each["name"] for each in document["clusters"]] == ["host", "other"]


def test_status_of_what_is_not_there_says_how_to_deploy_it(
    namespace: str, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--host-cluster-context=host", f"--kubeconfig={kubeconfig}", f"--cluster-registry-namespace={namespace}"]
    assert main(["standalone", "status", "fleet", *where], {}) == 3
    assert "What to do: deploy it: crinit standalone init fleet --host-cluster-context=host" in capsys.readouterr().err
