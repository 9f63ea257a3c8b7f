"""The Helm chart, installed and upgraded by a real Helm in a host cluster: the registry runs, credentials stay."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from clusterregistry.client.kubeconfig import Context
from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host.client import Client
from clusterregistry.crinit.main import main
from tests.crinit import networks
from tests.crinit.kubelets import Kubelet
from tests.crinit.test_chart import CHART, PLACED
from tests.crinit.test_deploy_standalone import kubectl
from tests.system.e2e import real_programs
from tests.system.e2e.host_clusters import HostCluster
from tests.system.e2e.real_programs import HELM_PROGRAM
from tools import programs
from tools.processes import wait_for

pytestmark = pytest.mark.e2e

CLUSTERS = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"


def helm(kubeconfig: Path, namespace: str, *arguments: str) -> str:
    program = programs.fetch(programs.find(HELM_PROGRAM))
    home = {f"HELM_{name}_HOME": str(kubeconfig.parent / "helm") for name in ("CACHE", "CONFIG", "DATA")}
    done = subprocess.run(
        [program, *arguments, "--kubeconfig", kubeconfig, "--namespace", namespace],
        env={**os.environ, **home},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def follow(notes: str, kubeconfig: Path) -> str:
    """Runs the commands of the notes as they are printed, with a kubectl that reaches the host cluster."""
    home = kubeconfig.parent
    (home / "bin").mkdir(exist_ok=True)
    (home / "bin" / "kubectl").symlink_to(real_programs.kubectl(real_programs.KUBECTLS[-1]))
    commands = [line for line in notes.partition("NOTES:")[2].splitlines() if line.startswith("  ")]
    environ = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(home), "KUBECONFIG": str(kubeconfig)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
        env=environ, cwd=home, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_notes_of_a_standalone_registry_lead_to_its_clusters(
    host: HostCluster, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    if not networks.may_balance():
        pytest.skip("a load balancer takes the right to listen on port 443")
    with Kubelet(host, tmp_path / "node", namespace):
        notes = helm(kubeconfig, namespace, "install", "fleet", str(CHART), "--create-namespace")
        service = f"/api/v1/namespaces/{namespace}/services/fleet"
        wait_for(lambda: bool((host.admin.get(service) or {})["status"]["loadBalancer"].get("ingress")))
        said = follow(notes, kubeconfig)
        assert "No resources found" in said
        assert "clusterrolebinding.rbac.authorization.k8s.io/jane-reads-clusters created" in said
        assert f"Ready: https://fleet.{namespace}.svc:8443" in said
        written = kubeconfig.parent / "fleet.kubeconfig"
        assert stat.S_IMODE(written.stat().st_mode) == 0o600
        assert kubectl(written, "auth", "can-i", "list", "clusters", "--as=jane") == "yes\n"
        helm(kubeconfig, namespace, "uninstall", "fleet")


def test_the_notes_of_an_aggregated_registry_lead_to_its_clusters(
    host: HostCluster, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    with Kubelet(host, tmp_path / "node", namespace):
        given = ["--create-namespace", "--set=mode=aggregated"]
        said = follow(helm(kubeconfig, namespace, "install", "fleet", str(CHART), *given), kubeconfig)
        for version in ("v1beta1", "v1alpha1"):
            assert f"apiservice.apiregistration.k8s.io/{version}.clusterregistry.k8s.io condition met" in said
        assert "No resources found" in said
        assert kubectl(kubeconfig, "auth", "can-i", "list", "clusters", "--as=jane") == "yes\n"
        kubectl(kubeconfig, "delete", "clusterrole/cluster-reader", "clusterrolebinding/jane-reads-clusters")
        helm(kubeconfig, namespace, "uninstall", "fleet")


@pytest.mark.parametrize("mode", ["standalone", "aggregated"])
def test_what_the_values_can_ask_for_is_accepted_by_a_host_cluster(
    mode: str, host: HostCluster, namespace: str, kubeconfig: Path
) -> None:
    """With each field known to it: a dry run that refuses what it does not know."""
    host.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    values = {
        **PLACED,
        "mode": mode,
        "replicas": 3,
        "imagePullSecrets": [{"name": "pull"}],
        "service": {"type": "LoadBalancer", "annotations": {"example.com/load-balancer": "internal"}},
        "networkPolicy": {"clients": [{"ipBlock": {"cidr": "192.0.2.0/24"}}, {"podSelector": {}}]},
        "etcd": PLACED,
    }
    file = kubeconfig.parent / "values.json"
    file.write_text(json.dumps(values))
    rendered = helm(kubeconfig, namespace, "template", "fleet", str(CHART), "--values", str(file))
    applied = kubectl(kubeconfig, "apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=rendered)
    for made in ("deployment.apps/fleet", "statefulset.apps/fleet-etcd", "networkpolicy.networking.k8s.io/fleet-etcd"):
        assert f"{made} created (server dry run)" in applied


@pytest.mark.skew("install, use, upgrade and uninstall", of="helm chart")
def test_the_chart_is_installed_upgraded_and_left_alone_by_crinit(
    host: HostCluster, namespace: str, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = f"/api/v1/namespaces/{namespace}"
    secrets = [f"{objects}/secrets/fleet-{name}" for name in ("ca", "serving", "tokens")]

    with Kubelet(host, tmp_path / "node", namespace):
        helm(kubeconfig, namespace, "install", "fleet", str(CHART), "--create-namespace", "--set=service.type=NodePort")
        held = [(host.admin.get(path) or {})["data"] for path in secrets]
        service = host.admin.get(f"{objects}/services/fleet") or {}
        cluster = {
            "server": f"https://127.0.0.1:{service['spec']['ports'][0]['nodePort']}",
            "certificate-authority-data": held[1]["ca.crt"],
        }
        client = Client(
            Context(name="fleet", cluster=cluster, user={"token": base64.b64decode(held[2]["token"]).decode()})
        )

        def answers() -> bool:
            try:
                return client.items(CLUSTERS) == []
            except HostError:
                return False

        wait_for(answers)
        helm(kubeconfig, namespace, "upgrade", "fleet", str(CHART), "--set=service.type=NodePort,image=other:2")
        assert [(host.admin.get(path) or {})["data"] for path in secrets] == held

        flags = [
            "--host-cluster-context=host",
            f"--kubeconfig={kubeconfig}",
            f"--cluster-registry-namespace={namespace}",
        ]
        assert main(["standalone", "init", "fleet", *flags], {}) == 3
        said = capsys.readouterr().err
        assert f"Service {namespace}/fleet is there already, and Helm made it" in said
        assert "Nothing was made in this run." in said
        helm(kubeconfig, namespace, "uninstall", "fleet")

    assert json.loads(kubeconfig.read_text())["contexts"][0]["name"] == "host"
