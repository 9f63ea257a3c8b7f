"""Watches of users who may see some objects, while their rights change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.api.clients import NOBODY, Client, Watch, latest_version, summary
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS, OLD_WATCH, PARTIAL, TABLE, cluster, path_of
from tests.apiserver.api.rbac_objects import rule
from tests.apiserver.api.rights import Rights

STREAMED = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


def fill(client: Client, letters: str = "abc") -> dict[str, dict[str, Any]]:
    """The objects as they were made, by name."""
    return {name: client.post(CLUSTERS, cluster(name)).expect(201) for name in letters}


def open_watch(client: Client, **query: Any) -> Watch:
    headers = {**NOBODY, **query.pop("headers", {})}
    watch = client.watch(CLUSTERS, headers=headers, **query)
    assert watch.status == 200
    return watch


def test_a_watch_begins_with_what_is_visible_and_goes_on_with_that(client: InProcessClient, rights: Rights) -> None:
    made = fill(client)
    rights.sees("nobody", "a", "d")
    with open_watch(client) as watch:
        assert watch.next() == {"type": "ADDED", "object": made["a"]}
        client.put(path_of("b"), cluster("b", "gcp")).expect(200)
        changed = client.put(path_of("a"), cluster("a", "gcp")).expect(200)
        client.delete(path_of("c")).expect(200)
        fill(client, "d")
        client.delete(path_of("a")).expect(200)
        assert watch.next() == {"type": "MODIFIED", "object": changed}
        assert summary(watch.take(2)) == [("ADDED", "d"), ("DELETED", "a")]


def test_a_user_who_may_see_nothing_cannot_watch(client: InProcessClient, rights: Rights) -> None:
    rights.sees("nobody")
    client.get(CLUSTERS, headers=NOBODY, watch="true").refused(403, "Forbidden")
    rights.sees("nobody", "a")
    client.get(CLUSTERS, headers=NOBODY, watch="true", fieldSelector="metadata.name=b").refused(403, "Forbidden")
    client.get(f"{OLD_WATCH}/b", headers=NOBODY).refused(403, "Forbidden")


def test_one_object_is_watched_by_its_name(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a", "b")
    with (
        open_watch(client, fieldSelector="metadata.name=b") as watch,
        client.watch(f"{OLD_WATCH}/b", headers=NOBODY) as old,
    ):
        assert summary(watch.take(1)) == summary(old.take(1)) == [("ADDED", "b")]
        rights.sees("nobody", "a")
        assert summary(watch.take(1)) == summary(old.take(1)) == [("DELETED", "b")]


def test_rights_gained_are_added_events_with_the_objects_as_they_are(client: InProcessClient, rights: Rights) -> None:
    made = fill(client)
    rights.sees("nobody", "a")
    with open_watch(client) as watch:
        assert summary(watch.take(1)) == [("ADDED", "a")]
        rights.sees("nobody", "a", "c", "b")
        assert watch.take(2) == [{"type": "ADDED", "object": made["b"]}, {"type": "ADDED", "object": made["c"]}]
        client.delete(path_of("b")).expect(200)
        assert summary(watch.take(1)) == [("DELETED", "b")]


def test_rights_lost_are_deleted_events_with_the_last_state(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a", "b")
    with open_watch(client) as watch:
        watch.take(2)
        last = client.put(path_of("a"), cluster("a", "gcp")).expect(200)
        assert summary(watch.take(1)) == [("MODIFIED", "a")]
        before = latest_version(client)
        changed = rights.sees("nobody", "b")
        client.put(path_of("a"), cluster("a", "azure")).expect(200)
        deleted = watch.next()
        shown = {**last, "metadata": {**last["metadata"], "resourceVersion": before}}
        assert deleted == {"type": "DELETED", "object": shown}
        assert int(before) < changed
        client.put(path_of("b"), cluster("b", "gcp")).expect(200)
        assert summary(watch.take(1)) == [("MODIFIED", "b")]


def test_a_user_without_rights_keeps_an_empty_watch(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a")
    with open_watch(client) as watch:
        watch.take(1)
        rights.sees("nobody")
        assert summary(watch.take(1)) == [("DELETED", "a")]
        client.put(path_of("a"), cluster("a", "gcp")).expect(200)
        rights.sees("nobody", "b")
        assert summary(watch.take(1)) == [("ADDED", "b")]


def test_a_user_may_gain_and_lose_the_right_to_all(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "b")
    with open_watch(client) as watch:
        watch.take(1)
        rights.has("nobody", rule("get", "list", "watch"))
        assert summary(watch.take(2)) == [("ADDED", "a"), ("ADDED", "c")]
        fill(client, "d")
        assert summary(watch.take(1)) == [("ADDED", "d")]
        rights.sees("nobody", "b")
        assert sorted(summary(watch.take(3))) == [("DELETED", "a"), ("DELETED", "c"), ("DELETED", "d")]


def test_a_change_of_the_rights_of_others_has_no_events(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a")
    start = latest_version(client)
    with open_watch(client, allowWatchBookmarks="true") as watch:
        watch.take(2)
        rights.sees("viewer", "a", "b")
        client.delete(path_of("a")).expect(200)
        assert summary(watch.take(1)) == [("DELETED", "a")]
    with open_watch(client, resourceVersion=start) as watch:
        assert summary(watch.take(1)) == [("DELETED", "a")]


def test_a_change_of_rights_that_shows_nothing_new_is_a_bookmark(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a")
    with open_watch(client, allowWatchBookmarks="true") as watch:
        watch.take(2)
        changed = rights.sees("nobody", "a", "missing")
        bookmark = watch.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"]["resourceVersion"] == str(changed)


def test_a_watch_from_before_the_right_to_all_is_expired(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a")
    start = latest_version(client)
    granted = rights.has("nobody", rule("list", "watch"))
    with open_watch(client, resourceVersion=start) as watch:
        (error,) = watch.rest()
    assert error["object"]["message"] == f"too old resource version: {start} ({granted})"
    with open_watch(client, resourceVersion=granted) as watch:
        client.delete(path_of("c")).expect(200)
        assert summary(watch.take(1)) == [("DELETED", "c")]


def test_a_bookmark_after_a_change_of_rights_lets_the_client_resume(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a")
    with open_watch(client, allowWatchBookmarks="true", **STREAMED) as watch:
        watch.take(2)
        rights.sees("nobody", "b")
        deleted, added, bookmark = watch.take(3)
    assert summary([deleted, added]) == [("DELETED", "a"), ("ADDED", "b")]
    for event in (deleted, added):
        with open_watch(client, resourceVersion=event["object"]["metadata"]["resourceVersion"]) as watch:
            (error,) = watch.rest()
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
    with open_watch(client, resourceVersion=bookmark["object"]["metadata"]["resourceVersion"]) as watch:
        client.put(path_of("b"), cluster("b", "gcp")).expect(200)
        assert summary(watch.take(1)) == [("MODIFIED", "b")]


@pytest.mark.parametrize("selector", [{}, {"labelSelector": "x=1"}])
def test_a_watch_resumes_with_what_happened_to_visible_objects(
    client: InProcessClient, rights: Rights, selector: dict[str, str]
) -> None:
    for name in "abcd":
        client.post(CLUSTERS, cluster(name, labels={"x": "1"})).expect(201)
    rights.sees("nobody", "a", "b", "e")
    start = latest_version(client)
    client.put(path_of("c"), cluster("c", "gcp")).expect(200)
    client.put(path_of("a"), cluster("a", "gcp", labels={"x": "1"})).expect(200)
    client.delete(path_of("b")).expect(200)
    client.post(CLUSTERS, cluster("e", labels={"x": "1"})).expect(201)
    with open_watch(client, resourceVersion=start, **selector) as watch:
        assert summary(watch.take(3)) == [("MODIFIED", "a"), ("DELETED", "b"), ("ADDED", "e")]
        rights.sees("nobody", "e")
        assert summary(watch.take(1)) == [("DELETED", "a")]


def test_a_version_that_is_compacted_or_older_than_the_rights_is_gone(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    start = latest_version(client)
    changed = rights.sees("nobody", "a")
    with open_watch(client, resourceVersion=start) as watch:
        (error,) = watch.rest()
    assert error["object"]["message"] == f"too old resource version: {start} ({changed})"
    start = latest_version(client)
    fill(client, "de")
    client.server.compact(int(latest_version(client)))
    with open_watch(client, resourceVersion=start) as watch:
        (error,) = watch.rest()
    assert (error["object"]["code"], error["object"]["reason"]) == (410, "Expired")


def test_a_watch_without_initial_events_knows_the_existing_objects(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a", "b")
    with open_watch(client, sendInitialEvents="false", resourceVersionMatch="NotOlderThan") as watch:
        client.put(path_of("a"), cluster("a", "gcp")).expect(200)
        assert summary(watch.take(1)) == [("MODIFIED", "a")]
        rights.sees("nobody")
        assert sorted(summary(watch.take(2))) == [("DELETED", "a"), ("DELETED", "b")]


def test_selectors_count_together_with_rights(client: InProcessClient, rights: Rights) -> None:
    for name in "ab":
        client.post(CLUSTERS, cluster(name, labels={"x": name})).expect(201)
    rights.sees("nobody", "a")
    with open_watch(client, labelSelector="x in (a,new)") as watch:
        assert summary(watch.take(1)) == [("ADDED", "a")]
        rights.sees("nobody", "a", "b")
        client.put(path_of("b"), cluster("b", labels={"x": "new"})).expect(200)
        assert summary(watch.take(1)) == [("ADDED", "b")]
        client.put(path_of("a"), cluster("a", labels={"x": "other"})).expect(200)
        assert summary(watch.take(1)) == [("DELETED", "a")]
        rights.sees("nobody", "a")
        assert summary(watch.take(1)) == [("DELETED", "b")]


def test_tables_have_their_columns_once_and_their_rows_for_rights(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a")
    with open_watch(client, headers=TABLE) as watch:
        first = watch.next()
        rights.sees("nobody", "b")
        deleted, added = watch.take(2)
    shown = [(event["type"], event["object"]["rows"][0]["cells"][0]) for event in (first, deleted, added)]
    assert shown == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    assert [bool(event["object"]["columnDefinitions"]) for event in (first, deleted, added)] == [True, False, False]


def test_partial_metadata_has_the_events_of_rights_too(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a")
    with open_watch(client, headers=PARTIAL) as watch:
        first = watch.next()
        rights.sees("nobody", "b")
        events = [first, *watch.take(2)]
    assert summary(events) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    assert {event["object"]["kind"] for event in events} == {"PartialObjectMetadata"}


def test_a_watch_of_everything_ends_with_the_right_to_it(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.has("nobody", rule("get", "list", "watch"))
    with open_watch(client) as watch:
        assert len(watch.take(3)) == 3
        rights.sees("viewer", "c")
        client.delete(path_of("a")).expect(200)
        assert summary(watch.take(1)) == [("DELETED", "a")]
        rights.sees("nobody", "b")
        assert watch.rest() == []
    with open_watch(client) as watch:
        assert summary(watch.take(1)) == [("ADDED", "b")]


def test_watches_leave_nothing_behind(client: InProcessClient, rights: Rights) -> None:
    rights.sees("nobody", "a")
    policy = client.server.server.policy
    before = len(policy._listeners)
    with open_watch(client), open_watch(client):
        client.request("HEAD", CLUSTERS, query={"watch": "true"}, headers=NOBODY)
        fill(client, "a")
    assert len(policy._listeners) == before
    assert sum(broadcaster.watchers for broadcaster in client.server.server.broadcasters) == 0


def test_without_filtered_lists_a_lost_right_ends_the_watch(serve: Callable[..., InProcessClient]) -> None:
    client = serve("--authorization-filtered-lists=false")
    rights = Rights(client.server)
    rights.has("nobody", rule("watch"), rule("get", names=["a"]))
    with open_watch(client) as watch:
        rights.sees("nobody", "a")
        assert watch.rest() == []
    client.get(CLUSTERS, headers=NOBODY, watch="true").refused(403, "Forbidden")


def test_a_slow_watcher_is_ended(client: InProcessClient, rights: Rights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterregistry.apiserver.registry.watcher.FRAMES_LIMIT", 3)
    rights.sees("nobody", "a")
    fill(client, "a")
    headers = [("Authorization", NOBODY["Authorization"])]
    with client.stalled_watch(f"{CLUSTERS}?watch=true", headers=headers) as watch:
        for provider in "abcdefgh":
            client.put(path_of("a"), cluster("a", provider)).expect(200)
        assert watch.aborted
