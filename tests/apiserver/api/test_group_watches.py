"""Watches of users with rights on sets: labels are events, definitions are changes of rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.apiserver.api.clients import NOBODY, Client, empty, summary
from tests.apiserver.api.group_objects import SETS, TEAM, cluster_set, give, on_sets, team_set
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of
from tests.apiserver.api.rbac_objects import rule


@pytest.fixture
def fleet(client: Client) -> Iterator[Client]:
    """Clusters r1 in the set red and b1 in blue; the user watches red."""
    filled(client)
    yield client
    give(client, "nobody")
    empty(client, SETS)


def filled(client: Client) -> None:
    for name, team in (("r1", "red"), ("b1", "blue")):
        client.post(CLUSTERS, cluster(name, labels={TEAM: team})).expect(201)
        client.post(SETS, team_set(team)).expect(201)
    give(client, "nobody", on_sets("list", "watch", names=["red"]))


def move(client: Client, name: str, team: str | None) -> str:
    """Returns the resource version of the change."""
    patched = client.patch(path_of(name), {"metadata": {"labels": {TEAM: team}}}).expect(200)
    version: str = patched["metadata"]["resourceVersion"]
    return version


def version_of(client: Client) -> str:
    version: str = client.get(CLUSTERS, headers=NOBODY).expect(200)["metadata"]["resourceVersion"]
    return version


def test_a_label_that_changes_is_an_event_as_with_a_selector(fleet: Client) -> None:
    with fleet.watch(CLUSTERS, headers=NOBODY, resourceVersion=version_of(fleet)) as watch:
        entered, left = move(fleet, "b1", "red"), move(fleet, "r1", None)
        events = watch.take(2)
        assert summary(events) == [("ADDED", "b1"), ("DELETED", "r1")]
        assert [event["object"]["metadata"]["resourceVersion"] for event in events] == [entered, left]
        assert events[1]["object"]["metadata"]["labels"] == {TEAM: "red"}  # as it last was to the client
        move(fleet, "b1", "green")
        move(fleet, "b1", "red")
        fleet.delete(path_of("b1")).expect(200)
        assert summary(watch.take(3)) == [("DELETED", "b1"), ("ADDED", "b1"), ("DELETED", "b1")]


def test_a_watch_resumes_over_changes_of_labels(fleet: Client) -> None:
    before = version_of(fleet)
    entered = move(fleet, "b1", "red")
    move(fleet, "r1", "blue")
    move(fleet, "b1", "blue")
    fleet.patch(path_of("r1"), {"metadata": {"annotations": {"x": "y"}}}).expect(200)
    move(fleet, "r1", "red")
    everything = [("ADDED", "b1"), ("DELETED", "r1"), ("DELETED", "b1"), ("ADDED", "r1")]
    for version, expected in ((before, everything), (entered, everything[1:])):
        with fleet.watch(CLUSTERS, headers=NOBODY, resourceVersion=version) as watch:
            assert summary(watch.take(len(expected))) == expected


CHANGES: dict[str, Callable[[Client], Any]] = {
    "another selector": lambda client: client.put(f"{SETS}/red", {**team_set("blue"), "metadata": {"name": "red"}}),
    "names": lambda client: client.put(f"{SETS}/red", cluster_set("red", clusters=["b1"])),
    "another role": lambda client: give(client, "nobody", on_sets("list", "watch", names=["blue"])),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_definition_or_role_that_changes_is_events_now_and_a_410_for_who_was_away(
    fleet: Client, change: Callable[[Client], Any]
) -> None:
    before = version_of(fleet)
    with fleet.watch(CLUSTERS, headers=NOBODY, resourceVersion=before, allowWatchBookmarks="true") as watch:
        change(fleet)
        events = watch.take(3)
        assert summary(events) == [("DELETED", "r1"), ("ADDED", "b1"), ("BOOKMARK", "")]
        after = events[-1]["object"]["metadata"]["resourceVersion"]
    with fleet.watch(CLUSTERS, headers=NOBODY, resourceVersion=before) as watch:
        (event,) = watch.rest()
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    with fleet.watch(CLUSTERS, headers=NOBODY, resourceVersion=after) as watch:
        move(fleet, "b1", "none")
        move(fleet, "b1", "blue")
        assert watch.next()["type"] in ("MODIFIED", "DELETED")  # by its name it stays


def test_a_set_that_is_deleted_hides_its_members_and_made_again_shows_them(fleet: Client) -> None:
    with fleet.watch(CLUSTERS, headers=NOBODY) as watch:
        assert summary(watch.take(1)) == [("ADDED", "r1")]
        fleet.delete(f"{SETS}/red").expect(200)
        assert summary(watch.take(1)) == [("DELETED", "r1")]
        fleet.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")
        fleet.post(SETS, team_set("red")).expect(201)
        assert summary(watch.take(1)) == [("ADDED", "r1")]


def test_what_makes_no_difference_is_no_event(fleet: Client) -> None:
    with fleet.watch(CLUSTERS, headers=NOBODY, resourceVersion=version_of(fleet)) as watch:
        fleet.patch(f"{SETS}/red", {"spec": {"clusters": ["r1"]}}).expect(200)
        fleet.patch(f"{SETS}/red", {"metadata": {"labels": {"x": "y"}}}).expect(200)
        fleet.patch(f"{SETS}/red/status", {"status": {"clusters": 7}})
        fleet.post(SETS, team_set("other")).expect(201)
        move(fleet, "b1", "other")
        move(fleet, "r1", "blue")  # still named
        assert summary(watch.take(1)) == [("MODIFIED", "r1")]


def test_a_watch_of_one_object_follows_it_into_the_set(fleet: Client) -> None:
    with fleet.watch(CLUSTERS, headers=NOBODY, fieldSelector="metadata.name=b1") as watch:
        move(fleet, "b1", "red")
        assert summary(watch.take(1)) == [("ADDED", "b1")]


def test_selectors_and_sets_both_count(fleet: Client) -> None:
    with fleet.watch(CLUSTERS, headers=NOBODY, labelSelector="x=1") as watch:
        fleet.patch(path_of("r1"), {"metadata": {"labels": {"x": "1"}}}).expect(200)
        fleet.patch(path_of("b1"), {"metadata": {"labels": {"x": "1"}}}).expect(200)
        move(fleet, "b1", "red")
        move(fleet, "r1", "blue")
        assert summary(watch.take(3)) == [("ADDED", "r1"), ("ADDED", "b1"), ("DELETED", "r1")]


def test_a_right_to_everything_that_ends_leaves_the_sets(fleet: Client) -> None:
    give(fleet, "nobody", rule("list", "watch"), on_sets("list", "watch", names=["red"]))
    with fleet.watch(CLUSTERS, headers=NOBODY) as watch:
        assert summary(watch.take(2)) == [("ADDED", "b1"), ("ADDED", "r1")]
        give(fleet, "nobody", on_sets("list", "watch", names=["red"]))
        assert watch.rest() == []
    assert names(fleet.get(CLUSTERS, headers=NOBODY).expect(200)) == ["r1"]


def test_filtered_lists_that_are_off_still_show_sets(serve: Callable[..., InProcessClient]) -> None:
    client = serve("--authorization-filtered-lists=false")
    filled(client)
    give(client, "nobody", on_sets("list", "watch", names=["red"]), rule("get", names=["b1"]))
    assert names(client.get(CLUSTERS, headers=NOBODY).expect(200)) == ["r1"]
    with client.watch(CLUSTERS, headers=NOBODY) as watch:
        assert summary(watch.take(1)) == [("ADDED", "r1")]
        move(client, "b1", "red")
        assert summary(watch.take(1)) == [("ADDED", "b1")]
    give(client, "nobody", rule("get", names=["b1"]))
    client.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")


def test_without_sets_served_there_are_no_rights_on_them(serve: Callable[..., InProcessClient]) -> None:
    served = "clusterregistry.k8s.io/v1alpha1/clustersets=false,clusterregistry.k8s.io/v1beta1/clustersets=false"
    client = serve(f"--runtime-config={served}")
    client.post(CLUSTERS, cluster("r1", labels={TEAM: "red"})).expect(201)
    give(client, "nobody", on_sets("get", "list"))
    for path in (CLUSTERS, path_of("r1")):
        client.get(path, headers=NOBODY).refused(403, "Forbidden")
