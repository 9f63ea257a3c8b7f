"""Namespaces, events and leases over the API. Recordings of kube-apiserver have more: area native."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from clusterregistry.apimachinery.codecs import protobuf_codec
from tests.apiserver.api.clients import causes
from tests.apiserver.api.in_process import InProcess, InProcessClient
from tests.apiserver.api.objects import APPLY_PATCH, TABLE

NAMESPACES = "/api/v1/namespaces"
EVENTS, NEW_EVENTS, LEASES = "/api/v1", "/apis/events.k8s.io/v1", "/apis/coordination.k8s.io/v1"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TIME = "2020-02-03T04:05:06.000007Z"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("native")).running() as started:
        yield started


@pytest.fixture
def client(server: InProcess) -> InProcessClient:
    return server.client()


@pytest.fixture
def namespace(client: InProcessClient) -> str:
    name = f"n-{uuid.uuid4().hex[:8]}"
    client.post(NAMESPACES, {"metadata": {"name": name}}).expect(201)
    return name


def event(namespace: str, **fields: Any) -> dict[str, Any]:
    involved = {"kind": "Pod", "name": "p", "namespace": namespace, "uid": "u"}
    return {
        "metadata": {"name": "e"},
        "involvedObject": involved,
        "reason": "Started",
        "message": "it started",
        **fields,
    }


def new_event(namespace: str, **fields: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "e"},
        "eventTime": TIME,
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "action": "Starting",
        "reason": "Started",
        "regarding": {"kind": "Pod", "name": "p", "namespace": namespace},
        "note": "it started",
        "type": "Normal",
        **fields,
    }


def test_an_event_is_one_object_in_both_groups(client: InProcessClient, namespace: str) -> None:
    old, new = f"{EVENTS}/namespaces/{namespace}/events", f"{NEW_EVENTS}/namespaces/{namespace}/events"
    created = client.post(new, new_event(namespace)).expect(201)
    assert created["apiVersion"] == "events.k8s.io/v1"
    found = client.get(f"{old}/e").expect(200)
    assert found["apiVersion"] == "v1"
    assert (found["message"], found["reportingComponent"]) == ("it started", "example.com/c")
    assert found["metadata"] == created["metadata"]
    changed = client.patch(f"{old}/e", {"message": "it failed"}).expect(200)
    assert client.get(f"{new}/e").expect(200)["note"] == "it failed"
    assert (
        client.get(new).expect(200)["items"][0]["metadata"]["resourceVersion"]
        == (changed["metadata"]["resourceVersion"])
    )


def test_each_group_has_its_own_rules(client: InProcessClient, namespace: str) -> None:
    old, new = f"{EVENTS}/namespaces/{namespace}/events", f"{NEW_EVENTS}/namespaces/{namespace}/events"
    client.post(old, event(namespace, metadata={"name": "Not_a_subdomain"}, type="Odd")).expect(201)
    wrong = new_event(namespace, metadata={"name": "Not_a_subdomain"}, type="Odd", eventTime=None)
    status = client.post(new, wrong).refused(422, "Invalid")
    assert causes(status) == [
        ("metadata.name", "FieldValueInvalid"),
        ("eventTime", "FieldValueRequired"),
        ("type", "FieldValueInvalid"),
    ]
    assert status["message"].startswith('Event "Not_a_subdomain" is invalid: ')
    client.put(f"{new}/e", new_event(namespace)).expect(201)
    assert causes(client.put(f"{new}/e", new_event(namespace, note="other")).refused(422, "Invalid")) == [
        ("message", "FieldValueInvalid")
    ]


@pytest.mark.parametrize(
    ("root", "selector", "names"),
    [
        (EVENTS, "involvedObject.uid=u", ["e"]),
        (EVENTS, "source=c", ["e"]),
        (EVENTS, "involvedObject.name!=p", []),
        (NEW_EVENTS, "regarding.uid=u,reason=Started", ["e"]),
        (NEW_EVENTS, "reportingController=c", ["e"]),
        (EVENTS, "regarding.uid=u", None),
        (NEW_EVENTS, "involvedObject.uid=u", None),
    ],
)
def test_each_group_selects_by_its_own_names_of_fields(
    client: InProcessClient, namespace: str, root: str, selector: str, names: list[str] | None
) -> None:
    path = f"{root}/namespaces/{namespace}/events"
    client.post(f"{EVENTS}/namespaces/{namespace}/events", event(namespace, reportingComponent="c")).expect(201)
    answer = client.get(path, fieldSelector=selector)
    if names is None:
        assert "field label not supported" in answer.refused(400, "BadRequest")["message"]
    else:
        assert [item["metadata"]["name"] for item in answer.expect(200)["items"]] == names


@pytest.mark.parametrize("root", [EVENTS, NEW_EVENTS])
def test_the_table_of_events_has_two_ages(client: InProcessClient, namespace: str, root: str) -> None:
    sent = event(namespace, lastTimestamp="2020-02-03T04:05:06Z", count=3, source={"component": "c", "host": "h"})
    client.post(f"{EVENTS}/namespaces/{namespace}/events", sent).expect(201)
    table = client.get(f"{root}/namespaces/{namespace}/events", headers=TABLE).expect(200)
    assert [column["name"] for column in table["columnDefinitions"]] == [
        *("Last Seen", "Type", "Reason", "Object", "Subobject", "Source", "Message", "First Seen", "Count", "Name")
    ]
    (row,) = table["rows"]
    last_seen, *cells = row["cells"]
    assert last_seen.endswith("d")
    assert cells == ["", "Started", "pod/p", "", "c, h", "it started", "<unknown>", 3, "e"]


def test_a_lease_travels_as_protobuf(client: InProcessClient, namespace: str) -> None:
    path, types = f"{LEASES}/namespaces/{namespace}/leases", {"Content-Type": PROTOBUF, "Accept": PROTOBUF}
    sent = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "a", "namespace": namespace},
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": TIME, "leaseTransitions": 0},
    }
    answer = client.post(path, protobuf_codec.encode(sent), headers=types)
    assert (answer.status, answer.header("Content-Type")) == (201, PROTOBUF)
    created = protobuf_codec.decode(answer.body).value
    assert created == client.get(f"{path}/a").expect(200)
    assert created["spec"] == sent["spec"]
    renewed = {**created, "spec": {**created["spec"], "holderIdentity": "me"}}
    answer = client.put(f"{path}/a", protobuf_codec.encode(renewed), headers=types)
    assert protobuf_codec.decode(answer.body).value["spec"]["holderIdentity"] == "me"
    client.put(f"{path}/a", renewed).refused(409, "Conflict")
    listed = protobuf_codec.decode(client.get(path, headers={"Accept": PROTOBUF}).body).value
    assert (listed["kind"], [item["metadata"]["name"] for item in listed["items"]]) == ("LeaseList", ["a"])


@pytest.mark.parametrize(
    ("root", "applied", "reason"),
    [
        (
            LEASES,
            {"kind": "Lease", "spec": {"renewTime": "x"}},
            'parsing time "x" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "x" as "2006"',
        ),
        (
            EVENTS,
            {"kind": "Event", "firstTimestamp": "2026-13-01T00:00:00Z"},
            'parsing time "2026-13-01T00:00:00Z": month out of range',
        ),
        (
            NEW_EVENTS,
            {"kind": "Event", "series": {"count": 1, "lastObservedTime": "="}},
            'parsing time "=" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "=" as "2006"',
        ),
    ],
)
def test_an_applied_value_that_the_struct_cannot_hold_is_refused(
    client: InProcessClient, namespace: str, root: str, applied: dict[str, Any], reason: str
) -> None:
    """kube-apiserver answers 500 with this message: its schema for apply knows strings, not times."""
    path = f"{root}/namespaces/{namespace}/{applied['kind'].lower()}s/a"
    version = root.removeprefix("/apis/").removeprefix("/api/")
    body = {"apiVersion": version, "metadata": {"name": "a"}, **applied}
    refused = client.patch(path, body, kind=APPLY_PATCH, fieldManager="test").expect(400)
    kind = f"{version if '/' in version else '/' + version}, Kind={applied['kind']}"
    assert refused["message"] == (
        f"failed to convert new object (/a; {kind}) to proper version: "
        f"unable to convert unstructured object to {kind}: {reason}"
    )


def test_a_renewal_names_the_version_that_it_is_based_on(client: InProcessClient, namespace: str) -> None:
    path = f"{LEASES}/namespaces/{namespace}/leases/a"
    client.put(path, {"metadata": {"name": "a"}, "spec": {}}).expect(201)
    status = client.put(path, {"metadata": {"name": "a"}, "spec": {}}).refused(422, "Invalid")
    assert causes(status) == [("metadata.resourceVersion", "FieldValueInvalid")]


def test_finalizers_hold_a_deleted_namespace(client: InProcessClient) -> None:
    name = f"held-{uuid.uuid4().hex[:8]}"
    client.post(NAMESPACES, {"metadata": {"name": name}, "spec": {"finalizers": ["example.com/own"]}}).expect(201)
    deleted = client.delete(f"{NAMESPACES}/{name}").expect(200)
    assert (deleted["status"]["phase"], deleted["kind"]) == ("Terminating", "Namespace")
    assert "example.com/own" in client.get(f"{NAMESPACES}/{name}").expect(200)["spec"]["finalizers"]
    finalized = client.put(f"{NAMESPACES}/{name}/finalize", {"metadata": {"name": name}}).expect(200)
    assert finalized["spec"] == {}
    client.get(f"{NAMESPACES}/{name}").refused(404, "NotFound")
