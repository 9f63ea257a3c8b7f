"""Lists in pages: limits, continue tokens, snapshots."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.apiserver.api.clients import Client
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of


def fill(client: Client, letters: str = "abcde") -> None:
    for name in letters:
        client.post(CLUSTERS, cluster(name, labels={"parity": "even" if ord(name) % 2 == 0 else "odd"})).expect(201)


def pages(client: Client, limit: int, **query: Any) -> list[dict[str, Any]]:
    found = [client.get(CLUSTERS, limit=limit, **query).expect(200)]
    while token := found[-1]["metadata"].get("continue"):
        found.append(client.get(CLUSTERS, limit=limit, **{"continue": token}, **query).expect(200))
    return found


def test_pages_together_are_the_list(client: Client) -> None:
    fill(client)
    whole = client.get(CLUSTERS).expect(200)
    for limit in range(1, 7):
        found = pages(client, limit)
        assert [item for page in found for item in page["items"]] == whole["items"]
        assert {page["metadata"]["resourceVersion"] for page in found} == {whole["metadata"]["resourceVersion"]}
        remaining = [page["metadata"].get("remainingItemCount") for page in found]
        assert remaining == [5 - limit * number or None for number in range(1, len(found))] + [None]


def test_pages_of_a_selection_are_the_selection(client: Client) -> None:
    fill(client)
    for query in ({"labelSelector": "parity=odd"}, {"fieldSelector": "metadata.name!=b"}, {"labelSelector": "!none"}):
        whole = client.get(CLUSTERS, **query).expect(200)["items"]
        for limit in (1, 2, 3):
            found = pages(client, limit, **query)
            assert [item for page in found for item in page["items"]] == whole
            assert all("remainingItemCount" not in page["metadata"] for page in found)
            assert all(len(page["items"]) == limit for page in found[:-1])


def test_pages_do_not_see_what_is_written_meanwhile(client: Client) -> None:
    fill(client)
    before = client.get(CLUSTERS).expect(200)["items"]
    page = client.get(CLUSTERS, limit=1).expect(200)
    items, step = list(page["items"]), 0
    while token := page["metadata"].get("continue"):
        step += 1
        client.post(CLUSTERS, cluster(f"new-{step}")).expect(201)
        client.put(path_of("e"), cluster("e", f"provider-{step}")).expect(200)
        client.delete(path_of("d"))
        client.delete(path_of("a"))
        page = client.get(CLUSTERS, limit=1, **{"continue": token}).expect(200)
        items += page["items"]
    assert items == before


def test_a_token_can_be_used_again(client: Client) -> None:
    fill(client)
    token = client.get(CLUSTERS, limit=2).expect(200)["metadata"]["continue"]
    first = client.get(CLUSTERS, limit=2, **{"continue": token}).expect(200)
    assert client.get(CLUSTERS, limit=2, **{"continue": token}).expect(200) == first


def test_a_token_begins_behind_a_key_that_is_gone(client: Client) -> None:
    fill(client)
    token = client.get(CLUSTERS, limit=2).expect(200)["metadata"]["continue"]
    client.delete(path_of("b")).expect(200)
    assert names(client.get(CLUSTERS, **{"continue": token}).expect(200)) == ["c", "d", "e"]


def test_an_empty_token_is_none(client: Client) -> None:
    fill(client)
    assert names(client.get(CLUSTERS, limit=2, **{"continue": ""}).expect(200)) == ["a", "b"]


def token_of(**fields: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


def test_a_forged_token_is_refused(client: Client) -> None:
    fill(client, "a")
    for token in (
        "nonsense",
        "%%%",
        "e30",
        token_of(v="meta.k8s.io/v2", rv=1, start="a\u0000"),
        token_of(v="meta.k8s.io/v1", rv=0, start="a\u0000"),
        token_of(v="meta.k8s.io/v1", rv=-7, start="a\u0000"),
        token_of(v="meta.k8s.io/v1", rv="1", start="a\u0000"),
        token_of(v="meta.k8s.io/v1", rv=1, start=""),
        token_of(v="meta.k8s.io/v1", rv=1, start=5),
        token_of(v="meta.k8s.io/v1", rv=1, start="../../secrets\u0000"),
        token_of(v="meta.k8s.io/v1", rv=1),
        base64.urlsafe_b64encode(b"[]").decode(),
        base64.urlsafe_b64encode(b"5").decode(),
    ):
        refused = client.get(CLUSTERS, limit=1, **{"continue": token}).refused(400, "BadRequest")
        assert "continue key is not valid" in refused["message"]


def test_a_token_that_cannot_be_decoded_is_refused_with_the_message_of_go(client: Client) -> None:
    for token, detail in (
        ("abc!defg", "illegal base64 data at input byte 3"),
        ("abcde", "illegal base64 data at input byte 4"),
        ("ä", "illegal base64 data at input byte 0"),
        (base64.urlsafe_b64encode(b"words").decode(), "invalid character 'w' looking for beginning of value"),
        (base64.urlsafe_b64encode(b"\xff").decode(), "invalid character"),
    ):
        refused = client.get(CLUSTERS, limit=1, **{"continue": token}).refused(400, "BadRequest")
        assert refused["message"].startswith(f"invalid continue token: continue key is not valid: {detail}")


def test_a_token_and_a_resource_version_do_not_go_together(client: Client) -> None:
    fill(client)
    page = client.get(CLUSTERS, limit=2).expect(200)["metadata"]
    both = {"continue": page["continue"], "resourceVersion": page["resourceVersion"]}
    client.get(CLUSTERS, **both).refused(400, "BadRequest")
    client.get(CLUSTERS, **both, resourceVersionMatch="Exact").refused(422, "Invalid")


def test_a_token_whose_past_is_gone_expires_with_another_that_works(local: InProcessClient) -> None:
    fill(local)
    page = local.get(CLUSTERS, limit=2).expect(200)["metadata"]
    local.delete(path_of("d")).expect(200)
    latest = local.post(CLUSTERS, cluster("f")).expect(201)["metadata"]["resourceVersion"]
    local.server.compact(int(latest))

    expired = local.get(CLUSTERS, limit=2, **{"continue": page["continue"]}).refused(410, "Expired")
    assert "inconsistent list" in expired["message"]
    successor = expired["metadata"]["continue"]

    rest = local.get(CLUSTERS, limit=2, **{"continue": successor}).expect(200)
    assert names(rest) == ["c", "e"]
    assert rest["metadata"]["resourceVersion"] == latest
    last = local.get(CLUSTERS, limit=2, **{"continue": rest["metadata"]["continue"]}).expect(200)
    assert (names(last), last["metadata"]["resourceVersion"]) == (["f"], latest)


def test_pages_go_on_after_a_compaction_that_keeps_their_revision(local: InProcessClient) -> None:
    fill(local)
    page = local.get(CLUSTERS, limit=2).expect(200)["metadata"]
    local.server.compact(int(page["resourceVersion"]))
    assert names(local.get(CLUSTERS, **{"continue": page["continue"]}).expect(200)) == ["c", "d", "e"]


def test_a_past_that_is_gone_cannot_be_listed(local: InProcessClient) -> None:
    first = local.post(CLUSTERS, cluster("a")).expect(201)["metadata"]["resourceVersion"]
    latest = local.post(CLUSTERS, cluster("b")).expect(201)["metadata"]["resourceVersion"]
    local.server.compact(int(latest))
    local.get(CLUSTERS, resourceVersion=first, resourceVersionMatch="Exact").refused(410, "Expired")
    local.get(CLUSTERS, resourceVersion=first, limit=1).refused(410, "Expired")
    assert names(local.get(CLUSTERS, resourceVersion=first).expect(200)) == ["a", "b"]
    exact = {"resourceVersion": latest, "resourceVersionMatch": "Exact"}
    assert names(local.get(CLUSTERS, **exact).expect(200)) == ["a", "b"]


def test_a_large_page_comes_whole(client: Client) -> None:
    for index in range(60):
        client.post(CLUSTERS, cluster(f"n{index:02}", annotations={"text": "x" * 5000})).expect(201)
    assert len(pages(client, 25)) == 3
    assert names(client.get(CLUSTERS).expect(200)) == [f"n{index:02}" for index in range(60)]
