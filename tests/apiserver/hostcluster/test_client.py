"""The access to a host cluster, and the failures of its calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.hostcluster.client import (
    ACCESS_REVIEWS,
    ConfigMap,
    Reviews,
    for_users,
    host_config,
)
from clusterregistry.apiserver.hostcluster.in_cluster import InCluster, in_cluster
from clusterregistry.apiserver.webhooks.errors import CallFailed
from tests.apiserver.hostcluster.hosts import TOKEN, Host
from tests.remote_servers import Authority

AGENT = "tests/1"


def pod(host: Host, directory: Path) -> InCluster:
    """The files that a kubelet would mount."""
    (directory / "ca.crt").write_bytes((directory / "authority.crt").read_bytes())
    (directory / "token").write_text(f"{TOKEN}\n")
    return InCluster(host="127.0.0.1", port=str(host.port), files=directory)


def test_a_pod_knows_where_its_kube_apiserver_is() -> None:
    found = in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"})
    assert found == InCluster(host="10.0.0.1", port="443")


@pytest.mark.parametrize("name", ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
def test_one_without_the_other_is_no_pod(name: str) -> None:
    assert in_cluster({name: "1"}) is None


async def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    with Host(Authority(tmp_path)) as host:
        configmap = ConfigMap(host_config(pod(host, tmp_path), user_agent=AGENT))
        assert (await configmap.get())["kind"] == "ConfigMap"
        await configmap.close()
    assert host.received[0].headers["user-agent"] == AGENT


@pytest.mark.parametrize("missing", ["ca.crt", "token"])
def test_a_pod_without_a_service_account_is_an_error_with_a_remedy(tmp_path: Path, missing: str) -> None:
    with Host(Authority(tmp_path)) as host:
        described = pod(host, tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(OperatorError, match=missing) as raised:
        host_config(described, user_agent=AGENT)
    assert "automountServiceAccountToken" in raised.value.remedy


def test_problems_of_a_kubeconfig_name_the_host_cluster(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(
        "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {x: y}}]"
    )
    with pytest.raises(OperatorError, match=r"cluster\.x: is not supported here; cluster\.server: must be") as raised:
        host_config(path, user_agent=AGENT)
    assert "names the host cluster as its cluster" in raised.value.remedy


async def test_missing_rights_are_explained(tmp_path: Path) -> None:
    with Host(Authority(tmp_path)) as host:
        host.status = 403
        config = host_config(host.kubeconfig(tmp_path / "kubeconfig"), user_agent=AGENT)
        configmap, reviews = ConfigMap(config), Reviews(config, ACCESS_REVIEWS)
        with pytest.raises(CallFailed, match="extension-apiserver-authentication-reader"):
            await configmap.get()
        with pytest.raises(CallFailed, match=r"status 403 .*system:auth-delegator") as raised:
            await reviews.ask({})
        assert "does not say: it answers with status 403 (our user lacks rights" in for_users(raised.value)
        with pytest.raises(CallFailed, match="status 403"):
            await anext(configmap.watch("1"))
        await configmap.close()
        await reviews.close()


async def test_changes_of_the_configmap_are_watched_until_its_version_is_gone(tmp_path: Path) -> None:
    with Host(Authority(tmp_path)) as host:
        configmap = ConfigMap(host_config(host.kubeconfig(tmp_path / "kubeconfig"), user_agent=AGENT))
        host.change(client_ca_file="x")
        events = [event async for event in configmap.watch("1")]
        assert [(event.type, event.object["data"]["client-ca-file"]) for event in events] == [("MODIFIED", "x")]
        query = host.received[-1].path.partition("?")[2]
        assert set(query.split("&")) == {
            "watch=true",
            "fieldSelector=metadata.name%3Dextension-apiserver-authentication",
            "resourceVersion=1",
            "timeoutSeconds=60",
        }
        host.status = 410
        assert [event async for event in configmap.watch("1")] == []
        await configmap.close()
