"""PUT and apply of what is not there: as kube-apiserver does, that takes the right to create."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.api.clients import Answer
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.apiserver.api.rights import NOBODY, Rights, a_rule

Write = Callable[[InProcessClient, str], Answer]


def put(client: InProcessClient, name: str) -> Answer:
    return client.put(path_of(name), cluster(name), headers=NOBODY)


def apply(client: InProcessClient, name: str) -> Answer:
    kind = "application/apply-patch+yaml"
    return client.patch(path_of(name), cluster(name), kind=kind, headers=NOBODY, fieldManager="me")


@pytest.fixture
def client(serve: Callable[..., InProcessClient]) -> InProcessClient:
    return serve()


@pytest.mark.parametrize(("write", "verb"), [(put, "update"), (apply, "patch")])
def test_who_may_not_create_changes_only_what_is_there(client: InProcessClient, write: Write, verb: str) -> None:
    Rights(client.server).has("nobody", a_rule(verb))
    status = write(client, "a").refused(403, "Forbidden")
    assert status["message"] == (
        'clusters.clusterregistry.k8s.io "a" is forbidden: User "nobody" cannot create resource "clusters" '
        'in API group "clusterregistry.k8s.io" at the cluster scope'
    )
    client.get(path_of("a")).refused(404, "NotFound")
    client.post(CLUSTERS, cluster("a")).expect(201)
    write(client, "a").expect(200)


@pytest.mark.parametrize(("write", "verb"), [(put, "update"), (apply, "patch")])
@pytest.mark.parametrize("names", [[], ["a"]])
def test_who_may_create_does(client: InProcessClient, write: Write, verb: str, names: list[str]) -> None:
    Rights(client.server).has("nobody", a_rule(verb), a_rule("create", names=names))
    write(client, "a").expect(201)


@pytest.mark.parametrize("changed", [{"uid": "x"}, {"resourceVersion": "5"}])
def test_what_cannot_be_made_anyway_is_a_conflict(client: InProcessClient, changed: dict[str, Any]) -> None:
    Rights(client.server).has("nobody", a_rule("update"))
    client.put(path_of("a"), cluster("a", **changed), headers=NOBODY).refused(409, "Conflict")


@pytest.mark.parametrize(("write", "verb"), [(put, "update"), (apply, "patch")])
def test_what_is_invalid_is_told_first(client: InProcessClient, write: Write, verb: str) -> None:
    Rights(client.server).has("nobody", a_rule(verb))
    write(client, "Not-a-name").refused(422, "Invalid")


def test_a_right_to_create_one_name_makes_no_other_one_by_way_of_the_path(client: InProcessClient) -> None:
    Rights(client.server).has("nobody", a_rule("create", names=["a"]))
    for other in (cluster("b"), cluster("", generateName="a")):
        client.post(path_of("a"), other, headers=NOBODY).refused(403, "Forbidden")
    client.post(path_of("a"), cluster("a"), headers=NOBODY).expect(201)
    assert [item["metadata"]["name"] for item in client.get(CLUSTERS).expect(200)["items"]] == ["a"]
