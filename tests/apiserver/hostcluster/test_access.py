"""How a host cluster is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.hostcluster import access
from clusterregistry.apiserver.hostcluster.client import ACCESS_REVIEWS, Objects, Reviews, for_users
from clusterregistry.apiserver.hostcluster.in_cluster import InCluster, in_cluster
from clusterregistry.apiserver.webhooks.errors import CallFailed
from tests.apiserver.hostcluster.hosts import CONFIGMAP, TOKEN, Host
from tests.remote_servers import Authority


def pod(host: Host, directory: Path) -> InCluster:
    """The files that a kubelet would mount."""
    (directory / "ca.crt").write_bytes((directory / "authority.crt").read_bytes())
    (directory / "token").write_text(f"{TOKEN}\n")
    return InCluster(host="127.0.0.1", port=str(host.port), files=directory)


def test_a_pod_knows_where_its_kube_apiserver_is() -> None:
    found = in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"})
    assert found is not None
    assert found.url == "https://10.0.0.1:443"
    assert InCluster(host="fd00::1", port="443").url == "https://[fd00::1]:443"


@pytest.mark.parametrize("name", ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
def test_one_without_the_other_is_no_pod(name: str) -> None:
    assert in_cluster({name: "1"}) is None


async def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    with Host(Authority(tmp_path)) as host:
        objects = Objects(access.endpoint(pod(host, tmp_path)))
        assert (await objects.get(CONFIGMAP))["kind"] == "ConfigMap"
        await objects.close()


@pytest.mark.parametrize("missing", ["ca.crt", "token"])
def test_a_pod_without_a_service_account_says_what_to_do(tmp_path: Path, missing: str) -> None:
    with Host(Authority(tmp_path)) as host:
        described = pod(host, tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(OperatorError, match=missing) as raised:
        access.endpoint(described)
    assert "automountServiceAccountToken" in raised.value.remedy


def test_mistakes_in_a_kubeconfig_speak_of_the_host_cluster(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {x: y}}]"
    )
    with pytest.raises(OperatorError, match=r"cluster\.server: must be the URL of the host cluster") as raised:
        access.endpoint(path)
    assert "names the host cluster as its cluster" in raised.value.remedy


async def test_missing_rights_are_explained(tmp_path: Path) -> None:
    with Host(Authority(tmp_path)) as host:
        host.status = 403
        endpoint = access.endpoint(host.kubeconfig(tmp_path / "kubeconfig"))
        objects, reviews = Objects(endpoint), Reviews(endpoint, ACCESS_REVIEWS)
        with pytest.raises(CallFailed, match="extension-apiserver-authentication-reader"):
            await objects.get(CONFIGMAP)
        with pytest.raises(CallFailed, match=r"status 403 .*system:auth-delegator") as raised:
            await reviews.ask({})
        assert "does not say: it answers with status 403 (our user lacks rights" in for_users(raised.value)
        with pytest.raises(CallFailed, match="status 403"):
            await anext(objects.watch(CONFIGMAP, silence=20))
        await objects.close()
        await reviews.close()
