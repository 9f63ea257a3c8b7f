"""The three members of etcd that --replicas brings along, with the arguments and certificates of their manifests.

The registry keeps an object in them, and goes on when one of them is gone.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from clusterregistry.crinit.errors import HostError
from tests.crinit.deployed import CLUSTERS, Deployed, all_healthy
from tools.processes import Process, wait_for


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[tuple[Deployed, list[Process]]]:
    made = Deployed(tmp_path, {"replicas": "3"})
    with ExitStack() as stack:
        members = [made.start_member(stack, number) for number in range(3)]
        all_healthy(made)
        yield made, members


def test_the_registry_keeps_its_objects_in_its_own_etcd_and_survives_the_loss_of_a_member(
    deployed: tuple[Deployed, list[Process]],
) -> None:
    made, members = deployed
    with ExitStack() as stack:
        client = made.start_server(stack)
        cluster = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "c1"}}
        client.call("POST", CLUSTERS, body=cluster)
        members[0].end()

        def writes() -> bool:
            try:
                client.call(
                    "PATCH",
                    f"{CLUSTERS}/c1",
                    body={"metadata": {"labels": {"a": "b"}}},
                    media_type="application/merge-patch+json",
                )
            except HostError:
                return False
            return True

        wait_for(writes)
        assert [each["metadata"]["labels"] for each in client.items(CLUSTERS)] == [{"a": "b"}]


def test_a_member_without_the_others_is_alive_and_not_ready(deployed: tuple[Deployed, list[Process]]) -> None:
    """Else all members would be restarted together when the network between them fails."""
    made, members = deployed
    assert made.members_are("startupProbe", 0, 1, 2)
    for member in members[1:]:
        member.end()
    wait_for(lambda: not made.members_are("readinessProbe", 0))
    assert made.members_are("livenessProbe", 0), made.probe("livenessProbe", 0).stderr
    assert not made.members_are("livenessProbe", 1)


def test_no_port_of_a_member_answers_without_tls(deployed: tuple[Deployed, list[Process]]) -> None:
    made, _ = deployed
    listening = [urlsplit(each.partition("=")[2]) for each in made.member(0) if each.startswith("--listen-")]
    assert len(listening) == 2
    for url in listening:
        with socket.create_connection(("127.0.0.1", url.port or 0), timeout=5) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answered = connection.recv(1 << 16)
        assert b"200 OK" not in answered
        assert url.scheme == "https"
