from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.client.rest import Client, GroupVersionResource, ResourceClient
from clusterregistry.client.rest_config import Pem, RestConfig
from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.server.programs import Program
from tests.client.hostile_servers import AGENT, HostileServer

CLUSTERS = GroupVersionResource("clusterregistry.k8s.io", "v1alpha1", "clusters")


class Pauses:
    """A sleep that takes no time and records its pauses."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[HostileServer]:
    async with HostileServer(tmp_path / "server") as started:
        yield started


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def hostile(server: HostileServer, pauses: Pauses) -> AsyncIterator[Client]:
    """A client of the hostile server, whose pauses take no time."""
    async with Client(server.config(), sleep=pauses) as client:
        yield client


def program_config(program: Program, **changes: Any) -> RestConfig:
    given: dict[str, Any] = {
        "server": f"https://127.0.0.1:{program.port}",
        "user_agent": AGENT,
        "certificate_authority": Pem(file=program.data / "ca.crt"),
        "token": ADMIN_TOKEN,
    }
    return RestConfig(**{**given, **changes})


@pytest.fixture
async def rest(program: Program) -> AsyncIterator[Client]:
    """An administrator's client of our real server."""
    async with Client(program_config(program)) as client:
        yield client


@pytest.fixture
async def clusters(rest: Client) -> AsyncIterator[ResourceClient]:
    """The clusters of our real server, removed at the end."""
    resource = rest.resource(CLUSTERS)
    yield resource
    await resource.delete_collection()


def cluster(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{CLUSTERS.group}/{CLUSTERS.version}",
        "kind": "Cluster",
        "metadata": {"name": name, **metadata},
    }
