"""What the probes read, from a simulated member that answers whatever the test says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.client.errors import printable
from clusterregistry.controllers.observer.observation import Health, Nodes, Reason
from clusterregistry.controllers.observer.probe import MAX_NAMES, MAX_RESOURCES, MAX_TOKEN, failed_checks
from clusterregistry.controllers.observer.settings import ObserverSettings
from tests.controllers.observer.subjects import PATIENCE, access_to, asked, subject
from tools.simulator import SimulatedMember, Simulator, contents
from tools.simulator.api import Answer, Received

PATHS = {
    "health": "/readyz",
    "version": "/version",
    "kube_system_uid": "/api/v1/namespaces/kube-system",
    "nodes": "/api/v1/nodes",
}
SMALL = ObserverSettings(deadline=PATIENCE, page_size=2, max_nodes=6, max_node_bytes=64 << 10, max_text=4 << 10)


class Scripted:
    """A member that answers some paths in another way."""

    def __init__(self, member: SimulatedMember, patch: pytest.MonkeyPatch) -> None:
        self.member = member
        self.answers: dict[str, Callable[[Received], Answer]] = {}
        usual = member.answer

        def answer(received: Received) -> Answer:
            special = self.answers.get(received.path)
            return special(received) if special is not None else usual(received)

        patch.setattr(member, "answer", answer)

    def says(self, name: str, body: Any, *, status: int = 200) -> None:
        encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers[PATHS[name]] = lambda _: Answer(status, encoded)

    async def section(self, name: str, *, settings: ObserverSettings = SMALL) -> Any:
        """The section of one probe. The others are those of a member that is well."""
        one = subject(self.member.cluster(), access_to(self.member), settings=settings)
        try:
            observation = await asked(one, everything=True)
        finally:
            await one.disconnect()
        assert observation.failure is None
        others = {getattr(observation, each).failure for each in PATHS if each != name}
        assert others == {None}
        return getattr(observation, name)

    async def refusal(self, name: str) -> str:
        failure = (await self.section(name)).failure
        assert failure is not None
        assert failure.reason is Reason.BAD_RESPONSE
        assert failure.message == printable(failure.message, 256)
        return str(failure.message)


@pytest.fixture
async def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scripted]:
    async with Simulator(directory=tmp_path) as simulator:
        yield Scripted(simulator[0], monkeypatch)


def node(name: str = "n", *, ready: str = "True", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}], **status}}


def page(*nodes: Any, token: str = "") -> dict[str, Any]:
    return {"kind": "NodeList", "metadata": {"continue": token} if token else {}, "items": list(nodes)}


async def test_a_cluster_that_is_well_says_all(scripted: Scripted) -> None:
    member = scripted.member
    member.contents.nodes, member.contents.not_ready = 5, 2
    assert (await scripted.section("health")).value == Health(ready=True)
    assert (await scripted.section("version")).value == member.contents.version
    assert (await scripted.section("kube_system_uid")).value == member.contents.kube_system_uid
    nodes = (await scripted.section("nodes")).value
    assert (nodes.total, nodes.ready, nodes.not_ready) == (5, 3, ("node-0000", "node-0001"))
    assert nodes.capacity["cpu"] == "40"
    assert nodes.allocatable["cpu"] == "39550m"
    assert nodes.capacity["memory"] == f"{5 * 32877940}Ki"
    assert [each.query for each in member.requests if each.path == PATHS["nodes"]][-3:] == [
        {"limit": "2"},
        {"limit": "2", "continue": "2"},
        {"limit": "2", "continue": "4"},
    ]


# Health


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_cluster_that_is_not_ready_names_its_checks(scripted: Scripted, status: int) -> None:
    scripted.says("health", b"[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/x failed\n", status=status)
    found = (await scripted.section("health")).value
    assert found == Health(ready=False, failed_checks=("etcd", "poststarthook/x"))


async def test_a_proxy_without_a_cluster_is_not_ready_without_checks(scripted: Scripted) -> None:
    scripted.says("health", b"<html>502</html>", status=502)
    assert (await scripted.section("health")).value == Health(ready=False)


def test_names_of_failed_checks_are_bounded() -> None:
    body = b"".join(b"[-]check-%d failed\n" % number for number in range(1000))
    assert failed_checks(body) == tuple(f"check-{number}" for number in range(MAX_NAMES))
    assert failed_checks(b"[-]" + b"x" * 5000) == ("x" * 100,)
    assert not failed_checks(b"[-]<script>\n[-]\xff\n [-]indented")


async def test_clusters_before_readyz_are_asked_for_healthz(scripted: Scripted) -> None:
    scripted.says("health", b"404 page not found", status=404)
    assert (await scripted.section("health")).value == Health(ready=True)
    assert [each.path for each in scripted.member.requests][:2] == ["/readyz", "/healthz"]


async def test_who_may_not_read_the_health_is_told(scripted: Scripted) -> None:
    scripted.says("health", {"kind": "Status", "message": "no rights"}, status=403)
    failure = (await scripted.section("health")).failure
    assert (failure.reason, failure.message) == (Reason.FORBIDDEN, "403 Forbidden: no rights")


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"<html>"), (200, b""), (200, b'{"ok":1}'), (206, b"ok"), (204, b"")]
)
async def test_another_answer_than_ok_is_no_health(scripted: Scripted, status: int, body: bytes) -> None:
    scripted.says("health", body, status=status)
    assert "/readyz answers" in await scripted.refusal("health")


# Version and identity


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"gitVersion": 7},
        {"gitVersion": ""},
        {"gitVersion": "v"},
        {"gitVersion": "v1." + "9" * 80},
        [],
        "v1.36.0",
        None,
        {"gitVersion": "v1.36\n"},
        {"gitVersion": "v1.36 <b>"},
        b"",
        b"\xff",
        b'{"gitVersion":"\xff"}',
        b"[" * 1000 + b"]" * 1000,
        b'{"gitVersion":' + b"[" * 1000 + b"]" * 1000 + b"}",
    ],
)
async def test_what_is_no_version_is_refused(scripted: Scripted, document: Any) -> None:
    scripted.says("version", document)
    await scripted.refusal("version")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"kind": "Namespace"},
        {"kind": "Namespace", "metadata": []},
        {"kind": "Namespace", "metadata": {"uid": 7}},
        {"kind": "Namespace", "metadata": {"uid": ""}},
        {"kind": "Namespace", "metadata": {"uid": "a\nb"}},
        {"kind": "Namespace", "metadata": {"uid": "a" * 129}},
        {"kind": "Pod", "metadata": {"uid": "abc"}},
    ],
)
async def test_what_is_no_namespace_with_a_uid_is_refused(scripted: Scripted, document: Any) -> None:
    scripted.says("kube_system_uid", document)
    assert await scripted.refusal("kube_system_uid") == "the namespace kube-system has no uid"


# Nodes


async def test_a_node_is_ready_if_its_condition_says_so(scripted: Scripted) -> None:
    several = [node("a"), node("b", ready="False"), node("c", ready="Unknown"), {"metadata": {"name": "d"}}]
    scripted.says("nodes", page(*several, {"status": {"conditions": None}}))
    nodes = (await scripted.section("nodes")).value
    assert (nodes.total, nodes.ready, nodes.not_ready) == (5, 1, ("b", "c", "d", ""))


async def test_a_cluster_without_nodes_has_none(scripted: Scripted) -> None:
    for items in (list[Any](), None):
        scripted.says("nodes", {"kind": "NodeList", "items": items})
        assert (await scripted.section("nodes")).value == Nodes(total=0, ready=0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'{"kind":"PodList"}',
        b'{"kind":"\xff"}',
        b'{"kind":"NodeList","items":[{"metadata":{"name":7}}]}',
        b'{"kind":"NodeList","items":{}}',
        b'{"kind":"\\ud800"}',
        b'{"kind":"NodeList","items":[{"metadata":{"name":"\xff"}}]}',
        b'{"kind":"NodeList","metadata":{"continue":"\\udfff"}}',
        b'{"kind":"NodeList","more":' + b"[" * 60_000 + b"]" * 60_000 + b"}",
        b'{"kind":"NodeList","more":' + b'{"a":' * 60_000 + b"1" + b"}" * 60_000 + b"}",
        b'{"kind":"NodeList","items":[1e999]}',
    ],
)
async def test_what_is_no_list_of_nodes_is_refused(scripted: Scripted, body: bytes) -> None:
    scripted.says("nodes", body)
    assert "list of nodes" in await scripted.refusal("nodes")


@pytest.mark.parametrize("amount", ["1e999999999", "many", "", "9" * 100_000, "NaN", "\ud800", "1" * 30 + "Zi"])
async def test_a_capacity_that_is_no_quantity_is_refused(scripted: Scripted, amount: str) -> None:
    scripted.says("nodes", page(node(capacity={"cpu": amount})))
    await scripted.refusal("nodes")


async def test_names_and_kinds_of_capacity_are_bounded(scripted: Scripted) -> None:
    amounts = {f"example.com/r{number}": "1" for number in range(500)}
    unnamed = {"": "1", "-": "1", "a\nb": "1", "x" * 400: "1"}
    nodes = [
        node("n\u202e\n" + "x" * 1000, ready="False", capacity={**unnamed, **amounts}) for _ in range(SMALL.max_nodes)
    ]
    scripted.says("nodes", page(*nodes))
    found = (await scripted.section("nodes", settings=ObserverSettings(deadline=PATIENCE))).value
    assert len(found.capacity) == MAX_RESOURCES
    assert all(name.startswith("example.com/") for name in found.capacity)
    assert all(name.isprintable() and len(name) <= 253 for name in found.not_ready)


async def test_more_nodes_than_kubernetes_supports_are_not_counted(scripted: Scripted) -> None:
    scripted.member.contents.nodes = SMALL.max_nodes
    assert (await scripted.section("nodes")).value.total == SMALL.max_nodes
    scripted.member.contents.nodes = SMALL.max_nodes + 1
    before = scripted.member.request_count
    assert "more than 6 nodes" in await scripted.refusal("nodes")
    assert scripted.member.request_count - before == 3 + SMALL.max_nodes / SMALL.page_size
    scripted.says("nodes", page(*[node()] * 100))  # of a server that does not care for the limit of a page
    assert "more than 6 nodes" in await scripted.refusal("nodes")


async def test_the_bytes_of_all_pages_are_bounded(scripted: Scripted) -> None:
    scripted.says("nodes", page({"metadata": {"name": "n", "labels": {"a": "x" * SMALL.max_node_bytes}}}, token="more"))
    assert "too large" in await scripted.refusal("nodes")
    assert [each.path for each in scripted.member.requests].count(PATHS["nodes"]) == 1


async def test_empty_pages_without_end_are_not_followed(scripted: Scripted) -> None:
    scripted.says("nodes", page(token="again"))
    assert "does not come to an end" in await scripted.refusal("nodes")
    assert [each.path for each in scripted.member.requests].count(PATHS["nodes"]) == 6


async def test_a_token_is_sent_back_as_it_is_unless_it_is_very_long(scripted: Scripted) -> None:
    token = "a&limit=0#?/ ü\n\r:%"
    scripted.answers[PATHS["nodes"]] = lambda received: Answer(
        body=contents.dump(page(token="") if received.query.get("continue") == token else page(node(), token=token))
    )
    assert (await scripted.section("nodes")).value.total == 1
    scripted.says("nodes", page(node(), token="x" * (MAX_TOKEN + 1)))
    assert "does not come to an end" in await scripted.refusal("nodes")


async def test_a_failure_in_the_middle_of_the_pages_counts_nothing(scripted: Scripted) -> None:
    expired = Answer(410, contents.status(410, "Expired", "the token is too old"))
    scripted.answers[PATHS["nodes"]] = lambda received: (
        expired if "continue" in received.query else Answer(body=contents.dump(page(node(), token="2")))
    )
    section = await scripted.section("nodes")
    assert section.value is None
    assert section.failure.message == "410 Gone: the token is too old"
