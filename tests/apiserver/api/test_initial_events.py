"""Bookmarks, ``sendInitialEvents``, and the other representations of a watch."""

from __future__ import annotations

import time

import pytest
import yaml

from clusterregistry.apiserver.storage.cacher.cache import Cacher
from tests.apiserver.api.clients import ADMIN_TOKEN, Client, Event, latest_version
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS, GROUP_VERSION, PARTIAL, TABLE, cluster, path_of

STREAMED = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


def is_end_of_initial_events(event: Event) -> bool:
    annotations = event["object"]["metadata"].get("annotations", {})
    return bool(event["type"] == "BOOKMARK" and annotations == {"k8s.io/initial-events-end": "true"})


@pytest.mark.parametrize("query", [{}, {"resourceVersion": ""}, {"resourceVersion": "0"}, {"resourceVersion": "now"}])
def test_the_initial_events_end_with_a_bookmark_of_their_version(client: Client, query: dict[str, str]) -> None:
    made = client.post(CLUSTERS, cluster("a")).expect(201)
    client.post(CLUSTERS, cluster("b")).expect(201)
    client.delete(path_of("b")).expect(200)
    at = latest_version(client)
    given = {name: value.replace("now", at) for name, value in query.items()}
    with client.watch(CLUSTERS, allowWatchBookmarks="true", **STREAMED, **given) as watch:
        existing, bookmark = watch.take(2)
        assert existing == {"type": "ADDED", "object": made}
        assert is_end_of_initial_events(bookmark)
        assert bookmark["object"] == {
            "apiVersion": GROUP_VERSION,
            "kind": "Cluster",
            "metadata": {"resourceVersion": at, "annotations": {"k8s.io/initial-events-end": "true"}},
        }
        later = client.post(CLUSTERS, cluster("c")).expect(201)
        assert watch.next() == {"type": "ADDED", "object": later}


def test_an_empty_registry_begins_with_the_bookmark(client: Client) -> None:
    with client.watch(CLUSTERS, allowWatchBookmarks="true", **STREAMED) as watch:
        assert is_end_of_initial_events(watch.next())


def test_the_bookmark_of_a_selection_comes_after_the_selected(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", labels={"x": "1"})).expect(201)
    client.post(CLUSTERS, cluster("b")).expect(201)
    with client.watch(CLUSTERS, allowWatchBookmarks="true", labelSelector="x=1", **STREAMED) as watch:
        existing, bookmark = watch.take(2)
    assert existing["object"]["metadata"]["name"] == "a"
    assert is_end_of_initial_events(bookmark)


def test_without_bookmarks_the_initial_events_just_end(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    with client.watch(CLUSTERS, **STREAMED) as watch:
        client.post(CLUSTERS, cluster("b")).expect(201)
        assert [event["type"] for event in watch.take(2)] == ["ADDED", "ADDED"]


@pytest.mark.parametrize("query", [{}, {"resourceVersion": ""}, {"resourceVersion": "0"}])
def test_initial_events_can_be_left_out(client: Client, query: dict[str, str]) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    left_out = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    with client.watch(CLUSTERS, **left_out, **query) as watch:
        client.post(CLUSTERS, cluster("b")).expect(201)
        assert watch.next()["object"]["metadata"]["name"] == "b"


def test_initial_events_of_a_version_to_come_are_an_error_in_the_stream(
    local: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kube-apiserver does: what goes wrong once a watch is made is an event of it."""
    monkeypatch.setattr(Cacher.wait_for, "__defaults__", (0.1,))
    with local.watch(CLUSTERS, resourceVersion="4000000000000", allowWatchBookmarks="true", **STREAMED) as watch:
        assert watch.status == 200
        (error,) = watch.rest()
    assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 504, "Timeout")


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}])
def test_bookmarks_mark_the_end_of_what_existed(client: Client, query: dict[str, str]) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    with client.watch(CLUSTERS, allowWatchBookmarks="true", **query) as watch:
        existing, bookmark = watch.take(2)
    assert existing["type"] == "ADDED"
    assert is_end_of_initial_events(bookmark)


def test_a_resumed_watch_begins_with_no_bookmark(client: Client) -> None:
    with client.watch(CLUSTERS, allowWatchBookmarks="true", resourceVersion=latest_version(client)) as watch:
        client.post(CLUSTERS, cluster("a")).expect(201)
        assert watch.next()["type"] == "ADDED"


def test_a_bookmark_comes_before_the_time_is_up(local: InProcessClient) -> None:
    """As kube-apiserver does: two seconds before the end, so that the client can resume from close to now."""
    start = latest_version(local)
    with local.watch(CLUSTERS, allowWatchBookmarks="true", resourceVersion=start, timeoutSeconds=3) as watch:
        local.post(CLUSTERS, cluster("a")).expect(201)
        added, *bookmarks = watch.rest()
    assert added["type"] == "ADDED"
    assert [event["type"] for event in bookmarks] == ["BOOKMARK"]
    assert bookmarks[0]["object"] == {
        "apiVersion": GROUP_VERSION,
        "kind": "Cluster",
        "metadata": {"resourceVersion": added["object"]["metadata"]["resourceVersion"]},
    }


def test_bookmarks_come_periodically(local: InProcessClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterregistry.apiserver.endpoints.watch._BOOKMARK_INTERVAL", 0.05)
    start = latest_version(local)
    with (
        local.watch(CLUSTERS, allowWatchBookmarks="true", labelSelector="x=1", resourceVersion=start) as asked,
        local.watch(CLUSTERS, labelSelector="x=1", resourceVersion=start) as not_asked,
    ):
        at = local.post(CLUSTERS, cluster("unselected")).expect(201)["metadata"]["resourceVersion"]
        bookmarks = iter(asked)
        assert next(event for event in bookmarks if event["object"]["metadata"]["resourceVersion"] == at)
        local.post(CLUSTERS, cluster("a", labels={"x": "1"})).expect(201)
        assert not_asked.next()["type"] == "ADDED"


def test_a_bookmark_never_overtakes_an_event(local: InProcessClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that resumes from a bookmark must have seen all older events, also if it reads slowly."""
    monkeypatch.setattr("clusterregistry.apiserver.endpoints.watch._BOOKMARK_INTERVAL", 0.05)
    query = f"watch=true&allowWatchBookmarks=true&resourceVersion={latest_version(local)}"
    headers = [("Authorization", f"Bearer {ADMIN_TOKEN}")]
    with local.stalled_watch(f"{CLUSTERS}?{query}", headers=headers) as watch:
        local.post(CLUSTERS, cluster("a")).expect(201)
        time.sleep(0.1)  # the first event is being written, and a bookmark is due
        local.post(CLUSTERS, cluster("b")).expect(201)
        watch.go_on()
        newest = 0
        while True:
            event = watch.next()
            version = int(event["object"]["metadata"]["resourceVersion"])
            assert event["type"] == "BOOKMARK" or version > newest
            newest = max(newest, version)
            if event["object"]["metadata"].get("name") == "b":
                break


def test_a_bookmark_is_never_older_than_what_the_client_has(
    local: InProcessClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another replica may have sent it newer events than this one has; an older bookmark would repeat them."""
    monkeypatch.setattr("clusterregistry.apiserver.endpoints.watch._BOOKMARK_INTERVAL", 0.05)
    ahead = int(latest_version(local)) + 1
    with local.watch(CLUSTERS, allowWatchBookmarks="true", resourceVersion=ahead, timeoutSeconds=1) as watch:
        assert watch.rest() == []


def columns(events: list[Event]) -> list[bool]:
    return [bool(event["object"]["columnDefinitions"]) for event in events]


def test_a_table_names_its_columns_only_once(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.post(CLUSTERS, cluster("b")).expect(201)
    with client.watch(CLUSTERS, headers=TABLE) as watch:
        client.patch(path_of("a"), {"metadata": {"labels": {"x": "1"}}}).expect(200)
        client.delete(path_of("b")).expect(200)
        events = watch.take(4)
    assert [event["object"]["kind"] for event in events] == ["Table"] * 4
    assert columns(events) == [True, False, False, False]
    assert [event["object"]["rows"][0]["cells"][0] for event in events] == ["a", "b", "a", "b"]


def test_each_watch_of_tables_gets_its_columns(client: Client) -> None:
    start = latest_version(client)
    with (
        client.watch(CLUSTERS, headers=TABLE, resourceVersion=start) as one,
        client.watch(CLUSTERS, headers=TABLE, resourceVersion=start) as two,
    ):
        client.post(CLUSTERS, cluster("a")).expect(201)
        first, second = one.next(), two.next()
    assert first == second
    assert columns([first]) == [True]


def test_a_bookmark_that_comes_first_brings_the_columns(client: Client) -> None:
    with client.watch(CLUSTERS, headers=TABLE, allowWatchBookmarks="true") as watch:
        bookmark = watch.next()
        client.post(CLUSTERS, cluster("a")).expect(201)
        added = watch.next()
    assert (bookmark["type"], bookmark["object"]["kind"]) == ("BOOKMARK", "Table")
    assert columns([bookmark, added]) == [True, False]


@pytest.mark.parametrize(
    ("include", "kind"), [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "Cluster")]
)
def test_the_rows_of_a_table_carry_what_was_asked_for(client: Client, include: str, kind: str) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    with client.watch(CLUSTERS, headers=TABLE, includeObject=include) as watch:
        (row,) = watch.next()["object"]["rows"]
    assert row["object"]["kind"] == kind


def test_metadata_alone(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    with client.watch(CLUSTERS, headers=PARTIAL, allowWatchBookmarks="true") as watch:
        added, bookmark = watch.take(2)
    assert added["object"]["kind"] == bookmark["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in added["object"]
    assert is_end_of_initial_events(bookmark)


def test_an_error_is_a_status_in_every_representation(local: InProcessClient) -> None:
    start = latest_version(local)
    local.post(CLUSTERS, cluster("a")).expect(201)
    local.server.compact(int(latest_version(local)))
    for headers in ({}, TABLE, PARTIAL):
        with local.watch(CLUSTERS, headers=headers, resourceVersion=start) as watch:
            (error,) = watch.rest()
        assert (error["type"], error["object"]["kind"], error["object"]["code"]) == ("ERROR", "Status", 410)


@pytest.mark.parametrize("accept", ["text/html", "application/yaml", "application/yaml;as=Table;v=v1;g=meta.k8s.io"])
def test_only_json_can_be_streamed(client: Client, accept: str) -> None:
    """As kube-apiserver does: YAML has no frames."""
    answer = client.get(CLUSTERS, watch="true", timeoutSeconds=1, headers={"Accept": accept})
    assert answer.status == 406
    assert yaml.safe_load(answer.body)["reason"] == "NotAcceptable"  # JSON is YAML too


def test_the_media_type_of_a_stream_may_be_named(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    with client.watch(CLUSTERS, headers={"Accept": "application/json;stream=watch"}) as watch:
        assert watch.next()["type"] == "ADDED"


def test_the_stream_is_json(client: Client) -> None:
    with client.watch(CLUSTERS) as watch:
        assert (watch.status, watch.content_type) == (200, "application/json")
