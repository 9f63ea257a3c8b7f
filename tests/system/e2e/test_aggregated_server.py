"""An aggregated registry, seen by kube-apiserver and by direct clients."""

from __future__ import annotations

from typing import Any

import pytest

from tests.system.e2e.host_clusters import JANE, NOBODY, PROXY_NAME, HostCluster
from tests.system.e2e.registries import CLUSTERS, GROUP, Registry
from tools.exchanges import decoded

pytestmark = pytest.mark.e2e


@pytest.mark.skew("discovery and OpenAPI, merged by the host cluster", of="aggregated")
def test_kube_apiserver_merges_discovery_and_openapi(host: HostCluster, registry: Registry) -> None:
    assert registry.is_available()
    groups = {group["name"]: group for group in decoded(host.call("GET", "/apis"))["groups"]}
    assert [each["version"] for each in groups[GROUP]["versions"]] == ["v1beta1", "v1alpha1"]
    assert groups[GROUP]["preferredVersion"]["version"] == "v1beta1"
    definitions: dict[str, Any] = decoded(host.call("GET", "/openapi/v2"))["definitions"]
    paths: dict[str, Any] = decoded(host.call("GET", "/openapi/v3"))["paths"]
    for version in ("v1beta1", "v1alpha1"):
        assert f"io.k8s.clusterregistry.{version}.Cluster" in definitions
        assert f"apis/{GROUP}/{version}" in paths


@pytest.mark.parametrize("group", ["rbac.authorization.k8s.io", "authorization.k8s.io", "authentication.k8s.io"])
def test_what_the_host_cluster_has_is_not_served_here(registry: Registry, host: HostCluster, group: str) -> None:
    client = host.users.client("root", "system:masters")
    assert registry.call(f"/apis/{group}/v1", client=client).status == 404
    assert [each["name"] for each in decoded(registry.call("/apis", client=client))["groups"]] == [GROUP]


@pytest.mark.skew("certificates of its users", of="aggregated")
def test_certificates_of_the_host_clusters_users_count(registry: Registry, host: HostCluster) -> None:
    assert registry.call(CLUSTERS, client=host.users.client("root", "system:masters")).status == 200
    refused = registry.call(CLUSTERS, client=host.users.client("eve"))
    assert (refused.status, 'User "eve"' in decoded(refused)["message"]) == (403, True)


@pytest.mark.skew("tokens of its users", of="aggregated")
def test_tokens_of_the_host_cluster_count(registry: Registry) -> None:
    assert registry.call(CLUSTERS, token=JANE).status == 200
    assert registry.call(CLUSTERS, token=NOBODY).status == 403
    assert registry.call(CLUSTERS, token="no-such-token").status == 401


@pytest.mark.skew("front-proxy headers", of="aggregated")
def test_only_a_front_proxy_may_name_the_user(registry: Registry, host: HostCluster) -> None:
    claims: dict[str, Any] = {"x_remote_user": "root", "x_remote_group": "system:masters"}
    assert registry.call(CLUSTERS, client=host.proxies.client(PROXY_NAME), **claims).status == 200
    assert registry.call(CLUSTERS, **claims).status == 403
    assert registry.call(CLUSTERS, client=host.users.client(PROXY_NAME), **claims).status == 403
    assert registry.call(CLUSTERS, client=host.proxies.client("another-name"), **claims).status == 401


def test_the_readiness_checks_are_public(registry: Registry) -> None:
    checks = decoded(registry.call("/readyz?verbose"))
    for name in ("authentication-config", "token-review", "access-review"):
        assert f"[+]{name} ok" in checks
    assert registry.call("/readyz/token-review").status == 403
