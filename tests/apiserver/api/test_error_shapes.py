"""Every failure is answered with a Status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.api.clients import Answer, Client
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS, JSON_PATCH, OLD_WATCH, STRATEGIC_MERGE_PATCH, TABLE, cluster, path_of

MISTAKES: dict[str, tuple[int, Callable[[Client], Answer]]] = {
    "no such object": (404, lambda client: client.get(path_of("none"))),
    "no such object to update": (404, lambda client: client.put(path_of("none") + "/status", cluster("none"))),
    "no such object to patch": (404, lambda client: client.patch(path_of("none"), {})),
    "no such object to delete": (404, lambda client: client.delete(path_of("none"))),
    "no such object as a table": (404, lambda client: client.get(path_of("none"), headers=TABLE)),
    "no such subresource": (404, lambda client: client.get(path_of("a") + "/none")),
    "no such method": (405, lambda client: client.request("BREW", CLUSTERS)),
    "a method of another path": (405, lambda client: client.delete(path_of("a") + "/status")),
    "a method on the older path": (405, lambda client: client.delete(OLD_WATCH)),
    "a name that is taken": (409, lambda client: client.post(CLUSTERS, cluster("a"))),
    "a stale version": (409, lambda client: client.put(path_of("a"), cluster("a", resourceVersion="1"))),
    "another uid": (409, lambda client: client.put(path_of("a"), cluster("a", uid="x"))),
    "a precondition": (409, lambda client: client.delete(path_of("a"), {"preconditions": {"uid": "x"}})),
    "no body": (400, lambda client: client.post(CLUSTERS, b"")),
    "no json": (400, lambda client: client.post(CLUSTERS, b"{")),
    "no object": (400, lambda client: client.post(CLUSTERS, [])),
    "nested too deep": (400, lambda client: client.post(CLUSTERS, b"[" * 100_000)),
    "no yaml": (400, lambda client: client.post(CLUSTERS, b"a: b: c", headers={"Content-Type": "application/yaml"})),
    "another name": (400, lambda client: client.put(path_of("a"), cluster("b"))),
    "another kind": (422, lambda client: client.post(CLUSTERS, {**cluster("b"), "kind": "Other"})),
    "another version": (400, lambda client: client.post(CLUSTERS, {**cluster("b"), "apiVersion": "v1"})),
    "an invalid name": (422, lambda client: client.post(CLUSTERS, cluster("Bad_Name"))),
    "an invalid spec": (422, lambda client: client.post(CLUSTERS, {**cluster("b"), "spec": 5})),
    "metadata of a wrong type": (400, lambda client: client.post(CLUSTERS, {**cluster("b"), "metadata": 5})),
    "a version at birth": (400, lambda client: client.post(CLUSTERS, cluster("b", resourceVersion="1"))),
    "a broken patch": (400, lambda client: client.patch(path_of("a"), b"{")),
    "a patch that fails": (422, lambda client: client.patch(path_of("a"), [{"op": "x"}], kind=JSON_PATCH)),
    "a patch that is too long": (413, lambda client: client.patch(path_of("a"), [{}] * 10_001, kind=JSON_PATCH)),
    "a patch of no known kind": (415, lambda client: client.patch(path_of("a"), {}, kind="text/plain")),
    "a strategic patch of a wrong shape": (
        400,
        lambda client: client.patch(path_of("a"), [], kind=STRATEGIC_MERGE_PATCH),
    ),
    "a body of no known type": (415, lambda client: client.post(CLUSTERS, {}, headers={"Content-Type": "text/css"})),
    "a body that is too large": (413, lambda client: client.post(CLUSTERS, b" " * (3 * 1024 * 1024 + 1))),
    "nothing acceptable": (406, lambda client: client.get(CLUSTERS, headers={"Accept": "text/css"})),
    "a wrong label selector": (400, lambda client: client.get(CLUSTERS, labelSelector="a in")),
    "a wrong field selector": (400, lambda client: client.get(CLUSTERS, fieldSelector="x=y")),
    "a wrong limit": (400, lambda client: client.get(CLUSTERS, limit="x")),
    "a wrong version": (400, lambda client: client.get(CLUSTERS, resourceVersion="x")),
    "a wrong match": (422, lambda client: client.get(CLUSTERS, resourceVersionMatch="Exact")),
    "a wrong token": (400, lambda client: client.get(CLUSTERS, **{"continue": "x"})),
    "a wrong watch": (422, lambda client: client.get(CLUSTERS, watch="true", sendInitialEvents="true")),
    "a wrong dry run": (422, lambda client: client.delete(path_of("a"), dryRun="x")),
    "a wrong policy": (422, lambda client: client.delete(path_of("a"), propagationPolicy="x")),
    "wrong delete options": (400, lambda client: client.delete(path_of("a"), {"gracePeriodSeconds": "x"})),
    "a wrong field manager": (422, lambda client: client.put(path_of("a"), cluster("a"), fieldManager="x" * 200)),
    "a wrong validation": (422, lambda client: client.post(CLUSTERS, cluster("b"), fieldValidation="x")),
    "a bad token": (401, lambda client: client.get(CLUSTERS, headers={"Authorization": "Bearer x"})),
    "a bad token on health": (401, lambda client: client.get("/healthz", headers={"Authorization": "Bearer x"})),
    "no right": (403, lambda client: client.get(CLUSTERS, headers={"Authorization": "Bearer nobodytoken"})),
    "no right to a path": (403, lambda client: client.get("/metrics", headers={"Authorization": None})),
    "no right to write": (403, lambda client: client.post(CLUSTERS, b"x", headers={"Authorization": None})),
}


def assert_is_a_status(answer: Answer, status: int) -> None:
    assert answer.status == status, answer.body
    assert answer.header("Content-Type") == "application/json"
    body: dict[str, Any] = answer.json
    assert (body["kind"], body["apiVersion"], body["metadata"], body["status"], body["code"]) == (
        "Status",
        "v1",
        {},
        "Failure",
        status,
    )
    assert isinstance(body["message"], str)
    assert body["message"]
    assert body["reason"]
    assert body.keys() <= {"kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"}
    details = body.get("details", {})
    assert details.keys() <= {"name", "group", "kind", "uid", "causes", "retryAfterSeconds"}
    assert all(value not in (None, "", []) for value in details.values())
    for cause in details.get("causes", []):
        assert cause.keys() <= {"reason", "message", "field"}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.wire
def test_every_mistake_is_answered_with_a_status_and_changes_nothing(client: Client, mistake: str) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    before = client.get(CLUSTERS).expect(200)
    status, make = MISTAKES[mistake]
    assert_is_a_status(make(client), status)
    assert client.get(CLUSTERS).expect(200) == before


def test_an_internal_error_is_answered_with_a_status(
    local: InProcessClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("hunter2 in a local variable")

    monkeypatch.setattr("clusterregistry.apiserver.registry.store.Store.get", broken)
    answer = local.get(path_of("a"))
    assert_is_a_status(answer, 500)
    assert b"hunter2" not in answer.body
    audit_id = answer.header("Audit-Id")
    assert audit_id
    assert audit_id in answer.json["message"]
    assert any(audit_id in record.getMessage() and record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    ("body", "ending"),
    [
        (b"", "json parse error: unexpected end of JSON input (<empty>)"),
        (b" ", "json parse error: unexpected end of JSON input (20)"),
        (b'{"apiVersion":"a/b/c"}', 'unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c"})'),
        (b"nope", "invalid character 'o' in literal null (expecting 'u') (6e6f7065)"),
        (b"x" * 30, f"invalid character 'x' looking for beginning of value ({'78' * 30})"),
        (b"x" * 31, f"invalid character 'x' looking for beginning of value ({'78' * 30} ...)"),
        (b'{"a":"' + "é".encode() * 12 + b'"', f'unexpected end of JSON input ({{"a":"{"é" * 12} ...)'),
        (b'{"a":1"' + "é".encode() * 12, 'after object key:value pair ({"a":1"' + "é" * 11 + "\ufffd ...)"),
    ],
)
def test_the_first_thirty_bytes_of_a_body_that_is_no_object_are_shown(
    local: InProcessClient, body: bytes, ending: str
) -> None:
    assert local.post(CLUSTERS, body).json["message"].endswith(ending)
