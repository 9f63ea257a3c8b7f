"""``dryRun=All``: everything happens but the write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.api.clients import Answer, Client
from tests.apiserver.api.objects import CLUSTERS, HOLD, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, cluster, path_of

Write = Callable[..., Answer]

WRITES: dict[str, Write] = {
    "post": lambda client, **query: client.post(CLUSTERS, cluster("new"), **query),
    "post with generateName": lambda client, **query: client.post(CLUSTERS, cluster("", generateName="g-"), **query),
    "put that creates": lambda client, **query: client.put(path_of("new"), cluster("new"), **query),
    "put": lambda client, **query: client.put(path_of("a"), cluster("a", "gce"), **query),
    "put status": lambda client, **query: client.put(
        path_of("a") + "/status", {**cluster("a"), "status": {"nodes": {"total": 1}}}, **query
    ),
    "json patch": lambda client, **query: client.patch(
        path_of("a"), [{"op": "add", "path": "/metadata/labels", "value": {"x": "1"}}], kind=JSON_PATCH, **query
    ),
    "merge patch": lambda client, **query: client.patch(
        path_of("a"), {"metadata": {"labels": {"x": "1"}}}, kind=MERGE_PATCH, **query
    ),
    "strategic merge patch": lambda client, **query: client.patch(
        path_of("a"), {"metadata": {"labels": {"x": "1"}}}, kind=STRATEGIC_MERGE_PATCH, **query
    ),
    "patch status": lambda client, **query: client.patch(
        path_of("a") + "/status", {"status": {"nodes": {"total": 1}}}, **query
    ),
    "delete": lambda client, **query: client.delete(path_of("a"), **query),
    "delete that marks": lambda client, **query: client.delete(path_of("held"), **query),
    "delete with a policy": lambda client, **query: client.delete(
        path_of("a"), propagationPolicy="Foreground", **query
    ),
    "deletecollection": lambda client, **query: client.delete(CLUSTERS, **query),
}


def prepared(client: Client) -> Any:
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.post(CLUSTERS, cluster("held", finalizers=[HOLD])).expect(201)
    return client.get(CLUSTERS).expect(200)


@pytest.mark.parametrize("verb", WRITES)
def test_nothing_is_stored_and_no_event_is_sent(client: Client, verb: str) -> None:
    before = prepared(client)
    with client.watch(CLUSTERS, resourceVersion=before["metadata"]["resourceVersion"]) as watch:
        answer = WRITES[verb](client, dryRun="All")
        assert answer.status in (200, 201), answer.body
        assert client.get(CLUSTERS).expect(200) == before
        client.post(CLUSTERS, cluster("sentinel")).expect(201)
        assert watch.next()["object"]["metadata"]["name"] == "sentinel"


@pytest.mark.parametrize("verb", WRITES)
def test_the_real_thing_does_store(client: Client, verb: str) -> None:
    before = prepared(client)
    WRITES[verb](client)
    assert client.get(CLUSTERS).expect(200)["items"] != before["items"]


def test_another_value_is_refused_and_nothing_is_written(client: Client) -> None:
    before = prepared(client)
    for write in WRITES.values():
        for value in ("Some", "all", "true", "All,All", ""):
            refused = write(client, dryRun=value).refused(422, "Invalid")
            assert [cause["field"] for cause in refused["details"]["causes"]] == ["dryRun"]
    assert client.get(CLUSTERS).expect(200) == before


def test_the_answer_shows_what_would_be_stored(client: Client) -> None:
    made = client.post(CLUSTERS, cluster("a"), dryRun="All").expect(201)["metadata"]
    assert made["uid"]
    assert made["generation"] == 1
    assert "resourceVersion" not in made


def test_an_update_shows_the_next_generation(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", "aws")).expect(201)
    assert client.put(path_of("a"), cluster("a", "gce"), dryRun="All").expect(200)["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("write", "status"),
    [
        (lambda client: client.post(CLUSTERS, cluster("a"), dryRun="All"), 409),
        (lambda client: client.post(CLUSTERS, cluster("Bad_Name"), dryRun="All"), 422),
        (lambda client: client.put(path_of("a"), cluster("a", resourceVersion="1"), dryRun="All"), 409),
        (lambda client: client.put(path_of("a"), cluster("a", labels={"bad key": ""}), dryRun="All"), 422),
        (lambda client: client.patch(path_of("none"), {}, dryRun="All"), 404),
        (lambda client: client.delete(path_of("none"), dryRun="All"), 404),
        (lambda client: client.delete(path_of("a"), {"dryRun": ["All"], "preconditions": {"uid": "x"}}), 409),
    ],
)
def test_what_would_fail_fails(client: Client, write: Callable[[Client], Answer], status: int) -> None:
    prepared(client)
    assert write(client).status == status


def test_a_warning_comes_all_the_same(client: Client) -> None:
    assert client.post(CLUSTERS, cluster("a", bogus="x"), dryRun="All").warnings == ['unknown field "metadata.bogus"']


def test_given_twice_it_is_still_one(client: Client) -> None:
    client.post(CLUSTERS, cluster("a"), dryRun=["All", "All"]).expect(201)
    client.get(path_of("a")).refused(404, "NotFound")


def test_a_body_of_delete_options_replaces_the_query(client: Client) -> None:
    """As kube-apiserver does, surprising as it is."""
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.delete(path_of("a"), {"propagationPolicy": "Background"}, dryRun="All").expect(200)
    client.get(path_of("a")).refused(404, "NotFound")
