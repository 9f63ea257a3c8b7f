"""The access.yaml of a deployed controller: valid rules, which find what an operator puts into the Secret of clusters.

That the chart makes the same manifests is tested in test_chart.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.client.rest_config import SERVICE_ACCOUNT
from clusterregistry.controllers.access import open_access
from clusterregistry.controllers.access.configuration import FileUse, parse
from clusterregistry.controllers.registry_config import find_config
from clusterregistry.crinit.settings import Mode
from tests.crinit.test_manifests import manifests_of, named
from tests.crinit.volumes import swap

MODES = list(Mode)


def deployed(mode: Mode) -> tuple[str, dict[str, Any]]:
    """The access.yaml and the pod of the controller."""
    manifests = manifests_of(mode, {"with-controller": "true"})
    pod: dict[str, Any] = named(manifests, "Deployment")["fleet-controller"]["spec"]["template"]["spec"]
    return named(manifests, "ConfigMap")["fleet-access"]["data"]["access.yaml"], pod


def mounted_at(pod: dict[str, Any], volume: str) -> str:
    mounts = {each["name"]: each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}
    return str(mounts[volume])


@pytest.mark.parametrize("mode", MODES)
def test_the_rules_name_the_folder_in_which_the_secret_is_mounted(mode: Mode) -> None:
    text, pod = deployed(mode)
    (only,) = parse(text.encode(), Path("/etc/clusterregistry/access/access.yaml"))
    assert only.use == FileUse(directory=Path(mounted_at(pod, "clusters")))
    secrets = {each["name"]: each["secret"] for each in pod["volumes"] if "secret" in each}
    assert secrets["clusters"]["secretName"] == "fleet-clusters"
    assert f"--access-config={mounted_at(pod, 'access')}/access.yaml" in pod["containers"][0]["args"]


@pytest.mark.parametrize("mode", MODES)
async def test_credentials_in_the_mounted_secret_are_found_and_rotated(mode: Mode, tmp_path: Path) -> None:
    """The volumes are filled as by a kubelet: links to a folder that is exchanged as a whole."""
    text, pod = deployed(mode)
    config, clusters = tmp_path / "access", tmp_path / "clusters"
    config.mkdir()
    clusters.mkdir()
    swap(config, {"access.yaml": text.replace(mounted_at(pod, "clusters"), str(clusters))})
    user = {"name": "u", "user": {"token": "of-oslo"}}
    kubeconfig = json.dumps({"apiVersion": "v1", "kind": "Config", "users": [user]})
    swap(clusters, {"paris.token": "of-paris", "oslo.kubeconfig": kubeconfig})
    access = open_access(config / "access.yaml")

    async def token(name: str) -> str:
        found = await access.credential({"metadata": {"name": name}, "spec": {}})
        return found.credential.authorization

    assert [await token("paris"), await token("oslo")] == ["Bearer of-paris", "Bearer of-oslo"]
    swap(clusters, {"paris.token": "rotated", "oslo.kubeconfig": kubeconfig})
    assert await token("paris") == "Bearer rotated"
    swap(config, {"access.yaml": text.replace("use: {file", "use: {none: {}} #")})
    assert await token("paris") == ""
    await access.close()


def test_an_aggregated_controller_finds_the_registry_by_its_service_account(tmp_path: Path) -> None:
    _, pod = deployed(Mode.AGGREGATED)
    assert pod["automountServiceAccountToken"] is True
    assert not any(each.startswith("--kubeconfig") for each in pod["containers"][0]["args"])
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    config = find_config(environ, file=None, context="", user_agent="test")
    assert config.server == "https://10.0.0.1:443"
    assert config.token_file == SERVICE_ACCOUNT / "token"
