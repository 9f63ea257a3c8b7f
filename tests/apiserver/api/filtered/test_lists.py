"""Lists of users who may not list, but may get some objects by name."""

from __future__ import annotations

import gzip
import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.apiserver.api.clients import NOBODY, VIEWER, Answer, Client
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import BASE, CLUSTERS, PARTIAL_LIST, TABLE, cluster, names, path_of
from tests.apiserver.api.rbac_objects import rule
from tests.apiserver.api.rights import Rights


def fill(client: Client, letters: str = "abcdef") -> None:
    for name in letters:
        client.post(CLUSTERS, cluster(name, labels={"half": "first" if name < "d" else "second"})).expect(201)


def listed(client: Client, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.get(CLUSTERS, headers=NOBODY, **query).expect(200)
    return found


def pages(client: Client, limit: int, **query: Any) -> list[dict[str, Any]]:
    found = [listed(client, limit=limit, **query)]
    while token := found[-1]["metadata"].get("continue"):
        found.append(listed(client, limit=limit, **{"continue": token}, **query))
    return found


def test_a_list_has_the_objects_that_the_user_may_get(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "b", "e", "missing")
    whole = client.get(CLUSTERS).expect(200)
    found = listed(client)
    assert found == {**whole, "items": [item for item in whole["items"] if item["metadata"]["name"] in "be"]}


def test_a_compressed_list_has_no_more(client: InProcessClient, rights: Rights) -> None:
    """The compressed list is kept for users who may see everything, and for no others."""
    for name in "ab":
        client.post(CLUSTERS, cluster(name, name * 200_000)).expect(201)
    rights.sees("nobody", "b")
    packed = {"Accept-Encoding": "gzip"}
    for _ in range(3):
        assert len(unpacked(client.get(CLUSTERS, headers=packed))) == 2
        assert len(unpacked(client.get(CLUSTERS, headers=packed | NOBODY))) == 1


def unpacked(answer: Answer) -> list[Any]:
    assert answer.header("Content-Encoding") == "gzip"
    items: list[Any] = json.loads(gzip.decompress(answer.body))["items"]
    return items


def test_a_list_may_turn_out_empty(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "missing")
    assert listed(client)["items"] == []


def test_a_user_who_may_get_nothing_is_refused(client: InProcessClient, rights: Rights) -> None:
    rights.sees("nobody")
    rights.sees("viewer", "a")
    status = client.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")
    assert status["message"].endswith(
        'User "nobody" cannot list resource "clusters" in API group "clusterregistry.k8s.io" at the cluster scope'
    )
    assert names(client.get(CLUSTERS, headers=VIEWER).expect(200)) == []


def test_a_user_who_may_get_every_name_is_refused(client: InProcessClient, rights: Rights) -> None:
    rights.has("nobody", rule("get"))
    client.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")


def test_a_user_who_may_list_gets_all(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.has("nobody", rule("get", names=["a"]), rule("list"))
    assert names(listed(client)) == list("abcdef")


@pytest.mark.parametrize("verb", ["list", "watch", "update", "delete", "deletecollection"])
def test_only_the_verb_get_makes_objects_visible(client: InProcessClient, rights: Rights, verb: str) -> None:
    rights.has("nobody", rule(verb, names=["a"]))
    client.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")


def test_other_requests_stay_refused(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a")
    refused: list[Answer] = [
        client.delete(CLUSTERS, headers=NOBODY),
        client.post(CLUSTERS, cluster("x"), headers=NOBODY),
        client.get(path_of("b"), headers=NOBODY),
        client.get(f"{BASE}/namespaces/default/clusters", headers=NOBODY),
        client.get(f"{BASE}/watch/clusters/a/status", headers=NOBODY),
        client.get(f"{BASE}/others", headers=NOBODY),
    ]
    for answer in refused:
        answer.refused(403, "Forbidden")
    assert names(client.get(CLUSTERS).expect(200)) == list("abcdef")


def test_one_name_is_listed_for_users_who_may_get_it(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a", "missing")
    assert names(listed(client, fieldSelector="metadata.name=a")) == ["a"]
    assert names(listed(client, fieldSelector="metadata.name=missing")) == []
    for hidden in ("b", "none-such"):
        client.get(CLUSTERS, headers=NOBODY, fieldSelector=f"metadata.name={hidden}").refused(403, "Forbidden")


def test_selectors_select_of_what_is_visible(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "b", "c", "e")
    assert names(listed(client, labelSelector="half=first")) == ["b", "c"]
    assert names(listed(client, fieldSelector="metadata.name!=c")) == ["b", "e"]


@pytest.mark.parametrize("headers", [TABLE, PARTIAL_LIST])
def test_other_representations_have_the_same_objects(
    client: InProcessClient, rights: Rights, headers: dict[str, str]
) -> None:
    fill(client)
    rights.sees("nobody", "b", "e")
    answer = client.get(CLUSTERS, headers={**NOBODY, **headers})
    found = answer.expect(200)
    shown = [row["object"] for row in found["rows"]] if "rows" in found else found["items"]
    assert [each["metadata"]["name"] for each in shown] == ["b", "e"]
    assert not [name for name in "acdf" if f'"{name}"'.encode() in answer.body]


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_pages_are_full_and_count_only_what_is_visible(client: InProcessClient, rights: Rights, limit: int) -> None:
    fill(client)
    rights.sees("nobody", "a", "c", "f")
    found = pages(client, limit)
    assert [name for page in found for name in names(page)] == ["a", "c", "f"]
    assert [len(page["items"]) for page in found] == {1: [1, 1, 1], 2: [2, 1]}.get(limit, [3])
    remaining = [page["metadata"].get("remainingItemCount") for page in found]
    assert remaining == {1: [2, 1, None], 2: [1, None]}.get(limit, [None])


def test_no_page_follows_because_of_what_is_hidden(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a", "b")
    for query in ({}, {"labelSelector": "half=first"}):
        metadata = listed(client, limit=2, **query)["metadata"]
        assert metadata["continue"] == ""
        assert "remainingItemCount" not in metadata


def test_tokens_name_only_what_is_visible(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "b", "e")
    token = listed(client, limit=1)["metadata"]["continue"]
    assert json.loads(urlsafe_b64decode(token + "==="))["start"] == "b\0"


def test_pages_stay_on_their_snapshot(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a", "c", "e")
    page = listed(client, limit=1)
    client.delete(path_of("c")).expect(200)
    rest = listed(client, **{"continue": page["metadata"]["continue"]})
    assert names(rest) == ["c", "e"]
    assert rest["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]


def test_a_token_gives_no_more_than_the_current_rights(client: InProcessClient, rights: Rights) -> None:
    fill(client)
    rights.sees("nobody", "a", "c", "e")
    token = listed(client, limit=1)["metadata"]["continue"]
    rights.sees("nobody", "a", "e")
    assert names(listed(client, **{"continue": token})) == ["e"]
    rights.sees("nobody")
    client.get(CLUSTERS, headers=NOBODY, **{"continue": token}).refused(403, "Forbidden")


@pytest.mark.parametrize(
    "query", [{"resourceVersion": "0"}, {"resourceVersion": "then", "resourceVersionMatch": "Exact"}]
)
def test_resource_versions_apply(client: InProcessClient, rights: Rights, query: dict[str, str]) -> None:
    fill(client)
    rights.sees("nobody", "a", "c")
    version = client.get(CLUSTERS).expect(200)["metadata"]["resourceVersion"]
    found = listed(client, **{key: value.replace("then", version) for key, value in query.items()})
    assert names(found) == ["a", "c"]
    assert found["metadata"]["resourceVersion"] == version


def test_filtered_lists_can_be_disabled(serve: Callable[..., InProcessClient]) -> None:
    client = serve("--authorization-filtered-lists=false")
    Rights(client.server).sees("nobody", "a")
    client.get(CLUSTERS, headers=NOBODY).refused(403, "Forbidden")
    client.get(CLUSTERS, headers=NOBODY, watch="true").refused(403, "Forbidden")
    client.post(CLUSTERS, cluster("a")).expect(201)
    client.get(path_of("a"), headers=NOBODY).expect(200)


LETTERS = st.sets(st.sampled_from("abcdefgh"))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(visible=LETTERS, selected=LETTERS, limit=st.integers(1, 4), selecting=st.booleans())
def test_filtered_pages_are_those_of_a_registry_that_has_nothing_else(  # noqa: PLR0913
    client: InProcessClient, rights: Rights, *, visible: set[str], selected: set[str], limit: int, selecting: bool
) -> None:
    """Compared with what an administrator gets who selects the same objects."""
    for name in "abcdefgh":
        labels = {"selected": str(name in selected).lower()}
        client.put(path_of(name), cluster(name, labels=labels))
    rights.sees("nobody", *sorted(visible), "missing")
    query = {"labelSelector": "selected=true"} if selecting else {}
    expected = sorted(visible & selected if selecting else visible)
    found = pages(client, limit, **query)
    assert [name for page in found for name in names(page)] == expected
    assert all(len(page["items"]) == limit for page in found[:-1])
    left = [len(expected) - limit * number for number in range(1, len(found) + 1)]
    if not selecting:
        assert [page["metadata"].get("remainingItemCount", 0) for page in found] == [max(each, 0) for each in left]
        assert len(found) == max(1, -(-len(expected) // limit))
