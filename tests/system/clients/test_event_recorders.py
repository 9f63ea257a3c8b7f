"""client-go's event recorders, in both APIs: what repeats is counted by patches, what is much alike is combined."""

from __future__ import annotations

from typing import Any

import pytest

from tests.system.clients.client_process import ClientProcess
from tests.system.clients.conftest import StartClient
from tests.system.clients.servers import Server
from tools.processes import wait_for

CORE, EVENTS = "v1", "events.k8s.io/v1"
Event = dict[str, Any]


def about(namespace: str, name: str = "subject", **more: str) -> dict[str, str]:
    """A reference to a Lease; whether it exists is of no interest to events."""
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": namespace, "name": name, **more}


def record(
    recorder: ClientProcess, reference: dict[str, str], *, reason: str, message: str, kind: str = "Normal"
) -> None:
    recorder.send(Do="record", About=reference, Type=kind, Reason=reason, Message=message)
    recorder.expect("recorded")


def listed(recorder: ClientProcess, **selected: str) -> list[Event]:
    """What the client itself reads back, by a field selector."""
    recorder.send(Do="list", Selector=",".join(f"{field}={value}" for field, value in selected.items()))
    items: list[Event] = recorder.expect("list")["result"].get("items") or []
    return items


def patches(server: Server, namespace: str) -> list[str]:
    """The names of the events that were patched with success in a namespace, one for each patch."""
    return [
        each["objectRef"]["name"]
        for each in server.audited()
        if each["verb"] == "patch"
        and each["objectRef"]["resource"] == "events"
        and each["objectRef"]["namespace"] == namespace
        and each["responseStatus"]["code"] == 200
    ]


@pytest.fixture
def namespace(server: Server, request: pytest.FixtureRequest, release: str) -> str:
    return server.namespace_for(request.node.originalname.removeprefix("test_").replace("_", "-"), release)


def test_equal_events_of_the_core_group_are_counted(
    server: Server, start: StartClient, release: str, namespace: str
) -> None:
    recorder = start(release, "record", server.admin_kubeconfig, f"--namespace={namespace}", "--name=tester")
    for _ in range(3):
        record(recorder, about(namespace), reason="Seen", message="the same again")
    record(recorder, about(namespace), reason="Failed", message="something else", kind="Warning")

    def counts() -> dict[str, int]:
        return {each["reason"]: each["count"] for each in listed(recorder, **{"involvedObject.name": "subject"})}

    wait_for(lambda: counts() == {"Seen": 3, "Failed": 1}, recorder.logged)
    (seen,) = listed(recorder, reason="Seen", type="Normal", source="tester")
    assert (seen["message"], seen["involvedObject"]["kind"]) == ("the same again", "Lease")
    assert seen["firstTimestamp"] <= seen["lastTimestamp"]
    wait_for(lambda: patches(server, namespace) == [seen["metadata"]["name"]] * 2, recorder.logged)
    assert listed(recorder, **{"involvedObject.name": "another"}) == []

    # An event that is gone, as one that has expired, is recorded anew.
    recorder.send(Do="delete", Name=seen["metadata"]["name"])
    recorder.expect("deleted")
    record(recorder, about(namespace), reason="Seen", message="the same again")
    wait_for(lambda: counts() == {"Seen": 4, "Failed": 1}, recorder.logged)


def test_similar_events_of_the_core_group_are_combined(
    server: Server, start: StartClient, release: str, namespace: str
) -> None:
    recorder = start(release, "record", server.admin_kubeconfig, f"--namespace={namespace}", "--name=tester")
    for number in range(14):
        record(recorder, about(namespace), reason="Tried", message=f"try number {number}")
    combined = "(combined from similar events): try number 13"
    wait_for(lambda: any(each["message"] == combined for each in listed(recorder, reason="Tried")), recorder.logged)
    found = listed(recorder, reason="Tried")
    assert len(found) == 10
    assert [each["count"] for each in found if each["message"] == combined] == [5]


def test_equal_events_of_the_events_group_are_a_series(
    server: Server, start: StartClient, release: str, namespace: str
) -> None:
    flags = f"--namespace={namespace}", "--name=tester", f"--api={EVENTS}"
    recorder = start(release, "record", server.admin_kubeconfig, *flags)
    record(recorder, about(namespace), reason="Seen", message="the same again")
    wait_for(lambda: len(listed(recorder)) == 1, recorder.logged)
    record(recorder, about(namespace), reason="Seen", message="the same again")
    wait_for(lambda: "series" in listed(recorder)[0], recorder.logged)
    (seen,) = listed(recorder, **{"regarding.kind": "Lease", "reason": "Seen", "reportingController": "tester"})
    assert seen["series"]["count"] == 2
    assert (seen["note"], seen["regarding"]["name"], seen["action"]) == ("the same again", "subject", "Testing")
    wait_for(lambda: patches(server, namespace) == [seen["metadata"]["name"]], recorder.logged)

    # The other API has the same event, in its own words.
    core = server.get(f"/api/v1/namespaces/{namespace}/events/{seen['metadata']['name']}")
    assert (core["message"], core["involvedObject"]["name"], core["reportingComponent"]) == (
        "the same again", "subject", "tester",
    )  # fmt: skip
    assert core["series"] == seen["series"]
    assert core["eventTime"] == seen["eventTime"]


def described(recorder: ClientProcess, reference: dict[str, str]) -> list[str]:
    """The messages that `kubectl describe` would show, found as it does."""
    recorder.send(Do="search", About=reference)
    items = recorder.expect("list")["result"].get("items") or []
    return [each["message"] for each in items]


@pytest.mark.parametrize("api", [CORE, EVENTS])
def test_events_of_an_object_without_a_namespace_are_in_the_default_one(
    server: Server, start: StartClient, release: str, api: str
) -> None:
    cluster = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster", "uid": f"of-{release}", "name": "a"}
    recorder = start(release, "record", server.admin_kubeconfig, "--name=tester", f"--api={api}")
    record(recorder, cluster, reason="Registered", message=f"by {api}")
    wait_for(lambda: f"by {api}" in described(recorder, cluster), recorder.logged)
    found = listed(recorder, reason="Registered")
    assert {each["metadata"]["namespace"] for each in found} == {"default"}
