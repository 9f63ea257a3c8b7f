"""Rights on the members of sets that a webhook or the host cluster decides on: the same attributes are asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.authz import group_rights
from tests.apiserver.api.clients import NOBODY, summary
from tests.apiserver.api.group_objects import SETS, TEAM, team_set
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of
from tests.apiserver.hostcluster.test_aggregated_command import PROXY, World
from tests.remote_servers import Authority, Received, RemoteServer, Reply, kubeconfig, reply
from tools import exchanges

GROUP, VERSION = "clusterregistry.k8s.io", "v1alpha1"
OTHER_TEAMS = 20

Asked = tuple[str, str, str, str]
"""Verb, resource, subresource and name."""


@dataclass
class Decides:
    """Answers reviews, and keeps what it was asked."""

    allowed: set[Asked] = field(default_factory=set)
    denied: set[Asked] = field(default_factory=set)
    asked: list[Asked] = field(default_factory=list)
    silent: bool = False

    def __call__(self, received: Received) -> Reply:
        if self.silent:
            return Reply(status=500)
        asked = self.note(received.document["spec"])
        status = {"allowed": asked in self.allowed} | ({"denied": True} if asked in self.denied else {})
        return reply({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status})

    def note(self, spec: dict[str, Any]) -> Asked:
        attributes = spec.get("resourceAttributes", {})
        wanted = ("verb", "resource", "subresource", "name")
        asked: Asked = tuple(attributes.get(each, "") for each in wanted)
        self.asked.append(asked)
        return asked

    def taken(self) -> list[Asked]:
        """What was asked since the last call, without the order."""
        taken, self.asked = sorted(self.asked), []
        return taken


@pytest.fixture
def decides() -> Decides:
    return Decides()


@pytest.fixture
def fleet(tmp_path: Path, decides: Decides) -> Iterator[InProcessClient]:
    with RemoteServer(Authority(tmp_path)) as remote:
        remote.answer = decides
        config = kubeconfig(tmp_path / "webhook", remote.url, cluster={"certificate-authority": "authority.crt"})
        with InProcess(
            tmp_path / "server",
            "--authorization-mode=Webhook",
            f"--authorization-webhook-config-file={config}",
            "--authorization-webhook-cache-authorized-ttl=0s",
            "--authorization-webhook-cache-unauthorized-ttl=0s",
        ).running() as server:
            yield filled(server.client())


def filled(client: InProcessClient) -> InProcessClient:
    for name in ("red", "blue"):
        client.post(CLUSTERS, cluster(name, labels={TEAM: name})).expect(201)
        client.post(SETS, team_set(name)).expect(201)
    return client


def on(verb: str, name: str, subresource: str = "clusters") -> Asked:
    return verb, "clustersets", subresource, name


def test_the_sets_of_an_object_are_asked_about_one_by_one(fleet: InProcessClient, decides: Decides) -> None:
    decides.allowed = {on("get", "red")}
    fleet.get(path_of("red"), headers=NOBODY).expect(200)
    # Once before the request is handled, and once on the very object.
    assert decides.taken() == [("get", "clusters", "", "red"), on("get", "red"), on("get", "red")]
    fleet.get(path_of("blue"), headers=NOBODY).refused(403, "Forbidden")
    assert decides.taken() == [("get", "clusters", "", "blue"), on("get", "blue")]
    fleet.get(f"{path_of('red')}/status", headers=NOBODY).refused(403, "Forbidden")
    assert decides.taken() == [("get", "clusters", "status", "red"), on("get", "red", "clusters-status")]


def test_a_denial_of_the_object_is_final(fleet: InProcessClient, decides: Decides) -> None:
    decides.allowed, decides.denied = {on("get", "red"), on("list", "red")}, {("get", "clusters", "", "red")}
    fleet.get(path_of("red"), headers=NOBODY).refused(403, "Forbidden")
    assert decides.taken() == [("get", "clusters", "", "red")]
    decides.denied = {("list", "clusters", "", "")}
    fleet.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")
    # Last: a filtered list asks about all objects once more in the background, and others would share that question.
    decides.denied = {on("list", "blue")}
    assert names(fleet.get(CLUSTERS, headers=NOBODY).expect(200)) == ["red"]


def test_each_set_is_asked_about_for_a_list(fleet: InProcessClient, decides: Decides) -> None:
    decides.allowed = {on("list", "red")}
    assert names(fleet.get(CLUSTERS, headers=NOBODY).expect(200)) == ["red"]
    assert set(decides.taken()) == {("list", "clusters", "", ""), on("list", "red"), on("list", "blue")}
    for number in range(OTHER_TEAMS):
        fleet.post(SETS, team_set(f"other-{number}")).expect(201)
    decides.taken()
    fleet.get(CLUSTERS, headers=NOBODY).expect(200)
    assert {asked[3] for asked in decides.taken()} >= {f"other-{number}" for number in range(OTHER_TEAMS)}


def test_too_many_sets_are_a_refusal_that_says_so(
    fleet: InProcessClient, decides: Decides, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_rights, "MOST_ASKED", 1)
    decides.allowed = {on("list", "red"), on("get", "red")}
    refused = fleet.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")
    assert "2 clustersets would have to be asked about, which is more than 1" in refused["message"]
    fleet.get(path_of("red"), headers=NOBODY).expect(200)


def test_a_watch_asks_again_when_sets_change(fleet: InProcessClient, decides: Decides) -> None:
    decides.allowed = {on("watch", "red"), on("watch", "new")}
    with fleet.watch(CLUSTERS, headers=NOBODY) as watch:
        assert summary(watch.take(1)) == [("ADDED", "red")]
        fleet.post(CLUSTERS, cluster("new", labels={TEAM: "new"})).expect(201)
        fleet.post(SETS, team_set("new")).expect(201)
        assert summary(watch.take(1)) == [("ADDED", "new")]
        fleet.patch(path_of("red"), {"metadata": {"labels": {TEAM: "blue"}}}).expect(200)
        assert summary(watch.take(1)) == [("DELETED", "red")]


def test_writes_ask_for_their_verbs_and_for_join(fleet: InProcessClient, decides: Decides) -> None:
    decides.allowed = {on("patch", "red"), on("join", "red")}
    move = {"metadata": {"labels": {TEAM: "blue"}}}
    fleet.patch(path_of("red"), move, headers=NOBODY).refused(403, "Forbidden")
    assert set(decides.taken()) == {
        ("patch", "clusters", "", "red"),
        ("patch", "clusters", "", ""),
        on("patch", "red"),
        on("join", "red"),
        on("join", "blue"),
    }
    decides.allowed |= {on("join", "blue")}
    fleet.patch(path_of("red"), move, headers=NOBODY).expect(200)
    decides.allowed = {on("create", "red")}
    fleet.post(CLUSTERS, cluster("red-2", labels={TEAM: "red"}), headers=NOBODY).expect(201)
    fleet.post(CLUSTERS, cluster("blue-2", labels={TEAM: "blue"}), headers=NOBODY).refused(403, "Forbidden")


REVIEW = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def test_reviews_ask_as_well(fleet: InProcessClient, decides: Decides) -> None:
    decides.allowed = {on("get", "red")}
    for name, allowed in (("red", True), ("blue", False)):
        attributes = {"verb": "get", "group": GROUP, "resource": "clusters", "name": name}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": "jane", "resourceAttributes": attributes},
        }
        assert fleet.post(REVIEW, body).expect(201)["status"]["allowed"] is allowed


@pytest.fixture
def aggregated(tmp_path: Path, decides: Decides) -> Iterator[World]:
    """Behind a host cluster that decides."""
    world = World(tmp_path)

    def answer(received: Received) -> Reply:
        is_review = received.method == "POST" and "resourceAttributes" in received.document["spec"]
        return decides(received) if is_review else world.host._answer(received)

    world.host.answer = answer
    try:
        world.process.start()
        world.process.wait_until(world.is_ready)
        yield world
    finally:
        world.process.end()
        world.host.stop()


def sent(
    world: World, method: str, path: str, body: Any = None, *, user: str = "admin", **headers: str
) -> tuple[int, Any]:
    headers |= {"x_remote_user": user} | ({"x_remote_group": "system:masters"} if user == "admin" else {})
    access = world.access(*world.proxies.client(PROXY))
    answer = exchanges.send(access, method, path, body=json.dumps(body).encode() if body else None, **headers)
    return answer.status, exchanges.decoded(answer)


def test_the_host_cluster_is_asked_the_same(aggregated: World, decides: Decides) -> None:
    world = aggregated
    for name in ("red", "blue"):
        assert sent(world, "POST", CLUSTERS, cluster(name, labels={TEAM: name}))[0] == 201
        assert sent(world, "POST", SETS, team_set(name))[0] == 201
    decides.taken()
    decides.allowed = {on("get", "red"), on("list", "red")}
    assert sent(world, "GET", path_of("red"), user="jane")[0] == 200
    assert decides.taken() == [("get", "clusters", "", "red"), on("get", "red"), on("get", "red")]
    assert sent(world, "GET", path_of("blue"), user="jane")[0] == 403
    status, listed = sent(world, "GET", CLUSTERS, user="jane")
    assert (status, names(listed)) == (200, ["red"])
    decides.taken()
    decides.silent = True
    # What is not decided is no refusal, and no list without what is missing.
    assert [sent(world, "GET", path, user="jane")[0] for path in (path_of("red"), CLUSTERS)] == [503, 503]


def test_a_kubeconfig_behind_a_host_cluster_is_for_the_address_that_it_names(
    aggregated: World, decides: Decides
) -> None:
    world, obj = aggregated, cluster("red", labels={TEAM: "red"})
    entries = [{"clientCIDR": "10.0.0.0/8", "serverAddress": "10.0.0.1"}, {"serverAddress": "red.example.com"}]
    obj["spec"] = {"kubernetesApiEndpoints": {"serverEndpoints": entries}}
    assert sent(world, "POST", CLUSTERS, obj)[0] == 201
    assert sent(world, "POST", SETS, team_set("red"))[0] == 201
    path = f"{path_of('red')}/kubeconfig"
    assert sent(world, "GET", path, user="jane")[0] == 403
    decides.allowed = {("get", "clustersets", "clusters-kubeconfig", "red")}
    for client, server in (("10.1.2.3", "https://10.0.0.1:443"), ("203.0.113.9", "https://red.example.com:443")):
        status, config = sent(world, "GET", path, user="jane", x_forwarded_for=client)
        assert (status, config["clusters"][0]["cluster"]["server"]) == (200, server)
    decides.taken()
    decides.allowed = {("get", "clusters", "kubeconfig", "red")}
    assert sent(world, "GET", path, user="jane")[0] == 200
    assert decides.taken()[0] == ("get", "clusters", "kubeconfig", "red")
