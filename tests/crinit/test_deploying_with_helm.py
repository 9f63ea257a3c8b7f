"""The Helm chart, installed and upgraded by a real Helm in a host cluster: the registry runs, credentials stay."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest

from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host.client import Client
from clusterregistry.crinit.host.kubeconfigs import Access
from clusterregistry.crinit.main import main
from tests.crinit.kubelets import Kubelet
from tests.crinit.test_chart import CHART
from tests.e2e.host_clusters import HostCluster
from tests.e2e.processes import wait_for
from tests.e2e.real_programs import HELM_PROGRAM
from tools import programs

pytestmark = pytest.mark.e2e

CLUSTERS = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"


def helm(kubeconfig: Path, namespace: str, *arguments: str) -> None:
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
        client = Client(Access("fleet", cluster, {"token": base64.b64decode(held[2]["token"]).decode()}, {}))

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
