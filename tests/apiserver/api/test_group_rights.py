"""Rights on the members of sets: each verb, on the very object, and moves between sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.api.clients import NOBODY, Client, empty
from tests.apiserver.api.group_objects import MEMBERS, SETS, TEAM, cluster_set, give, on_sets, team_set
from tests.apiserver.api.objects import APPLY_PATCH, BASE, CLUSTERS, GROUP_VERSION, cluster, names, path_of
from tests.apiserver.api.rbac_objects import rule

RED, BLUE = {TEAM: "red"}, {TEAM: "blue"}
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.fixture
def fleet(client: Client) -> Iterator[Client]:
    """Clusters r1 and r2 in the set red, b1 in blue, n1 in none but the set ``named``."""
    for name, labels in (("r1", RED), ("r2", RED), ("b1", BLUE), ("n1", {})):
        client.post(CLUSTERS, cluster(name, labels=labels)).expect(201)
    for made in (team_set("red"), team_set("blue"), cluster_set("named", clusters=["n1", "gone"])):
        client.post(SETS, made).expect(201)
    yield client
    give(client, "nobody")
    empty(client, SETS)


def labelled(**labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": labels}}


def test_a_right_on_a_set_is_one_on_its_members(fleet: Client) -> None:
    fleet.get(path_of("r1"), headers=NOBODY).expect(403)
    give(fleet, "nobody", on_sets("get", names=["red"]))
    assert fleet.get(path_of("r1"), headers=NOBODY).expect(200)["metadata"]["name"] == "r1"
    for other in ("b1", "n1", "gone", "never"):
        fleet.get(path_of(other), headers=NOBODY).refused(403, "Forbidden")
    for send in (fleet.delete, lambda path, headers: fleet.patch(path, {}, headers=headers)):
        send(path_of("r1"), headers=NOBODY).refused(403, "Forbidden")
    fleet.get(f"{path_of('r1')}/status", headers=NOBODY).refused(403, "Forbidden")
    fleet.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")
    fleet.get(path_of("r1"), headers=NOBODY, resourceVersion="0").expect(200)
    assert fleet.request("HEAD", path_of("r1"), headers=NOBODY).status == 200


def test_a_rule_without_names_is_one_on_all_sets(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("get", "list"))
    for name in ("r1", "b1", "n1"):
        fleet.get(path_of(name), headers=NOBODY).expect(200)
    assert names(fleet.get(CLUSTERS, headers=NOBODY).expect(200)) == ["b1", "n1", "r1", "r2"]
    fleet.patch(path_of("b1"), {"metadata": {"labels": None}}).expect(200)
    fleet.get(path_of("b1"), headers=NOBODY).refused(403, "Forbidden")
    assert names(fleet.get(CLUSTERS, headers=NOBODY).expect(200)) == ["n1", "r1", "r2"]


def test_members_come_and_go(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("get", "list", names=["red"]))
    fleet.patch(path_of("b1"), labelled(team="red")).expect(200)
    fleet.get(path_of("b1"), headers=NOBODY).expect(200)
    fleet.patch(path_of("r1"), labelled(team="blue")).expect(200)
    fleet.get(path_of("r1"), headers=NOBODY).refused(403, "Forbidden")
    fleet.patch(f"{SETS}/red", {"spec": {"selector": None, "clusters": ["n1"]}}).expect(200)
    fleet.get(path_of("b1"), headers=NOBODY).refused(403, "Forbidden")
    assert names(fleet.get(CLUSTERS, headers=NOBODY).expect(200)) == ["n1"]
    fleet.delete(f"{SETS}/red").expect(200)
    fleet.get(path_of("n1"), headers=NOBODY).refused(403, "Forbidden")
    fleet.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")


def test_subresources_have_rights_of_their_own(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("get", "update", "patch", names=["red"], subresource="status"))
    status = f"{path_of('r1')}/status"
    fleet.get(status, headers=NOBODY).expect(200)
    fleet.patch(status, {"status": {"version": {"kubernetes": "v1.36.0"}}}, headers=NOBODY).expect(200)
    fleet.get(path_of("r1"), headers=NOBODY).refused(403, "Forbidden")
    fleet.get(f"{path_of('b1')}/status", headers=NOBODY).refused(403, "Forbidden")


def test_the_existence_of_objects_is_told_to_those_who_may_create_or_have_it_named(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("get", "update", "delete", "patch", names=["red"]))
    for name in ("b1", "gone", "never"):
        for answer in _on_one(fleet, name):
            answer.refused(403, "Forbidden")
    give(fleet, "nobody", on_sets("get", "update", "delete", "patch", names=["named"]))
    fleet.get(path_of("gone"), headers=NOBODY).refused(404, "NotFound")
    fleet.delete(path_of("gone"), headers=NOBODY).refused(404, "NotFound")
    fleet.get(path_of("never"), headers=NOBODY).refused(403, "Forbidden")
    give(fleet, "nobody", on_sets("get", "delete", "patch", "create", names=["red"]))
    for answer in (
        fleet.get(path_of("never"), headers=NOBODY),
        fleet.delete(path_of("never"), headers=NOBODY),
        fleet.patch(path_of("never"), {}, headers=NOBODY),
    ):
        answer.refused(404, "NotFound")
    fleet.get(path_of("b1"), headers=NOBODY).refused(403, "Forbidden")


def _on_one(client: Client, name: str) -> Iterator[Any]:
    yield client.get(path_of(name), headers=NOBODY)
    yield client.delete(path_of(name), headers=NOBODY)
    yield client.patch(path_of(name), {}, headers=NOBODY)
    yield client.put(path_of(name), cluster(name), headers=NOBODY)


def test_create_needs_the_right_on_a_set_of_the_new_object(fleet: Client) -> None:
    fleet.post(CLUSTERS, cluster("r3", labels=RED), headers=NOBODY).refused(403, "Forbidden")
    give(fleet, "nobody", on_sets("create", names=["red", "named"]))
    fleet.post(CLUSTERS, cluster("r3", labels=RED), headers=NOBODY).expect(201)
    fleet.post(CLUSTERS, cluster("gone"), headers=NOBODY).expect(201)
    generated = {**cluster("x", labels=RED), "metadata": {"generateName": "r-", "labels": RED}}
    fleet.post(CLUSTERS, generated, headers=NOBODY, dryRun="All").expect(201)
    for refused in (cluster("b2", labels=BLUE), cluster("n2"), cluster("b3", labels={TEAM: "green"})):
        fleet.post(CLUSTERS, refused, headers=NOBODY).refused(403, "Forbidden")
        fleet.post(CLUSTERS, refused, headers=NOBODY, dryRun="All").refused(403, "Forbidden")
        fleet.post(path_of("r9"), refused, headers=NOBODY).refused(403, "Forbidden")
    fleet.post(path_of("r9"), cluster("r4", labels=RED), headers=NOBODY).expect(201)
    fleet.post(CLUSTERS, cluster("both", labels={**RED}), headers=NOBODY).expect(201)
    fleet.post(CLUSTERS, cluster("r1", labels=RED), headers=NOBODY).refused(409, "AlreadyExists")


def test_an_update_that_creates_needs_both_rights_on_sets_of_the_new_object(fleet: Client) -> None:
    put, applied = cluster("r5", labels=RED), cluster("r6", labels=RED)

    def answers(*, new: str = "r5", labels: dict[str, str] | None = None) -> list[Any]:
        made = {**put, "metadata": {"name": new, "labels": labels or RED}}
        sent = {**applied, "metadata": {"name": f"{new}-applied", "labels": labels or RED}}
        return [
            fleet.put(path_of(new), made, headers=NOBODY),
            fleet.patch(path_of(f"{new}-applied"), sent, kind=APPLY_PATCH, headers=NOBODY, fieldManager="x"),
        ]

    give(fleet, "nobody", on_sets("update", "patch", names=["red"]))
    assert [answer.status for answer in answers()] == [403, 403]
    give(fleet, "nobody", on_sets("create", names=["red"]))
    assert [answer.status for answer in answers()] == [403, 403]
    give(fleet, "nobody", on_sets("create", "update", "patch", names=["red"]))
    assert [answer.status for answer in answers(labels=BLUE)] == [403, 403]
    assert [answer.status for answer in answers()] == [201, 201]
    give(fleet, "nobody", rule("update", "patch"), on_sets("create", names=["blue"]))
    assert [answer.status for answer in answers(new="r7")] == [403, 403]
    assert [answer.status for answer in answers(new="b7", labels=BLUE)] == [201, 201]
    give(fleet, "nobody", rule("create"), on_sets("update", "patch", names=["blue"]))
    assert [answer.status for answer in answers(new="r8")] == [403, 403]
    assert [answer.status for answer in answers(new="b8", labels=BLUE)] == [201, 201]


def test_a_dry_run_is_decided_as_the_write(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("update", "patch", "delete", names=["red"]))
    for name, status in (("r1", 200), ("b1", 403)):
        labels = {TEAM: "red" if name == "r1" else "blue"}
        for answer in (
            fleet.put(path_of(name), cluster(name, "gcp", labels=labels), headers=NOBODY, dryRun="All"),
            fleet.patch(path_of(name), {"spec": {"cloudProvider": {"name": "x"}}}, headers=NOBODY, dryRun="All"),
            fleet.delete(path_of(name), headers=NOBODY, dryRun="All"),
        ):
            answer.expect(status)


def test_a_move_needs_join_on_every_set_that_is_entered_or_left(fleet: Client) -> None:
    writes = ("get", "update", "patch")
    give(fleet, "nobody", on_sets(*writes, names=["red", "blue"]))
    fleet.patch(path_of("r1"), {"metadata": {"labels": {"x": "y"}}}, headers=NOBODY).expect(200)
    refused = fleet.patch(path_of("r1"), labelled(team="blue"), headers=NOBODY).refused(403, "Forbidden")
    assert refused["message"] == (
        'clusters.clusterregistry.k8s.io "r1" is forbidden: User "nobody" cannot join resource "clustersets/clusters" '
        'in API group "clusterregistry.k8s.io" at the cluster scope: "r1" would enter clustersets "blue"'
    )
    give(fleet, "nobody", on_sets(*writes, names=["red"]), on_sets("join", names=["blue"]))
    refused = fleet.patch(path_of("r1"), labelled(team="blue"), headers=NOBODY).refused(403, "Forbidden")
    assert refused["message"].endswith('"r1" would leave clustersets "red"')
    sent = cluster("r1", labels=BLUE)
    fleet.put(path_of("r1"), sent, headers=NOBODY).refused(403, "Forbidden")
    fleet.put(path_of("r1"), sent, headers=NOBODY, dryRun="All").refused(403, "Forbidden")
    fleet.patch(path_of("r1"), sent, kind=APPLY_PATCH, headers=NOBODY, fieldManager="x", force="true").refused(
        403, "Forbidden"
    )
    give(fleet, "nobody", on_sets(*writes, names=["red"]), on_sets("join", names=["blue", "red"]))
    fleet.put(path_of("r1"), sent, headers=NOBODY).expect(200)
    fleet.get(path_of("r1"), headers=NOBODY).refused(403, "Forbidden")


def test_users_with_other_rights_need_join_as_well_unless_they_may_update_all(fleet: Client) -> None:
    move = labelled(team="blue")
    give(fleet, "nobody", rule("patch", names=["r1"]))
    fleet.patch(path_of("r1"), move, headers=NOBODY).refused(403, "Forbidden")
    give(fleet, "nobody", rule("patch", names=["r1"]), rule("update"))
    fleet.patch(path_of("r1"), move, headers=NOBODY).refused(403, "Forbidden")
    give(fleet, "nobody", rule("patch", names=["r1"]), on_sets("join"))
    fleet.patch(path_of("r1"), move, headers=NOBODY).expect(200)
    give(fleet, "nobody", rule("patch"))
    fleet.patch(path_of("r1"), labelled(team="red"), headers=NOBODY).expect(200)


def test_creating_and_deleting_members_needs_no_join(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("create", "delete", names=["red"]))
    fleet.post(SETS, cluster_set("every", {})).expect(201)
    fleet.post(CLUSTERS, cluster("r3", labels=RED), headers=NOBODY).expect(201)
    fleet.delete(path_of("r3"), headers=NOBODY).expect(200)
    fleet.delete(path_of("b1"), headers=NOBODY).refused(403, "Forbidden")


def test_lists_show_the_members_of_all_sets_that_the_user_may_list(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("list", names=["red", "named"]), rule("get", names=["b1"]))
    listed = fleet.get(CLUSTERS, headers=NOBODY).expect(200)
    assert names(listed) == ["b1", "n1", "r1", "r2"]
    first = fleet.get(CLUSTERS, headers=NOBODY, limit=3).expect(200)
    assert (names(first), first["metadata"]["remainingItemCount"]) == (["b1", "n1", "r1"], 1)
    fleet.patch(path_of("r2"), labelled(team="blue")).expect(200)
    token = first["metadata"]["continue"]
    # Of that revision, by the rights of now.
    assert names(fleet.get(CLUSTERS, headers=NOBODY, limit=3, **{"continue": token}).expect(200)) == ["r2"]
    assert names(fleet.get(CLUSTERS, headers=NOBODY).expect(200)) == ["b1", "n1", "r1"]
    assert names(fleet.get(CLUSTERS, headers=NOBODY, labelSelector="team=red").expect(200)) == ["r1"]
    assert names(fleet.get(CLUSTERS, headers=NOBODY, labelSelector="team", limit=1).expect(200)) == ["b1"]
    for name, seen in (("r1", ["r1"]), ("r2", []), ("never", [])):
        found = fleet.get(CLUSTERS, headers=NOBODY, fieldSelector=f"metadata.name={name}").expect(200)
        assert names(found) == seen


def test_a_list_needs_the_verb_list(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("get", "watch", names=["red"]))
    fleet.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")
    give(fleet, "nobody", on_sets("list", names=["none"]))
    fleet.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")
    fleet.post(SETS, team_set("none")).expect(201)
    assert names(fleet.get(CLUSTERS, headers=NOBODY).expect(200)) == []


def test_deletecollection_deletes_the_members_on_which_the_user_has_it(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("list", "delete", names=["red"]), rule("get", "delete", names=["b1"]))
    fleet.delete(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")
    give(fleet, "nobody", on_sets("deletecollection", names=["red"]), rule("get", "delete", names=["b1"]))
    assert names(fleet.delete(CLUSTERS, headers=NOBODY, dryRun="All").expect(200)) == ["r1", "r2"]
    assert names(fleet.delete(CLUSTERS, headers=NOBODY, fieldSelector="metadata.name=r2").expect(200)) == ["r2"]
    assert names(fleet.delete(CLUSTERS, headers=NOBODY).expect(200)) == ["r1"]
    assert names(fleet.get(CLUSTERS).expect(200)) == ["b1", "n1"]


def test_sets_give_nothing_in_a_namespace(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("get", "list"))
    for path in ("clusters", "clusters/r1"):
        fleet.get(f"{BASE}/namespaces/default/{path}", headers=NOBODY).refused(403, "Forbidden")


def review(client: Client, verb: str, name: str = "", **more: str) -> dict[str, Any]:
    attributes = {"verb": verb, "group": "clusterregistry.k8s.io", "resource": "clusters", "name": name, **more}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer: dict[str, Any] = client.post(REVIEWS, body, headers=NOBODY).expect(201)["status"]
    return answer


def test_reviews_tell_what_a_request_would_get(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("get", "list", "create", "watch", names=["red"]))
    assert review(fleet, "get", "r1") == {
        "allowed": True,
        "reason": 'group rights by clustersets "red": RBAC: allowed by ClusterRoleBinding "of-nobody" of ClusterRole '
        '"of-nobody" to User "nobody"',
    }
    assert review(fleet, "get", "b1") == {"allowed": False}
    assert review(fleet, "get", "never")["allowed"]  # 404
    assert not review(fleet, "delete", "r1")["allowed"]
    assert review(fleet, "list", "r1")["allowed"]
    assert review(fleet, "get", "r1", subresource="status") == {"allowed": False}
    assert review(fleet, "get", "r1", namespace="default")["allowed"]  # as kubectl asks
    for verb in ("list", "watch", "create"):
        assert review(fleet, verb) == {
            "allowed": False,
            "reason": 'allowed on members of clustersets "red" only',
        }
    fleet.patch(path_of("r1"), labelled(team="blue")).expect(200)
    assert review(fleet, "get", "r1") == {"allowed": False}
    assert fleet.get(path_of("b1"), headers=NOBODY).status == 403


def test_reviews_of_rules_list_those_on_sets(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("get", "join", names=["red"]))
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "default"},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    status = fleet.post(path, body, headers=NOBODY).expect(201)["status"]
    assert {
        "verbs": ["get", "join"],
        "apiGroups": ["clusterregistry.k8s.io"],
        "resources": [MEMBERS],
        "resourceNames": ["red"],
    } in status["resourceRules"]
    assert status["incomplete"] is False


def test_both_versions_have_the_same_rights(fleet: Client) -> None:
    give(fleet, "nobody", on_sets("get", "list", "create", names=["red"]))
    beta = CLUSTERS.replace("v1alpha1", "v1beta1")
    fleet.get(f"{beta}/r1", headers=NOBODY).expect(200)
    fleet.get(f"{beta}/b1", headers=NOBODY).refused(403, "Forbidden")
    assert names(fleet.get(beta, headers=NOBODY).expect(200)) == ["r1", "r2"]
    made = {**cluster("r3", None, labels=RED), "apiVersion": GROUP_VERSION.replace("v1alpha1", "v1beta1")}
    fleet.post(beta, made, headers=NOBODY).expect(201)
