"""Real kubectl takes a kubeconfig from the registry and uses it on a simulated member."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
from pathlib import Path

import pytest

from tools import conformance, live_server
from tools.simulator import Simulator

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="the kubectl programs are for linux/amd64"
)

PLUGIN = """#!/bin/sh
echo "$@" > "$0.arguments"
echo '{"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","status":{"token":"TOKEN"}}'
"""


def run(*command: str, home: Path, stdin: str = "") -> str:
    environ = {**os.environ, "HOME": str(home), "PATH": f"{home}:{os.environ['PATH']}"}
    done = subprocess.run(command, input=stdin, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("release", conformance.QUICK_RELEASES)
async def test_kubectl_reads_a_kubeconfig_and_signs_in_by_it(release: str, tmp_path: Path) -> None:
    async with Simulator(1, directory=tmp_path / "certificates") as simulator:
        await asyncio.to_thread(follow, simulator, str(conformance.kubectl(release)), tmp_path)


def follow(simulator: Simulator, kubectl: str, home: Path) -> None:
    member = simulator.members[0]
    provider = {"name": "cloud", "config": {"exec": "aws", "clusterName": "paris", "region": "eu-west-3"}}
    registered = member.cluster(authInfo={"providers": [provider]})
    plugin = home / "aws"
    plugin.write_text(PLUGIN.replace("TOKEN", member.token))
    plugin.chmod(0o755)
    with live_server.running(home / "server") as server:
        registry = f"--kubeconfig={server.kubeconfig}"
        run(kubectl, registry, "create", "-f", "-", home=home, stdin=json.dumps(registered))
        path = f"/apis/clusterregistry.k8s.io/v1beta1/clusters/{member.name}/kubeconfig"
        config = home / "member.kubeconfig"
        config.write_text(run(kubectl, registry, "get", "--raw", path, home=home))
    assert member.token not in config.read_text()
    names = run(kubectl, f"--kubeconfig={config}", "get", "--raw", "/api/v1/namespaces/kube-system", home=home)
    assert json.loads(names)["metadata"]["name"] == "kube-system"
    arguments = (home / "aws.arguments").read_text().split()
    assert arguments == ["eks", "get-token", "--output=json", "--cluster-name=paris", "--region=eu-west-3"]
