"""The life of an object that something holds on to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.api.clients import Client, causes
from tests.apiserver.api.objects import CLUSTERS, HOLD, cluster, path_of

OTHER = "example.com/other"


def terminating(client: Client, *finalizers: str) -> dict[str, Any]:
    """An object that is deleted and held."""
    client.post(CLUSTERS, cluster("a", finalizers=list(finalizers))).expect(201)
    held: dict[str, Any] = client.delete(path_of("a")).expect(200)
    return held


def finalizers(obj: dict[str, Any]) -> list[str]:
    found: list[str] = obj["metadata"].get("finalizers", [])
    return found


def test_a_held_object_says_that_it_is_being_deleted(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a", finalizers=[HOLD])).expect(201)["metadata"]
    held = client.delete(path_of("a")).expect(200)["metadata"]
    assert int(held["resourceVersion"]) > int(made["resourceVersion"])
    assert (held["generation"], held["deletionGracePeriodSeconds"]) == (2, 0)
    assert held["deletionTimestamp"] >= held["creationTimestamp"]


def test_deleting_it_again_changes_nothing(client: Client) -> None:
    held = terminating(client, HOLD)
    assert client.delete(path_of("a")).expect(200) == held
    assert client.delete(path_of("a"), {"gracePeriodSeconds": 9}).expect(200) == held


@pytest.mark.parametrize("verb", ["put", "patch"])
def test_the_last_finalizer_gone_the_object_is_gone(client: Client, verb: str) -> None:
    held = terminating(client, HOLD)
    if verb == "put":
        answered = client.put(path_of("a"), cluster("a")).expect(200)
    else:
        answered = client.patch(path_of("a"), {"metadata": {"finalizers": None}}).expect(200)
    assert finalizers(answered) == []
    assert answered["metadata"]["resourceVersion"] == held["metadata"]["resourceVersion"]
    client.get(path_of("a")).refused(404, "NotFound")


def test_finalizers_go_one_after_the_other(client: Client) -> None:
    terminating(client, HOLD, OTHER)
    left = client.patch(path_of("a"), {"metadata": {"finalizers": [OTHER]}}).expect(200)
    assert finalizers(left) == [OTHER]
    client.patch(path_of("a"), {"metadata": {"finalizers": []}}).expect(200)
    client.get(path_of("a")).refused(404, "NotFound")


def test_without_a_deletion_finalizers_come_and_go(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    assert finalizers(client.patch(path_of("a"), {"metadata": {"finalizers": [HOLD]}}).expect(200)) == [HOLD]
    assert finalizers(client.patch(path_of("a"), {"metadata": {"finalizers": None}}).expect(200)) == []
    client.get(path_of("a")).expect(200)


def test_no_finalizer_is_added_to_what_is_being_deleted(client: Client) -> None:
    held = terminating(client, HOLD)
    refused = client.patch(path_of("a"), {"metadata": {"finalizers": [HOLD, OTHER]}}).refused(422, "Invalid")
    assert set(causes(refused)) == {("metadata.finalizers", "FieldValueForbidden")}
    assert client.get(path_of("a")).expect(200) == held


def test_what_is_being_deleted_can_still_be_changed(client: Client) -> None:
    held = terminating(client, HOLD)
    patch = {"metadata": {"labels": {"x": "1"}}, "spec": {"cloudProvider": {"name": "gce"}}}
    changed = client.patch(path_of("a"), patch).expect(200)
    assert changed["metadata"]["labels"] == {"x": "1"}
    assert changed["metadata"]["generation"] == held["metadata"]["generation"] + 1
    client.patch(path_of("a") + "/status", {"status": {"nodes": {"total": 1}}}).expect(200)


@pytest.mark.parametrize("field", ["deletionTimestamp", "deletionGracePeriodSeconds"])
def test_a_deletion_cannot_be_taken_back(client: Client, field: str) -> None:
    held = terminating(client, HOLD)
    assert client.patch(path_of("a"), {"metadata": {field: None}}).expect(200) == held


def test_a_deletion_cannot_be_begun_by_an_update(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", finalizers=[HOLD])).expect(201)
    patch = {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}}
    answer = client.patch(path_of("a"), patch)
    assert answer.status in (200, 422)
    assert "deletionTimestamp" not in client.get(path_of("a")).expect(200)["metadata"]


def test_the_status_path_does_not_let_go(client: Client) -> None:
    terminating(client, HOLD)
    released = {**cluster("a"), "status": {"nodes": {"total": 1}}}
    assert finalizers(client.put(path_of("a") + "/status", released).expect(200)) == [HOLD]
    client.patch(path_of("a") + "/status", {"metadata": {"finalizers": None}}).expect(200)
    assert finalizers(client.get(path_of("a")).expect(200)) == [HOLD]


def test_its_name_is_not_free_before_it_is_gone(client: Client) -> None:
    terminating(client, HOLD)
    refused = client.post(CLUSTERS, cluster("a")).refused(409, "AlreadyExists")
    assert refused["message"].startswith("object is being deleted: ")


@pytest.mark.parametrize(
    ("policy", "added"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan"), ("Background", None)]
)
def test_each_policy_leaves_its_mark(client: Client, policy: str, added: str | None) -> None:
    client.post(CLUSTERS, cluster("a", finalizers=[HOLD])).expect(201)
    held = client.delete(path_of("a"), {"propagationPolicy": policy}).expect(200)
    assert finalizers(held) == ([HOLD, added] if added else [HOLD])


def test_background_without_finalizers_deletes_at_once(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    assert client.delete(path_of("a"), {"propagationPolicy": "Background"}).expect(200)["status"] == "Success"


@pytest.mark.parametrize(("orphan", "left"), [(True, ["orphan"]), (False, None)])
def test_the_older_option_still_counts(client: Client, orphan: bool, left: list[str] | None) -> None:  # noqa: FBT001
    client.post(CLUSTERS, cluster("a")).expect(201)
    answer = client.delete(path_of("a"), {"orphanDependents": orphan}).expect(200)
    assert (finalizers(answer) if left else answer["status"]) == (left or "Success")


def test_a_later_policy_replaces_an_earlier_one(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", finalizers=[HOLD])).expect(201)
    first = client.delete(path_of("a"), {"propagationPolicy": "Foreground"}).expect(200)
    second = client.delete(path_of("a"), {"propagationPolicy": "Orphan"}).expect(200)
    assert finalizers(second) == [HOLD, "orphan"]
    assert second["metadata"]["deletionTimestamp"] == first["metadata"]["deletionTimestamp"]
    assert second["metadata"]["generation"] == first["metadata"]["generation"]


def test_without_a_policy_the_earlier_one_stays(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    held = client.delete(path_of("a"), {"propagationPolicy": "Foreground"}).expect(200)
    assert client.delete(path_of("a")).expect(200) == held


def test_background_lets_go_of_what_only_an_earlier_policy_held(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.delete(path_of("a"), {"propagationPolicy": "Foreground"}).expect(200)
    assert client.delete(path_of("a"), {"propagationPolicy": "Background"}).expect(200)["status"] == "Success"
    client.get(path_of("a")).refused(404, "NotFound")


def test_a_finalizer_of_the_garbage_collector_given_at_birth_counts_as_the_policy(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", finalizers=["orphan"])).expect(201)
    assert finalizers(client.delete(path_of("a")).expect(200)) == ["orphan"]


def test_both_finalizers_of_the_garbage_collector_cannot_be_had(client: Client) -> None:
    both = cluster("a", finalizers=["orphan", "foregroundDeletion"])
    refused = client.post(CLUSTERS, both).refused(422, "Invalid")
    assert ("metadata.finalizers", "FieldValueInvalid") in causes(refused)


def test_a_dry_run_shows_the_mark_and_leaves_none(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a", finalizers=[HOLD])).expect(201)
    shown = client.delete(path_of("a"), {"dryRun": ["All"], "propagationPolicy": "Foreground"}).expect(200)
    assert finalizers(shown) == [HOLD, "foregroundDeletion"]
    assert "deletionTimestamp" in shown["metadata"]
    assert client.get(path_of("a")).expect(200) == made


def test_a_dry_run_that_removes_the_last_finalizer_removes_nothing(client: Client) -> None:
    held = terminating(client, HOLD)
    client.patch(path_of("a"), {"metadata": {"finalizers": None}}, dryRun="All").expect(200)
    assert client.get(path_of("a")).expect(200) == held
