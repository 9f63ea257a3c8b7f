"""Watches: events, selectors, the older paths, the end of a watch."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.apiserver.api.clients import Client, Watch, causes, latest_version, summary
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS, HOLD, OLD_WATCH, cluster, path_of


def version_of(obj: dict[str, Any]) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version


def label(client: Client, name: str, **labels: str | None) -> dict[str, Any]:
    changed: dict[str, Any] = client.patch(path_of(name), {"metadata": {"labels": labels}}).expect(200)
    return changed


def test_events_carry_what_the_writes_answered(client: Client) -> None:
    with client.watch(CLUSTERS, resourceVersion=latest_version(client)) as watch:
        made = client.post(CLUSTERS, cluster("a")).expect(201)
        changed = client.put(path_of("a"), cluster("a", "gce")).expect(200)
        client.delete(path_of("a")).expect(200)
        added, modified, deleted = watch.take(3)
    assert added == {"type": "ADDED", "object": made}
    assert modified == {"type": "MODIFIED", "object": changed}
    assert deleted["type"] == "DELETED"
    assert int(version_of(deleted["object"])) > int(version_of(changed))
    deleted["object"]["metadata"]["resourceVersion"] = version_of(changed)
    assert deleted["object"] == changed


def test_a_watch_resumes_from_every_revision(client: Client) -> None:
    start = int(latest_version(client))
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.post(CLUSTERS, cluster("b")).expect(201)
    label(client, "a", x="1")
    client.delete(path_of("b")).expect(200)
    client.post(CLUSTERS, cluster("b")).expect(201)
    client.delete(path_of("a")).expect(200)
    every = [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b"), ("ADDED", "b"), ("DELETED", "a")]
    for skipped in range(len(every)):
        with client.watch(CLUSTERS, resourceVersion=start + skipped) as watch:
            events = watch.take(len(every) - skipped)
        assert summary(events) == every[skipped:]
        versions = [int(version_of(event["object"])) for event in events]
        assert versions == list(range(start + skipped + 1, start + len(every) + 1))


def test_a_watch_of_the_past_goes_on_with_the_present(client: Client) -> None:
    start = latest_version(client)
    client.post(CLUSTERS, cluster("a")).expect(201)
    with client.watch(CLUSTERS, resourceVersion=start) as watch:
        assert summary(watch.take(1)) == [("ADDED", "a")]
        client.delete(path_of("a")).expect(200)
        assert summary(watch.take(1)) == [("DELETED", "a")]


@pytest.mark.parametrize("query", [{}, {"resourceVersion": ""}, {"resourceVersion": "0"}])
def test_without_a_version_a_watch_begins_with_the_existing_objects(client: Client, query: dict[str, str]) -> None:
    made = [client.post(CLUSTERS, cluster(name)).expect(201) for name in ("b", "a")]
    with client.watch(CLUSTERS, **query) as watch:
        existing = watch.take(2)
        assert existing == [{"type": "ADDED", "object": made[1]}, {"type": "ADDED", "object": made[0]}]
        label(client, "a", x="1")
        assert summary(watch.take(1)) == [("MODIFIED", "a")]


@pytest.mark.parametrize("selector", [{"labelSelector": "x=1"}, {"fieldSelector": "metadata.name=a"}])
def test_selectors_apply_to_existing_objects_too(client: Client, selector: dict[str, str]) -> None:
    client.post(CLUSTERS, cluster("a", labels={"x": "1"})).expect(201)
    client.post(CLUSTERS, cluster("b", labels={"x": "2"})).expect(201)
    with client.watch(CLUSTERS, **selector) as watch:
        label(client, "b", y="1")
        label(client, "a", y="1")
        assert summary(watch.take(2)) == [("ADDED", "a"), ("MODIFIED", "a")]


def test_objects_enter_and_leave_a_selection(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    with client.watch(CLUSTERS, resourceVersion=latest_version(client), labelSelector="x in (1,2)") as watch:
        entered = label(client, "a", x="1")
        stayed = label(client, "a", x="2")
        left = label(client, "a", x="3")
        label(client, "a", x="4")
        again = label(client, "a", x="1")
        client.delete(path_of("a")).expect(200)
        events = watch.take(5)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    assert [events[0]["object"], events[1]["object"], events[3]["object"]] == [entered, stayed, again]
    assert events[2]["object"]["metadata"]["labels"] == {"x": "2"}
    assert version_of(events[2]["object"]) == version_of(left)


def test_a_resumed_watch_has_the_same_events_of_a_selection(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    start = latest_version(client)
    with client.watch(CLUSTERS, resourceVersion=start, labelSelector="x=1") as live:
        for value in ("1", "2", "1", None):
            label(client, "a", x=value)
        seen = live.take(4)
    with client.watch(CLUSTERS, resourceVersion=start, labelSelector="x=1") as later:
        assert later.take(4) == seen


def test_an_object_that_never_matched_has_no_events(client: Client) -> None:
    with client.watch(CLUSTERS, resourceVersion=latest_version(client), labelSelector="x=1") as watch:
        client.post(CLUSTERS, cluster("a")).expect(201)
        client.delete(path_of("a")).expect(200)
        client.post(CLUSTERS, cluster("b", labels={"x": "1"})).expect(201)
        assert summary(watch.take(1)) == [("ADDED", "b")]


def test_a_field_selector_that_excludes_a_name(client: Client) -> None:
    with client.watch(CLUSTERS, resourceVersion=latest_version(client), fieldSelector="metadata.name!=a") as watch:
        client.post(CLUSTERS, cluster("a")).expect(201)
        client.post(CLUSTERS, cluster("b")).expect(201)
        assert summary(watch.take(1)) == [("ADDED", "b")]


def test_the_older_path_of_a_collection(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    with client.watch(OLD_WATCH) as watch:
        client.post(CLUSTERS, cluster("b")).expect(201)
        assert summary(watch.take(2)) == [("ADDED", "a"), ("ADDED", "b")]


def test_the_older_path_of_one_object_has_its_events_only(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.post(CLUSTERS, cluster("b")).expect(201)
    with client.watch(f"{OLD_WATCH}/b") as watch:
        label(client, "a", x="1")
        label(client, "b", x="1")
        client.delete(path_of("b")).expect(200)
        assert summary(watch.take(3)) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]


def test_the_older_path_of_an_object_that_does_not_exist_yet(client: Client) -> None:
    with client.watch(f"{OLD_WATCH}/later", resourceVersion=latest_version(client)) as watch:
        client.post(CLUSTERS, cluster("other")).expect(201)
        client.post(CLUSTERS, cluster("later")).expect(201)
        assert summary(watch.take(1)) == [("ADDED", "later")]


def test_the_older_path_of_one_object_and_another_name_do_not_go_together(client: Client) -> None:
    client.get(f"{OLD_WATCH}/a", fieldSelector="metadata.name=b", timeoutSeconds=1).refused(400, "BadRequest")


def test_an_objects_own_path_answers_the_object(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    assert client.get(path_of("a"), watch="true").expect(200) == made


def test_the_older_paths_can_only_be_read(client: Client) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        client.request(method, OLD_WATCH, body={}).refused(405, "MethodNotAllowed")


def test_the_values_of_the_parameter_watch(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    for true in ("true", "1", "True", "yes", ""):
        with client.watch(CLUSTERS, watch=true) as watch:
            assert summary(watch.take(1)) == [("ADDED", "a")]
    for false in ("false", "0", "False"):
        assert client.get(CLUSTERS, watch=false).expect(200)["kind"] == "ClusterList"


def test_a_watch_ends_after_its_timeout_without_an_event(client: Client) -> None:
    began = time.monotonic()
    with client.watch(CLUSTERS, resourceVersion=latest_version(client), timeoutSeconds=1) as watch:
        assert watch.rest() == []
    assert time.monotonic() - began > 0.9


def test_a_watch_waits_for_a_future_version(client: Client) -> None:
    future = int(latest_version(client)) + 2
    with client.watch(CLUSTERS, resourceVersion=future) as watch:
        for name in "abc":
            client.post(CLUSTERS, cluster(name)).expect(201)
        assert summary(watch.take(1)) == [("ADDED", "c")]


def test_a_version_that_is_too_old_is_an_error_in_the_stream(local: InProcessClient) -> None:
    start = latest_version(local)
    for name in "abc":
        local.post(CLUSTERS, cluster(name)).expect(201)
    local.server.compact(int(latest_version(local)))
    with local.watch(CLUSTERS, resourceVersion=start) as watch:
        assert watch.status == 200
        (error,) = watch.rest()
    assert error["type"] == "ERROR"
    status = error["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith(f"too old resource version: {start} (")


def test_the_compacted_revision_itself_can_still_be_resumed_from(local: InProcessClient) -> None:
    local.post(CLUSTERS, cluster("a")).expect(201)
    middle = latest_version(local)
    local.server.compact(int(middle))
    local.post(CLUSTERS, cluster("b")).expect(201)
    with local.watch(CLUSTERS, resourceVersion=middle) as watch:
        assert summary(watch.take(1)) == [("ADDED", "b")]


def test_a_compaction_does_not_disturb_open_watches(local: InProcessClient) -> None:
    with local.watch(CLUSTERS, resourceVersion=latest_version(local)) as watch:
        local.post(CLUSTERS, cluster("a")).expect(201)
        local.server.compact(int(latest_version(local)))
        local.post(CLUSTERS, cluster("b")).expect(201)
        assert summary(watch.take(2)) == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ({"resourceVersionMatch": "NotOlderThan"}, ["FieldValueForbidden"]),
        ({"sendInitialEvents": "true"}, ["FieldValueForbidden"]),
        ({"sendInitialEvents": "false"}, ["FieldValueForbidden"]),
        (
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact", "resourceVersion": "1"},
            ["FieldValueForbidden", "FieldValueNotSupported"],
        ),
        (
            {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "continue": "x"},
            ["FieldValueForbidden"],
        ),
    ],
)
def test_options_that_do_not_go_together(client: Client, query: dict[str, str], wrong: list[str]) -> None:
    refused = client.get(CLUSTERS, watch="true", timeoutSeconds=1, **query).refused(422, "Invalid")
    assert causes(refused) == [("resourceVersionMatch", reason) for reason in wrong]


def test_an_invalid_query_is_refused_before_the_stream_begins(client: Client) -> None:
    for query in (
        {"resourceVersion": "abc"},
        {"resourceVersion": "-5"},
        {"timeoutSeconds": "x"},
        {"labelSelector": "a in"},
        {"fieldSelector": "spec.x=1"},
        {"limit": "x"},
    ):
        client.get(CLUSTERS, watch="true", **query).refused(400, "BadRequest")


def test_two_watchers_see_the_same(client: Client) -> None:
    start = latest_version(client)
    with client.watch(CLUSTERS, resourceVersion=start) as one, client.watch(CLUSTERS, resourceVersion=start) as two:
        for name in "abc":
            client.post(CLUSTERS, cluster(name)).expect(201)
        assert one.take(3) == two.take(3)


def test_the_deletion_of_an_object_with_finalizers_has_two_events(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", finalizers=[HOLD])).expect(201)
    with client.watch(CLUSTERS, resourceVersion=latest_version(client)) as watch:
        held = client.delete(path_of("a")).expect(200)
        client.delete(path_of("a")).expect(200)
        client.patch(path_of("a"), {"metadata": {"finalizers": None}}).expect(200)
        marked, gone = watch.take(2)
    assert marked == {"type": "MODIFIED", "object": held}
    assert gone["type"] == "DELETED"
    assert gone["object"]["metadata"]["finalizers"] == [HOLD]
    assert int(version_of(gone["object"])) == int(version_of(held)) + 1


def test_a_stopping_server_ends_open_and_new_watches(serve: Any) -> None:
    client: InProcessClient = serve()
    seen = client.get(CLUSTERS).json["metadata"]["resourceVersion"]
    with client.watch(CLUSTERS) as one, client.watch(CLUSTERS, labelSelector="x=1") as two:
        client.server.end_watches()
        assert one.rest() == two.rest() == []
    with client.watch(CLUSTERS, resourceVersion=seen) as late:
        assert late.rest() == []


def test_watches_can_be_disabled(serve: Any) -> None:
    client: InProcessClient = serve("--enable-watch=false")
    for path in (CLUSTERS, OLD_WATCH, f"{OLD_WATCH}/a"):
        client.get(path, watch="true").refused(405, "MethodNotAllowed")
    client.post(CLUSTERS, cluster("a")).expect(201)
    assert client.get(CLUSTERS).expect(200)["kind"] == "ClusterList"


def test_a_client_that_leaves_is_forgotten(local: InProcessClient) -> None:
    broadcasters = local.server.server.broadcasters
    watches: list[Watch] = [local.watch(CLUSTERS) for _ in range(3)]
    assert sum(broadcaster.watchers for broadcaster in broadcasters) == 3
    for watch in watches:
        watch.close()
    assert sum(broadcaster.watchers for broadcaster in broadcasters) == 0
