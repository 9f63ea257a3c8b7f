"""``clusterregistry aggregated``, the real command, behind a host cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clusterregistry
from clusterregistry.client.errors import DisconnectedError, TLSError
from clusterregistry.client.rest_config import RestConfig
from tests.apiserver.hostcluster.hosts import Host
from tests.remote_servers import Authority
from tools import exchanges
from tools.ports import free_port
from tools.processes import Process, wait_for

CLUSTERS = "/apis/clusterregistry.k8s.io/v1alpha1/clusters"
PROXY = "front-proxy-client"
_SOURCES = Path(clusterregistry.__file__).parent.parent


class World:
    """A host cluster and a registry. Answers of the host are not cached, unless the flags say otherwise."""

    def __init__(self, directory: Path, *flags: str) -> None:
        for name in ("host", "proxies", "later"):
            (directory / name).mkdir()
        self.host = Host(Authority(directory / "host")).start()
        self.proxies, self.later = Authority(directory / "proxies"), Authority(directory / "later")
        self.host.change(requestheader_client_ca_file=self.proxies.pem.decode())
        self.port = free_port()
        self.data = directory / "data"
        command = [
            sys.executable, "-m", "clusterregistry", "aggregated", "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--data-dir={self.data}",
            f"--kubeconfig={self.host.kubeconfig(directory / 'host' / 'kubeconfig')}",
            *(flags or (
                "--authentication-token-webhook-cache-ttl=0s",
                "--authorization-webhook-cache-authorized-ttl=0s",
                "--authorization-webhook-cache-unauthorized-ttl=0s",
            )),
        ]  # fmt: skip
        self.process = Process(command, log=directory / "log", environ={"PYTHONPATH": str(_SOURCES)})

    def call(self, path: str, *, proxy: Authority | None = None, **headers: str) -> tuple[int, Any]:
        answer = exchanges.send(self.access(*(proxy.client(PROXY) if proxy else ())), "GET", path, **headers)
        return answer.status, exchanges.decoded(answer)

    def access(self, *identity: Path) -> RestConfig:
        return exchanges.access(f"https://127.0.0.1:{self.port}", ca_file=self.data / "ca.crt", identity=identity)

    def is_ready(self) -> bool:
        return exchanges.is_ok(self.access(), "/readyz")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    try:
        made.process.start()
        made.process.wait_until(made.is_ready)
        yield made
    finally:
        made.process.end()
        made.host.stop()


def as_jane(world: World, authority: Authority) -> int:
    """The status that a front proxy gets for jane; 0 without a connection."""
    try:
        return world.call(CLUSTERS, proxy=authority, x_remote_user="jane")[0]
    except (TLSError, DisconnectedError):
        return 0


def test_the_host_cluster_authenticates_and_authorizes_users(world: World) -> None:
    assert world.call(CLUSTERS, authorization="Bearer janes-token")[0] == 200
    assert world.call(CLUSTERS, authorization="Bearer another")[0] == 401
    assert world.call(CLUSTERS)[0] == 403
    assert as_jane(world, world.proxies) == 200
    status, body = world.call(f"{CLUSTERS}/a", authorization="Bearer janes-token")
    assert (status, body["message"].rpartition(": ")[2]) == (403, "a rule")
    assert not (world.data / "admin.kubeconfig").exists()

    # Another authority of front proxies, with another header, counts at once and without a restart.
    assert as_jane(world, world.later) == 0
    world.host.change(
        requestheader_client_ca_file=world.later.pem.decode(), requestheader_username_headers='["X-Another-User"]'
    )
    wait_for(lambda: as_jane(world, world.proxies) == 0, world.process.logged)
    wait_for(lambda: world.call(CLUSTERS, proxy=world.later, x_another_user="jane")[0] == 200)

    # An authority that cannot be used is not, and readyz shows the check that fails.
    world.host.change(requestheader_client_ca_file="nothing of use")
    wait_for(lambda: not world.is_ready())
    assert "[-]authentication-config failed" in world.call("/readyz?verbose")[1]
    assert world.call(CLUSTERS, proxy=world.later, x_another_user="jane")[0] == 200


def test_without_its_host_cluster_a_registry_answers_503(world: World) -> None:
    world.host.stop()
    status, body = world.call(CLUSTERS, authorization="Bearer janes-token")
    assert (status, body["reason"], body["details"]) == (503, "ServiceUnavailable", {"retryAfterSeconds": 1})
    # The address of the host cluster is not shown to unauthenticated clients.
    assert body["message"].endswith("the token cannot be reviewed now: the host cluster cannot be reached")
    status, body = world.call(CLUSTERS, proxy=world.proxies, x_remote_user="jane")
    assert status == 503
    assert body["message"].startswith('it cannot be decided now whether User "jane" may list resource "clusters" in ')
    # Administrators and health checks need no host cluster.
    masters = {"x_remote_user": "root", "x_remote_group": "system:masters"}
    assert world.call(CLUSTERS, proxy=world.proxies, **masters)[0] == 200
    assert world.call("/livez")[0] == 200
    wait_for(lambda: not world.is_ready())

    world.host.start()
    wait_for(world.is_ready, world.process.logged)
    assert world.call(CLUSTERS, authorization="Bearer janes-token")[0] == 200


def test_a_registry_waits_for_its_host_cluster(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.host.stop()
    try:
        world.process.start()
        world.process.wait_until(lambda: "Serving: " in world.process.logged())
        assert not world.is_ready()
        world.host.start()
        wait_for(world.is_ready, world.process.logged)
    finally:
        world.process.end()
        world.host.stop()


def test_without_the_lookup_the_flags_name_the_trusted_authorities(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.mkdir()
    proxies, clients = tmp_path / "proxies" / "authority.crt", Authority(users)
    world = World(
        tmp_path,
        "--authentication-skip-lookup",
        f"--requestheader-client-ca-file={proxies}",
        f"--requestheader-allowed-names={PROXY}",
        f"--client-ca-file={clients.file}",
    )
    world.host.change(requestheader_client_ca_file=world.later.pem.decode())
    try:
        world.process.start()
        world.process.wait_until(world.is_ready)
        assert as_jane(world, world.proxies) == 200
        assert as_jane(world, world.later) == 0
        assert as_jane(world, clients) == 403  # as front-proxy-client, a user like any other
        assert not any("configmaps" in received.path for received in world.host.received)
        assert "authentication-config" not in world.call("/readyz?verbose")[1]
    finally:
        world.process.end()
        world.host.stop()


def test_behind_a_host_cluster_the_members_of_sets_are_counted(world: World) -> None:
    """The registry's own controllers run there too."""
    access = world.access(*world.proxies.client(PROXY))
    masters = {"x_remote_user": "root", "x_remote_group": "system:masters", "content_type": "application/json"}
    sets = CLUSTERS.replace("clusters", "clustersets")
    version = "clusterregistry.k8s.io/v1alpha1"
    for path, kind, spec in ((sets, "ClusterSet", {"selector": {}, "clusters": ["gone"]}), (CLUSTERS, "Cluster", {})):
        obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "one"}, "spec": spec}
        assert exchanges.send(access, "POST", path, obj, **masters).status == 201

    def count() -> Any:
        return exchanges.decoded(exchanges.send(access, "GET", f"{sets}/one", **masters)).get("status", {})

    wait_for(lambda: count().get("clusters") == 1, world.process.logged)
    assert count()["conditions"][0]["reason"] == "NameNotFound"
