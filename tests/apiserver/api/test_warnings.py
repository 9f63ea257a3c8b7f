from __future__ import annotations

from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of


def test_no_warning_without_a_reason(client: Client) -> None:
    assert client.post(CLUSTERS, cluster("a")).warnings == []
    assert client.get(path_of("a")).warnings == []


def test_each_warning_is_a_header_of_its_own(client: Client) -> None:
    answer = client.post(CLUSTERS, cluster("a", bogus=1, finalizers=["plain"]))
    answer.expect(201)
    assert len([name for name, _ in answer.headers if name.lower() == "warning"]) == 2
    assert 'unknown field "metadata.bogus"' in answer.warnings
    assert any("prefer a domain-qualified finalizer name" in text for text in answer.warnings)


def test_the_same_warning_is_given_once(client: Client) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    answer = client.post(CLUSTERS, cluster("a", ownerReferences=[owner, owner, owner]))
    assert len(answer.warnings) == 1


def test_many_long_warnings_are_cut_and_then_left_out(client: Client) -> None:
    spec = {f"{index:03}" + "x" * 400: 1 for index in range(40)}
    warnings = client.post(CLUSTERS, {**cluster("a"), "spec": spec}).warnings
    assert len(warnings) >= 16
    assert {len(text) for text in warnings} == {256}
    assert sum(map(len, warnings)) <= 4096 + 256


def test_one_long_warning_is_whole_while_there_is_room(client: Client) -> None:
    name = "x" * 4000
    assert client.post(CLUSTERS, {**cluster("a"), "spec": {name: 1}}).warnings == [f'unknown field "spec.{name}"']


def test_quotes_and_backslashes_are_escaped(client: Client) -> None:
    answer = client.post(CLUSTERS, {**cluster("a"), "spec": {'a"b\\c': 1}})
    assert len(answer.warnings) == 1
    assert 'a"b' in answer.warnings[0]


def test_no_text_of_a_client_can_break_a_header(client: Client) -> None:
    hostile = "a\r\nSet-Cookie: x=1\r\n\r\n<html>\x00\x7f"
    answer = client.post(CLUSTERS, {**cluster("a"), "spec": {hostile: 1}})
    answer.expect(201)
    assert answer.header("Set-Cookie") is None
    assert all(character.isprintable() for _, value in answer.headers for character in value)


def test_a_warning_in_any_script(client: Client) -> None:
    answer = client.post(CLUSTERS, {**cluster("a"), "spec": {"größe-日本": 1}})
    answer.expect(201)
    assert answer.warnings == ['unknown field "spec.größe-日本"']


def test_a_refusal_carries_the_warnings_so_far(client: Client) -> None:
    answer = client.post(CLUSTERS, cluster("Bad_Name", bogus=1))
    answer.refused(422, "Invalid")
    assert answer.warnings == ['unknown field "metadata.bogus"']
