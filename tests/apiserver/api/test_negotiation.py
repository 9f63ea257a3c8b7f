"""Content negotiation: media types, tables, metadata, indentation, compression."""

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
def test_the_media_type(client: Client, accept: str | None, media_type: str) -> None:
    for path in (CLUSTERS, path_of("a"), path_of("a") + "/status"):
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


def test_the_metadata_of_one_object_is_not_acceptable_for_a_list(client: Client) -> None:
    for accept in (as_kind("PartialObjectMetadata"), as_kind("PartialObjectMetadata") + "," + JSON):
        accepting(client, accept, CLUSTERS).refused(406, "NotAcceptable")


def test_a_write_whose_answer_is_not_acceptable_changes_nothing(client: Client) -> None:
    before = client.get(CLUSTERS).expect(200)
    html = {"Accept": "text/html"}
    for answer in (
        client.post(CLUSTERS, cluster("b"), headers=html),
        client.put(path_of("a"), cluster("a", "gce"), headers=html),
        client.patch(path_of("a"), cluster("a", "gce"), headers=html),
        client.delete(path_of("a"), headers=html),
    ):
        answer.refused(406, "NotAcceptable")
    assert client.get(CLUSTERS).expect(200) == before


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_table(client: Client, version: str) -> None:
    for path in (CLUSTERS, path_of("a")):
        table = accepting(client, as_kind("Table", version), path).expect(200)
        assert (table["kind"], table["apiVersion"]) == ("Table", f"meta.k8s.io/{version}")
        assert table["columnDefinitions"][0]["name"] == "Name"
        (row,) = table["rows"]
        assert len(row["cells"]) == len(table["columnDefinitions"])
        assert row["cells"][0] == "a"
        assert row["object"]["apiVersion"] == f"meta.k8s.io/{version}"
        assert row["object"]["kind"] == "PartialObjectMetadata"
        assert table["metadata"]["resourceVersion"]


def test_the_first_known_table_version_is_used(client: Client) -> None:
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
def test_the_object_in_a_row(client: Client, include: str, kind: str | None) -> None:
    for path in (CLUSTERS, path_of("a")):
        (row,) = accepting(client, as_kind("Table"), path, includeObject=include).expect(200)["rows"]
        assert (row["object"] or {}).get("kind") == kind


def test_an_unknown_include_object_is_refused_for_tables_only(client: Client) -> None:
    for path in (CLUSTERS, path_of("a")):
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


@pytest.mark.parametrize("kind", ["Table", "PartialObjectMetadata"])
def test_writes_answer_in_any_representation(client: Client, kind: str) -> None:
    headers = {"Accept": as_kind(kind)}
    assert client.post(CLUSTERS, cluster("b"), headers=headers).expect(201)["kind"] == kind
    assert client.put(path_of("a"), cluster("a", "gce"), headers=headers).expect(200)["kind"] == kind
    assert client.patch(path_of("a"), {}, headers=headers).expect(200)["kind"] == kind


def test_a_deleted_collection_can_be_a_table(client: Client) -> None:
    assert client.delete(CLUSTERS, headers={"Accept": as_kind("Table")}).expect(200)["kind"] == "Table"


def test_a_status_is_never_a_table(client: Client) -> None:
    accepting(client, as_kind("Table"), path_of("none")).refused(404, "NotFound")
    assert client.delete(path_of("a"), headers={"Accept": as_kind("Table")}).expect(200)["kind"] == "Status"


def test_a_status_is_yaml_if_yaml_is_accepted(client: Client) -> None:
    def as_user(token: str) -> Answer:
        return client.get(CLUSTERS, headers={"Accept": YAML, "Authorization": f"Bearer {token}"})

    accept = {"Accept": YAML}
    for answer, status in (
        (client.get(path_of("none"), headers=accept), 404),
        (client.delete(path_of("none"), headers=accept), 404),
        (client.delete(path_of("a") + "/status", headers=accept), 405),
        (client.delete(path_of("a"), headers=accept), 200),
        (as_user("wrong"), 401),
        (as_user("nobodytoken"), 403),
    ):
        assert (answer.status, answer.header("Content-Type")) == (status, YAML)
        assert yaml.safe_load(answer.body)["kind"] == "Status"


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
def test_pretty_answers_are_indented(
    client: Client, *, query: dict[str, str], agent: str, accept: str, pretty: bool
) -> None:
    for path, kind in ((CLUSTERS, "ClusterList"), (path_of("a"), "Cluster"), (path_of("none"), "Status")):
        answer = client.get(path, headers={"User-Agent": agent, "Accept": accept}, **query)
        assert answer.body.startswith(b"{\n  ") is pretty
        assert answer.json["kind"] == kind


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "not a type", "application/", "json"])
def test_a_body_of_an_unknown_type_is_refused(client: Client, content_type: str) -> None:
    for method, path in (("POST", CLUSTERS), ("PUT", path_of("a")), ("DELETE", path_of("a"))):
        answer = client.request(method, path, body=cluster("a"), headers={"Content-Type": content_type})
        assert JSON in answer.refused(415, "UnsupportedMediaType")["message"]


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


def test_a_large_answer_is_compressed_if_the_client_accepts_gzip(client: Client) -> None:
    large(client, LIMIT)
    for path in (CLUSTERS, path_of("large")):
        plain = client.get(path)
        packed = client.get(path, headers={"Accept-Encoding": "gzip, deflate"})
        assert plain.header("Content-Encoding") is None
        assert (packed.header("Content-Encoding"), packed.header("Vary")) == ("gzip", "Accept-Encoding")
        assert len(packed.body) < len(plain.body) / 10
        assert gzip.decompress(packed.body) == plain.body
        assert packed.header("Content-Length") == str(len(packed.body))


def test_a_large_answer_is_plain_if_the_client_does_not_accept_gzip(client: Client) -> None:
    large(client, LIMIT)
    for encoding in ("", "identity", "deflate, br", "gzip;q=0"):
        answer = client.get(path_of("large"), headers={"Accept-Encoding": encoding})
        assert answer.header("Content-Encoding") is None
        assert answer.expect(200)["metadata"]["name"] == "large"


def test_a_small_answer_is_not_compressed(client: Client) -> None:
    large(client, LIMIT - 2000)
    answer = client.get(path_of("large"), headers={"Accept-Encoding": "gzip"})
    assert answer.header("Content-Encoding") is None


def test_a_large_table_and_large_yaml_are_compressed_too(client: Client) -> None:
    large(client, LIMIT)
    for accept in (as_kind("Table"), YAML):
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        assert client.get(CLUSTERS, headers=headers).header("Content-Encoding") == "gzip"


def test_the_headers_of_an_answer(client: Client) -> None:
    answer = client.get(path_of("a"))
    assert answer.json["apiVersion"] == GROUP_VERSION
    assert answer.header("Content-Length") == str(len(answer.body))
    assert answer.header("Cache-Control") == "no-cache, private"
    audit_ids = {client.get(path_of("a")).header("Audit-Id") for _ in range(3)}
    assert len(audit_ids) == 3


def test_audit_ids_do_not_reveal_how_many_requests_there_are(client: Client) -> None:
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
