"""One host cluster with one registry behind it, for all tests that only use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.system.e2e.host_clusters import HostCluster
from tests.system.e2e.registries import Registry

_RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostCluster]:
    with HostCluster(tmp_path_factory.mktemp("host")) as started:
        _let_developers_read(started)
        yield started


@pytest.fixture(scope="session")
def registry(host: HostCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with Registry(host, tmp_path_factory.mktemp("registry")) as started:
        yield started


def _let_developers_read(host: HostCluster) -> None:
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": ["clusterregistry.k8s.io"], "resources": ["clusters"], "verbs": ["get", "list", "watch"]}]
    host.create(f"{_RBAC}/clusterroles", {"metadata": {"name": "cluster-reader"}, "rules": rules})
    host.create(
        f"{_RBAC}/clusterrolebindings",
        {
            "metadata": {"name": "developers-read-clusters"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-reader"},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": "developers"}],
        },
    )
