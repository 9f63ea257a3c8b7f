"""Real kubectl over TLS, as a user with rights on sets: each verb, and what kubectl asks and waits for by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.api.group_objects import SETS, TEAM, give, on_sets, team_set
from tests.apiserver.api.in_process import InProcess
from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.apiserver.api.test_filtered_kubectl import Kubectl, first_cells, kubectl, pytestmark, until_watched

__all__ = ["kubectl", "pytestmark"]  # pytest finds them here

PREFIX = "cluster.clusterregistry.k8s.io/"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[InProcess]:
    with InProcess(tmp_path / "server").running() as started:
        client = started.client()
        for name, team in (("r1", "red"), ("r2", "red"), ("b1", "blue")):
            client.post(CLUSTERS, cluster(name, labels={TEAM: team})).expect(201)
        for team in ("red", "blue"):
            client.post(SETS, team_set(team)).expect(201)
        give(client, "nobody", on_sets(*VERBS, names=["red"]))
        yield started


def said(kubectl: Kubectl, *arguments: str) -> str:
    return "\n".join(" ".join(words) for words in kubectl.says(*arguments))


def manifest(directory: Path, name: str, team: str) -> str:
    path = directory / f"{name}.json"
    path.write_text(json.dumps(cluster(name, labels={TEAM: team})))
    return str(path)


def test_members_are_read(kubectl: Kubectl) -> None:
    assert first_cells(kubectl.says("get", "clusters")) == ["NAME", "r1", "r2"]
    assert said(kubectl, "get", "clusters", "--chunk-size=1", "-o", "name") == f"{PREFIX}r1\n{PREFIX}r2"
    assert said(kubectl, "get", "cluster", "r1", "-o", "name") == f"{PREFIX}r1"
    assert "(Forbidden)" in said(kubectl, "get", "cluster", "b1")
    assert said(kubectl, "describe", "cluster", "r1").startswith("Name: r1")


def test_members_are_written(kubectl: Kubectl, tmp_path: Path) -> None:
    for arguments, done in (
        (("annotate", "cluster", "r1", "x=y"), "annotated"),
        (("patch", "cluster", "r1", "--type=merge", "-p", '{"metadata":{"labels":{"x":"y"}}}'), "patched"),
        (("replace", "-f", manifest(tmp_path, "r1", "red")), "replaced"),
        (("apply", "-f", manifest(tmp_path, "r3", "red")), "created"),
        (("apply", "-f", manifest(tmp_path, "r3", "red")), "unchanged"),
        (("apply", "--server-side", "-f", manifest(tmp_path, "r4", "red")), "serverside-applied"),
        (("create", "-f", manifest(tmp_path, "r5", "red")), "created"),
    ):
        assert said(kubectl, *arguments).split()[-1] == done
    for refused in (
        ("label", "cluster", "r1", "team=blue", "--overwrite"),
        ("create", "-f", manifest(tmp_path, "b2", "blue")),
        ("apply", "-f", manifest(tmp_path, "b3", "blue")),
        ("apply", "--server-side", "-f", manifest(tmp_path, "b4", "blue")),
        ("delete", "cluster", "b1"),
    ):
        assert "forbidden" in said(kubectl, *refused)


def test_members_are_deleted_and_waited_for(kubectl: Kubectl) -> None:
    assert said(kubectl, "delete", "cluster", "r1", "--timeout=30s").endswith('"r1" deleted')
    assert said(kubectl, "get", "cluster", "r1", "--ignore-not-found") == ""
    assert said(kubectl, "delete", "clusters", "--all", "--timeout=30s").endswith('"r2" deleted')
    assert said(kubectl, "get", "clusters") == "No resources found"


def test_can_i_tells_what_a_request_would_get(kubectl: Kubectl) -> None:
    for arguments, answer in (
        (("get", "clusters/r1"), "yes"),
        (("delete", "clusters/r1"), "yes"),
        (("get", "clusters/b1"), "no"),
        (("get", "clusters/r1", "--subresource=status"), "no"),
        (("list", "clusters"), 'no - allowed on members of clustersets "red" only'),
    ):
        assert said(kubectl, "auth", "can-i", *arguments).splitlines()[-1] == answer
    listed = said(kubectl, "auth", "can-i", "--list")
    assert "clustersets.clusterregistry.k8s.io/clusters [] [red] [get list watch create update" in listed


def test_a_watch_shows_members_that_come_and_go(server: InProcess, kubectl: Kubectl) -> None:
    client = server.client()
    watching = kubectl.start("get", "clusters", "-w", "--output-watch-events")
    assert watching.stdout is not None
    try:
        lines = (line.split() for line in watching.stdout)
        assert [next(lines)[:2] for _ in range(3)] == [["EVENT", "NAME"], ["ADDED", "r1"], ["ADDED", "r2"]]
        until_watched(server)
        client.patch(f"{CLUSTERS}/b1", {"metadata": {"labels": {TEAM: "red"}}}).expect(200)
        assert next(lines)[:2] == ["ADDED", "b1"]
        client.delete(f"{SETS}/red").expect(200)
        assert sorted(next(lines)[:2] for _ in range(3)) == [["DELETED", "b1"], ["DELETED", "r1"], ["DELETED", "r2"]]
    finally:
        watching.kill()
        watching.stdout.close()
        watching.wait()
