"""Which representation a client gets."""

from __future__ import annotations

import gzip
import json
import uuid
from typing import Any

import pytest
import yaml

from clusterregistry.apimachinery.codecs import protobuf_codec
from tests.apiserver.api.clients import Answer, Client
from tests.apiserver.api.objects import CLUSTERS, GROUP_VERSION, cluster, path_of

JSON, YAML = "application/json", "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
LIMIT = 128 * 1024


def as_kind(kind: str, version: str = "v1", group: str = "meta.k8s.io", media: str = JSON) -> str:
    return f"{media};as={kind};v={version};g={group}"


def accepting(client: Client, accept: str | None, path: str = path_of("a"), **query: Any) -> Answer:
    return client.get(path, headers={"Accept": accept}, **query)


@pytest.fixture(autouse=True)
def _one_cluster(client: Client) -> None:
    client.post(CLUSTERS, cluster("a", labels={"x": "1"})).expect(201)


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (JSON, JSON),
        ("application/json; charset=utf-8", JSON),
        (YAML, YAML),
        (f"{YAML},{JSON}", YAML),
        (f"{JSON},{YAML}", JSON),
        (f"{JSON};q=0.5,{YAML}", YAML),
        (f"{YAML};q=0.5,{JSON};q=0.9", JSON),
        (f"*/*;q=0.1,{YAML}", YAML),
        (f"text/html,{YAML}", YAML),
        (f"text/html,{JSON};q=0.1", JSON),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8", JSON),
        ("application/vnd.kubernetes.protobuf,application/json", JSON),
    ],
)
@pytest.mark.parametrize("path", [CLUSTERS, path_of("a"), path_of("a") + "/status"])
def test_the_media_type(client: Client, accept: str | None, media_type: str, path: str) -> None:
    answer = accepting(client, accept, path)
    assert (answer.status, answer.header("Content-Type")) == (200, media_type)
    plain = client.get(path).expect(200)
    assert (json.loads if media_type == JSON else yaml.safe_load)(answer.body) == plain


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "text/*",
        "image/png,text/plain",
        "application/xml",
        "APPLICATION/JSON",
        as_kind("Nothing"),
        as_kind("Table", version="v2"),
        as_kind("Table", group="example.com"),
        f"{JSON};as=Table",
        f"{JSON};v=v1;g=meta.k8s.io",
        f"{JSON};stream=other",
        as_kind("PartialObjectMetadataList"),
        as_kind("PartialObjectMetadataList") + "," + JSON,
    ],
)
def test_what_is_not_acceptable(client: Client, accept: str) -> None:
    accepting(client, accept).refused(406, "NotAcceptable")


@pytest.mark.parametrize("accept", [as_kind("PartialObjectMetadata"), as_kind("PartialObjectMetadata") + "," + JSON])
def test_the_metadata_of_one_object_is_not_acceptable_for_a_list(client: Client, accept: str) -> None:
    accepting(client, accept, CLUSTERS).refused(406, "NotAcceptable")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_is_not_acceptable_is_not_done(client: Client, method: str) -> None:
    path = CLUSTERS if method == "POST" else path_of("a")
    body = cluster("b") if method == "POST" else cluster("a", "gce")
    before = client.get(CLUSTERS).expect(200)
    content_type = "application/merge-patch+json" if method == "PATCH" else JSON
    headers = {"Accept": "text/html", "Content-Type": content_type}
    client.request(method, path, body=None if method == "DELETE" else body, headers=headers).refused(
        406, "NotAcceptable"
    )
    assert client.get(CLUSTERS).expect(200) == before


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("path", [CLUSTERS, path_of("a")])
def test_a_table(client: Client, version: str, path: str) -> None:
    table = accepting(client, as_kind("Table", version), path).expect(200)
    assert (table["kind"], table["apiVersion"]) == ("Table", f"meta.k8s.io/{version}")
    assert table["columnDefinitions"][0]["name"] == "Name"
    (row,) = table["rows"]
    assert len(row["cells"]) == len(table["columnDefinitions"])
    assert row["cells"][0] == "a"
    assert row["object"]["apiVersion"] == f"meta.k8s.io/{version}"
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert table["metadata"]["resourceVersion"]


def test_the_first_table_that_is_known_is_taken(client: Client) -> None:
    asked = f"{as_kind('Table', 'v9')},{as_kind('Table', 'v1beta1')},{JSON}"
    assert accepting(client, asked).expect(200)["apiVersion"] == "meta.k8s.io/v1beta1"


def test_a_table_of_a_page_goes_on(client: Client) -> None:
    client.post(CLUSTERS, cluster("b")).expect(201)
    first = accepting(client, as_kind("Table"), CLUSTERS, limit=1).expect(200)
    assert first["metadata"]["remainingItemCount"] == 1
    following = {"continue": first["metadata"]["continue"]}
    second = accepting(client, as_kind("Table"), CLUSTERS, limit=1, **following).expect(200)
    assert [row["cells"][0] for row in second["rows"]] == ["b"]


@pytest.mark.parametrize(
    ("include", "kind"),
    [("None", None), ("Metadata", "PartialObjectMetadata"), ("", "PartialObjectMetadata"), ("Object", "Cluster")],
)
@pytest.mark.parametrize("path", [CLUSTERS, path_of("a")])
def test_what_a_row_brings_along(client: Client, include: str, kind: str | None, path: str) -> None:
    (row,) = accepting(client, as_kind("Table"), path, includeObject=include).expect(200)["rows"]
    assert (row["object"] or {}).get("kind") == kind


@pytest.mark.parametrize("path", [CLUSTERS, path_of("a")])
def test_what_a_row_brings_along_must_be_known(client: Client, path: str) -> None:
    accepting(client, as_kind("Table"), path, includeObject="Everything").refused(400, "BadRequest")
    accepting(client, JSON, path, includeObject="Everything").expect(200)


def test_a_table_in_yaml(client: Client) -> None:
    answer = accepting(client, as_kind("Table", media=YAML))
    assert answer.header("Content-Type") == YAML
    assert yaml.safe_load(answer.body)["kind"] == "Table"


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_metadata_alone(client: Client, version: str) -> None:
    whole = client.get(path_of("a")).expect(200)
    partial = accepting(client, as_kind("PartialObjectMetadata", version)).expect(200)
    assert partial == {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": whole["metadata"],
    }
    listed = accepting(client, as_kind("PartialObjectMetadataList", version), CLUSTERS).expect(200)
    assert (listed["kind"], listed["items"]) == ("PartialObjectMetadataList", [partial])


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
@pytest.mark.parametrize("kind", ["Table", "PartialObjectMetadata"])
def test_writes_answer_in_any_representation(client: Client, method: str, kind: str) -> None:
    headers = {"Accept": as_kind(kind)}
    if method == "POST":
        answer = client.post(CLUSTERS, cluster("b"), headers=headers)
    elif method == "PUT":
        answer = client.put(path_of("a"), cluster("a", "gce"), headers=headers)
    else:
        answer = client.patch(path_of("a"), {}, headers=headers)
    assert answer.expect(201 if method == "POST" else 200)["kind"] == kind


def test_a_deleted_collection_can_be_a_table(client: Client) -> None:
    assert client.delete(CLUSTERS, headers={"Accept": as_kind("Table")}).expect(200)["kind"] == "Table"


def test_a_status_is_itself_where_a_table_was_asked_for(client: Client) -> None:
    accepting(client, as_kind("Table"), path_of("none")).refused(404, "NotFound")
    assert client.delete(path_of("a"), headers={"Accept": as_kind("Table")}).expect(200)["kind"] == "Status"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", path_of("none"), 404),
        ("DELETE", path_of("none"), 404),
        ("DELETE", path_of("a"), 200),
        ("DELETE", path_of("a") + "/status", 405),
    ],
)
def test_a_status_comes_in_yaml_where_that_is_wanted(client: Client, method: str, path: str, status: int) -> None:
    answer = client.request(method, path, headers={"Accept": YAML})
    assert (answer.status, answer.header("Content-Type")) == (status, YAML)
    assert yaml.safe_load(answer.body)["kind"] == "Status"


def test_who_is_refused_in_yaml(client: Client) -> None:
    for token, status in (("wrong", 401), ("nobodytoken", 403)):
        answer = client.get(CLUSTERS, headers={"Accept": YAML, "Authorization": f"Bearer {token}"})
        assert (answer.status, answer.header("Content-Type")) == (status, YAML)
        assert yaml.safe_load(answer.body)["code"] == status


def is_pretty(answer: Answer) -> bool:
    return answer.body.startswith(b"{\n  ")


@pytest.mark.parametrize(
    ("query", "agent", "accept", "pretty"),
    [
        ({}, "kubectl/v1.36", JSON, False),
        ({"pretty": "true"}, "kubectl/v1.36", JSON, True),
        ({"pretty": "1"}, "", JSON, True),
        ({"pretty": "false"}, "curl/8", JSON, False),
        ({"pretty": "0"}, "curl/8", JSON, False),
        ({"pretty": "nonsense"}, "curl/8", JSON, False),
        ({"pretty": ""}, "curl/8", JSON, True),
        ({}, "curl/8", JSON, True),
        ({}, "Wget/1", JSON, True),
        ({}, "Mozilla/5.0 (X11)", JSON, True),
        ({}, "", f"{JSON};pretty=1", True),
        ({}, "", f"{JSON};pretty=0", False),
    ],
)
@pytest.mark.parametrize("path", [CLUSTERS, path_of("a"), path_of("none")])
def test_answers_for_people_are_indented(  # noqa: PLR0913 - a table
    client: Client, *, query: dict[str, str], agent: str, accept: str, pretty: bool, path: str
) -> None:
    answer = client.get(path, headers={"User-Agent": agent, "Accept": accept}, **query)
    assert is_pretty(answer) is pretty
    assert answer.json["kind"] in ("Cluster", "ClusterList", "Status")


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "not a type", "application/", "json"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_body_of_an_unknown_type_is_refused(client: Client, content_type: str, method: str) -> None:
    path = CLUSTERS if method == "POST" else path_of("a")
    answer = client.request(method, path, body=cluster("a"), headers={"Content-Type": content_type})
    refused = answer.refused(415, "UnsupportedMediaType")
    assert JSON in refused["message"]


@pytest.mark.parametrize(
    "content_type", [JSON, "application/json; charset=utf-8", "Application/JSON", "", None, "application/json;x=y"]
)
def test_a_body_of_json(client: Client, content_type: str | None) -> None:
    client.post(CLUSTERS, cluster("b"), headers={"Content-Type": content_type}).expect(201)


def test_a_body_of_yaml(client: Client) -> None:
    text = yaml.safe_dump(cluster("b", labels={"on": "yes"})).encode()
    made = client.post(CLUSTERS, text, headers={"Content-Type": YAML}).expect(201)
    assert made["metadata"]["labels"] == {"on": "yes"}
    changed = client.put(path_of("b"), yaml.safe_dump(cluster("b", "gce")).encode(), headers={"Content-Type": YAML})
    assert changed.expect(200)["spec"] == {"cloudProvider": {"name": "gce"}}


@pytest.mark.parametrize("body", [b"a: b: c", b"- a\n- b\n", b"a: [", b"\t", b"&a [*a]", b"!!python/object:x {}"])
def test_a_body_of_broken_yaml(client: Client, body: bytes) -> None:
    client.post(CLUSTERS, body, headers={"Content-Type": YAML}).refused(400, "BadRequest")


def large(client: Client, size: int) -> None:
    client.post(CLUSTERS, cluster("large", "0123456789" * (size // 10))).expect(201)


@pytest.mark.parametrize("path", [CLUSTERS, path_of("large")])
def test_a_large_answer_is_compressed_for_who_takes_it(client: Client, path: str) -> None:
    large(client, LIMIT)
    plain = client.get(path)
    packed = client.get(path, headers={"Accept-Encoding": "gzip, deflate"})
    assert plain.header("Content-Encoding") is None
    assert (packed.header("Content-Encoding"), packed.header("Vary")) == ("gzip", "Accept-Encoding")
    assert len(packed.body) < len(plain.body) / 10
    assert gzip.decompress(packed.body) == plain.body
    assert packed.header("Content-Length") == str(len(packed.body))


@pytest.mark.parametrize("encoding", ["", "identity", "deflate, br", "gzip;q=0"])
def test_who_does_not_take_it_gets_it_plain(client: Client, encoding: str) -> None:
    large(client, LIMIT)
    answer = client.get(path_of("large"), headers={"Accept-Encoding": encoding})
    assert answer.header("Content-Encoding") is None
    assert answer.expect(200)["metadata"]["name"] == "large"


def test_a_small_answer_is_not_worth_it(client: Client) -> None:
    large(client, LIMIT - 2000)
    answer = client.get(path_of("large"), headers={"Accept-Encoding": "gzip"})
    assert answer.header("Content-Encoding") is None


def test_a_large_table_and_large_yaml_are_compressed_too(client: Client) -> None:
    large(client, LIMIT)
    for accept in (as_kind("Table"), YAML):
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        assert client.get(CLUSTERS, headers=headers).header("Content-Encoding") == "gzip"


def test_every_answer_says_what_it_is(client: Client) -> None:
    answer = client.get(path_of("a"))
    assert answer.json["apiVersion"] == GROUP_VERSION
    assert answer.header("Content-Length") == str(len(answer.body))
    assert answer.header("Cache-Control") == "no-cache, private"
    audit_ids = {client.get(path_of("a")).header("Audit-Id") for _ in range(3)}
    assert len(audit_ids) == 3


def test_the_ids_of_requests_do_not_tell_how_many_others_make(client: Client) -> None:
    ids = [uuid.UUID(client.get(path_of("a")).header("Audit-Id") or "") for _ in range(10)]
    assert all(each.version == 4 and each.variant == uuid.RFC_4122 for each in ids)
    assert len({each.time_low for each in ids}) == len({each.node for each in ids}) == 10
    assert ids != sorted(ids)


def test_a_kind_of_our_own_has_no_protobuf_but_its_errors_have(client: Client) -> None:
    answer = accepting(client, PROTOBUF)
    assert (answer.status, answer.header("Content-Type")) == (406, PROTOBUF)
    status = protobuf_codec.decode(answer.body).value
    assert (status["kind"], status["reason"], status["code"]) == ("Status", "NotAcceptable", 406)
    assert accepting(client, f"{PROTOBUF},{JSON}", path_of("nobody")).header("Content-Type") == PROTOBUF


def test_a_body_in_protobuf_is_not_taken_for_a_kind_of_our_own(client: Client) -> None:
    body = protobuf_codec.encode({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"})
    client.post(CLUSTERS, body, headers={"Content-Type": PROTOBUF}).refused(415, "UnsupportedMediaType")
