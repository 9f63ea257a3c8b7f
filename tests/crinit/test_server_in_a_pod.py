"""The server, started with the arguments and Secrets that crinit gives it: what it keeps, and what it records."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery import certificates
from clusterregistry.crinit.credentials.material import Pair
from clusterregistry.crinit.errors import HostError
from tests.crinit.deployed import CLUSTERS, Deployed

CLUSTER = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "c1"}}


def test_the_volume_holds_no_key_and_nothing_that_makes_an_administrator(tmp_path: Path) -> None:
    """The server is given an authority: one of its own beside it would make administrators for ten years."""
    made = Deployed(tmp_path, {"apiserver-enable-token-auth": "true"})
    with ExitStack() as stack:
        made.start_server(stack).call("POST", CLUSTERS, body=CLUSTER)
    volume = made.volume
    files = {str(file.relative_to(volume)): file.read_bytes() for file in volume.rglob("*") if file.is_file()}
    assert "registry.db" in files
    assert [name for name in files if name.endswith((".key", ".kubeconfig"))] == []
    assert [name for name, content in files.items() if b"PRIVATE KEY" in content] == []


def test_an_authority_that_an_older_version_left_on_the_volume_opens_nothing(tmp_path: Path) -> None:
    made, now = Deployed(tmp_path, {}), time.time()
    made.server()  # makes the volume
    authority, key = certificates.new_authority(certificates.new_key(), now=now), certificates.new_key()
    (made.volume / "ca.crt").write_bytes(certificates.certificate_pem(authority.certificate))
    (made.volume / "ca.key").write_bytes(certificates.key_pem(authority.key))
    (made.volume / "ca.key").chmod(0o600)
    certificate = certificates.client_certificate(authority, key, user="admin", group="system:masters", now=now)
    with ExitStack() as stack:
        made.start_server(stack)
        with pytest.raises(HostError):
            made.client(Pair(certificate, certificates.key_pem(key))).call("GET", CLUSTERS)


def recorded(log: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("kind") == "Event"]


def test_what_is_changed_is_recorded_in_the_log_and_reads_are_not(tmp_path: Path) -> None:
    made = Deployed(tmp_path, {})
    with ExitStack() as stack:
        client = made.start_server(stack)
        client.call("POST", CLUSTERS, body=CLUSTER)
        client.items(CLUSTERS)
    events = recorded(made.log.read_text())
    assert {event["verb"] for event in events} == {"create"}
    assert events[-1]["user"]["username"] == "clusterregistry-admin"
    assert events[-1]["objectRef"]["name"] == "c1"
    assert events[-1]["level"] == "Metadata"


def test_nothing_is_recorded_where_it_is_switched_off(tmp_path: Path) -> None:
    made = Deployed(tmp_path, {"audit-log": "false"})
    with ExitStack() as stack:
        made.start_server(stack).call("POST", CLUSTERS, body=CLUSTER)
    assert recorded(made.log.read_text()) == []
    assert "audit" not in made.log.read_text()
