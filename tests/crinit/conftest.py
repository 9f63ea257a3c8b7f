"""One host cluster for all tests that need one: each works in a namespace of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crinit import kubelet_endpoint, networks
from tests.system.e2e.host_clusters import HostCluster

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostCluster]:
    directory = tmp_path_factory.mktemp("host")
    flags = [*networks.apiserver_flags(directory), *kubelet_endpoint.apiserver_flags(directory)]
    with HostCluster(directory, *flags) as started:
        yield started


@pytest.fixture
def namespace() -> str:
    return f"registry-{next(_numbers)}"


@pytest.fixture
def kubeconfig(host: HostCluster, tmp_path: Path) -> Path:
    return host.kubeconfig(tmp_path / "config")
