"""Lists: selectors, resource versions, numbers in the query."""

from __future__ import annotations

from typing import Any

import pytest

from clusterregistry.apiserver.storage.cacher.cache import Cacher
from tests.apiserver.api.clients import Client, causes
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of


@pytest.fixture
def four(client: Client) -> Client:
    """A registry of four clusters with labels of all sorts."""
    for name, labels in (
        ("a", {"env": "prod", "tier": "1"}),
        ("b", {"env": "dev", "tier": "2"}),
        ("c", {"env": ""}),
        ("d", {}),
    ):
        client.post(CLUSTERS, cluster(name, labels=labels)).expect(201)
    return client


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("env=prod", "a"),
        ("env==prod", "a"),
        ("env!=prod", "bcd"),
        ("env=", "c"),
        ("env!=", "abd"),  # codespell:ignore abd
        ("env in (prod,dev)", "ab"),
        ("env in (prod, dev )", "ab"),
        ("env in (,prod)", "ac"),
        ("env in ()", "c"),
        ("env notin (prod)", "bcd"),
        ("env", "abc"),
        ("!env", "d"),
        ("! env", "d"),
        ("tier>1", "b"),
        ("tier<2", "a"),
        ("tier>5", ""),
        ("env,tier", "ab"),
        ("env,!tier", "c"),
        ("env!=prod,tier", "b"),
        ("env=prod,env=dev", ""),
        ("env in (prod),env notin (dev)", "a"),
        ("example.com/none!=x", "abcd"),
        ("", "abcd"),
        ("  ", "abcd"),
    ],
)
def test_label_selectors(four: Client, selector: str, selected: str) -> None:
    listed = four.get(CLUSTERS, labelSelector=selector).expect(200)
    assert "".join(names(listed)) == selected
    assert "remainingItemCount" not in listed["metadata"]


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name==a", "a"),
        ("metadata.name!=a", "bcd"),
        ("metadata.name!=a,metadata.name!=b", "cd"),
        ("metadata.name=a,metadata.name=b", ""),
        ("metadata.name=", ""),
        ("metadata.name!=", "abcd"),
        ("metadata.name=none", ""),
        ("", "abcd"),
        (",", "abcd"),
    ],
)
def test_field_selectors(four: Client, selector: str, selected: str) -> None:
    assert "".join(names(four.get(CLUSTERS, fieldSelector=selector).expect(200))) == selected


def test_invalid_selectors_are_refused(client: Client) -> None:
    """Their grammar is tested with the parsers."""
    for selector in ("a b", "a=b=c", "a in (", "a>x", "-a", "()"):
        client.get(CLUSTERS, labelSelector=selector).refused(400, "BadRequest")
    for selector in ("metadata.name", "metadata.uid=x", "spec.location.region=x", "name=a", "a\\b=c"):
        client.get(CLUSTERS, fieldSelector=selector).refused(400, "BadRequest")


def test_a_selector_applies_to_the_current_labels(four: Client) -> None:
    four.patch(path_of("a"), {"metadata": {"labels": {"env": "dev"}}}).expect(200)
    assert names(four.get(CLUSTERS, labelSelector="env=prod").expect(200)) == []
    assert names(four.get(CLUSTERS, labelSelector="env=dev").expect(200)) == ["a", "b"]


def test_the_lists_resource_version_is_that_of_the_last_write_of_all(four: Client) -> None:
    deleted = four.delete(path_of("d"))
    deleted.expect(200)
    listed = four.get(CLUSTERS).expect(200)
    newest = max(int(item["metadata"]["resourceVersion"]) for item in listed["items"])
    assert int(listed["metadata"]["resourceVersion"]) > newest


def test_exact_shows_the_past(client: Client) -> None:
    first = client.post(CLUSTERS, cluster("a", "aws")).expect(201)
    second = client.put(path_of("a"), cluster("a", "gce")).expect(200)
    third = client.post(CLUSTERS, cluster("b")).expect(201)
    client.delete(CLUSTERS).expect(200)
    for version, items in ((first, [first]), (second, [second]), (third, [second, third])):
        revision = version["metadata"]["resourceVersion"]
        listed = client.get(CLUSTERS, resourceVersion=revision, resourceVersionMatch="Exact").expect(200)
        assert listed["items"] == items
        assert listed["metadata"]["resourceVersion"] == revision


def test_exact_selects_by_the_labels_at_that_revision(client: Client) -> None:
    first = client.post(CLUSTERS, cluster("a", labels={"x": "1"})).expect(201)["metadata"]["resourceVersion"]
    client.patch(path_of("a"), {"metadata": {"labels": {"x": "2"}}}).expect(200)
    past = {"resourceVersion": first, "resourceVersionMatch": "Exact"}
    assert names(client.get(CLUSTERS, labelSelector="x=1", **past).expect(200)) == ["a"]
    assert names(client.get(CLUSTERS, labelSelector="x=2", **past).expect(200)) == []


def test_not_older_than_shows_the_latest_state(client: Client) -> None:
    first = client.post(CLUSTERS, cluster("a")).expect(201)["metadata"]["resourceVersion"]
    client.post(CLUSTERS, cluster("b")).expect(201)
    for version in ("0", first):
        for match in ({}, {"resourceVersionMatch": "NotOlderThan"}):
            assert names(client.get(CLUSTERS, resourceVersion=version, **match).expect(200)) == ["a", "b"]


def test_a_limit_with_a_resource_version_means_that_version(client: Client) -> None:
    first = client.post(CLUSTERS, cluster("a")).expect(201)["metadata"]["resourceVersion"]
    client.post(CLUSTERS, cluster("b")).expect(201)
    listed = client.get(CLUSTERS, resourceVersion=first, limit=5).expect(200)
    assert (names(listed), listed["metadata"]["resourceVersion"]) == (["a"], first)


def test_a_future_version_is_awaited_and_then_refused(local: InProcessClient) -> None:
    answer = local.get(CLUSTERS, resourceVersion="4000000000000")
    refused = answer.refused(504, "Timeout")
    assert refused["details"]["retryAfterSeconds"] == 1
    assert [cause["reason"] for cause in refused["details"]["causes"]] == ["ResourceVersionTooLarge"]
    assert answer.header("Retry-After") == "1"


def test_an_exact_future_version_is_refused_without_retry_after(local: InProcessClient) -> None:
    """As kube-apiserver does: the storage itself refuses it, and no retry is suggested."""
    queries: list[dict[str, Any]] = [{"resourceVersionMatch": "Exact"}, {"limit": 1}]
    for query in queries:
        answer = local.get(CLUSTERS, resourceVersion="4000000000000", **query)
        refused = answer.refused(504, "Timeout")
        assert [cause["reason"] for cause in refused["details"]["causes"]] == ["ResourceVersionTooLarge"]
        assert "retryAfterSeconds" not in refused["details"]
        assert answer.header("Retry-After") is None


def test_a_version_that_is_no_number_is_refused(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)
    for version in ("abc", "-1", "1.5", "0x1", "1e3", " 1", "99999999999999999999"):
        client.get(CLUSTERS, resourceVersion=version).refused(400, "BadRequest")
        client.get(path_of("a"), resourceVersion=version).refused(400, "BadRequest")


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ({"resourceVersionMatch": "Exact"}, [("resourceVersionMatch", "FieldValueForbidden")]),
        ({"resourceVersionMatch": "NotOlderThan"}, [("resourceVersionMatch", "FieldValueForbidden")]),
        (
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
            [("resourceVersionMatch", "FieldValueForbidden")],
        ),
        (
            {"resourceVersionMatch": "Newest", "resourceVersion": "1"},
            [("resourceVersionMatch", "FieldValueNotSupported")],
        ),
        (
            {"resourceVersionMatch": "Newest"},
            [("resourceVersionMatch", "FieldValueForbidden"), ("resourceVersionMatch", "FieldValueNotSupported")],
        ),
        ({"sendInitialEvents": "true"}, [("sendInitialEvents", "FieldValueForbidden")]),
        ({"sendInitialEvents": "false"}, [("sendInitialEvents", "FieldValueForbidden")]),
    ],
)
def test_options_that_do_not_go_together(client: Client, query: dict[str, str], wrong: list[Any]) -> None:
    refused = client.get(CLUSTERS, **query).refused(422, "Invalid")
    assert refused["details"]["kind"] == "ListOptions"
    assert causes(refused) == wrong


def test_numbers_in_the_query_must_be_numbers(client: Client) -> None:
    for number in ("", "x", "1.5", "1e3", "99999999999999999999", "0x10", " "):
        client.get(CLUSTERS, limit=number).refused(400, "BadRequest")
        client.get(CLUSTERS, timeoutSeconds=number).refused(400, "BadRequest")


def test_a_limit_that_is_not_positive_or_large_lists_everything(four: Client) -> None:
    for limit in ("0", "-1", "-9223372036854775808", "9223372036854775807", "0004"):
        assert len(names(four.get(CLUSTERS, limit=limit).expect(200))) == 4
    assert len(names(four.get(CLUSTERS, limit="+3").expect(200))) == 3


def test_the_first_of_two_equal_parameters_counts(four: Client) -> None:
    assert names(four.get(CLUSTERS, labelSelector=["env=prod", "env=dev"]).expect(200)) == ["a"]


def test_get_not_older_than_a_version(local: InProcessClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cacher.wait_for, "__defaults__", (0.1,))
    version = local.post(CLUSTERS, cluster("a")).expect(201)["metadata"]["resourceVersion"]
    assert local.get(path_of("a"), resourceVersion=version).expect(200)["metadata"]["name"] == "a"
    local.get(path_of("a"), resourceVersion="4000000000000").refused(504, "Timeout")


def test_names_come_in_the_order_of_their_bytes(client: Client) -> None:
    given = ["b", "a-b", "a", "a.b", "a0", "10", "9", "ab"]
    for name in given:
        client.post(CLUSTERS, cluster(name)).expect(201)
    assert names(client.get(CLUSTERS).expect(200)) == sorted(given)
