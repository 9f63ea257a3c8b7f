"""Reviews over HTTP: in every media type, and in what the server says of itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.codecs import protobuf_codec
from tests.apiserver.api.clients import Client
from tests.apiserver.api.in_process import InProcess, InProcessClient

AUTHORIZATION, AUTHENTICATION = "/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"
ACCESS = f"{AUTHORIZATION}/selfsubjectaccessreviews"
IN_NAMESPACE = f"{AUTHORIZATION}/namespaces/n/localsubjectaccessreviews"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MAY_I = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"resourceAttributes": {"verb": "get", "resource": "clusters"}},
}

ENCODE: dict[str, Callable[[dict[str, Any]], bytes]] = {
    JSON: lambda value: json.dumps(value).encode(),
    YAML: lambda value: yaml.safe_dump(value).encode(),
    PROTOBUF: protobuf_codec.encode,
}
DECODE: dict[str, Callable[[bytes], Any]] = {
    JSON: json.loads,
    YAML: yaml.safe_load,
    PROTOBUF: lambda body: protobuf_codec.decode(body).value,
}


@pytest.mark.parametrize("sent", ENCODE)
@pytest.mark.parametrize("accepted", DECODE)
def test_a_review_in_every_media_type(client: Client, sent: str, accepted: str) -> None:
    answer = client.post(ACCESS, ENCODE[sent](MAY_I), headers={"Content-Type": sent, "Accept": accepted})
    assert (answer.status, answer.header("Content-Type")) == (201, accepted)
    value = DECODE[accepted](answer.body)
    assert (value["kind"], value["spec"], value["status"]) == (MAY_I["kind"], MAY_I["spec"], {"allowed": True})


def test_managed_fields_do_not_depend_on_the_media_type(local: InProcessClient) -> None:
    """A client that sends protobuf always sends a status too."""
    body = protobuf_codec.encode({**MAY_I, "status": {"allowed": False}})
    fields = [
        local.post(ACCESS, sent, headers={"Content-Type": media_type}).expect(201)["metadata"]["managedFields"][0]
        for sent, media_type in ((body, PROTOBUF), (MAY_I, JSON))
    ]
    assert fields[0]["fieldsV1"] == fields[1]["fieldsV1"]
    assert fields[0]["fieldsV1"] == {"f:spec": {"f:resourceAttributes": {".": {}, "f:resource": {}, "f:verb": {}}}}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "empty data (<empty>)"),
        (b"{}", "expected prefix [107 56 115 0] ({})"),
        (protobuf_codec.encode(MAY_I)[:-2], "malformed or cut off"),
        (protobuf_codec.encode({"apiVersion": "v1", "kind": "Status"}), "cannot be handled as a SelfSubject"),
    ],
)
def test_protobuf_that_is_none_is_a_bad_request(local: InProcessClient, body: bytes, told: str) -> None:
    refused = local.post(ACCESS, body, headers={"Content-Type": PROTOBUF}).refused(400, "BadRequest")
    assert told in refused["message"]


def test_a_body_of_another_kind_is_a_bad_request(local: InProcessClient) -> None:
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": MAY_I["spec"]}
    assert local.post(ACCESS, body).refused(400, "BadRequest")["message"] == (
        'SubjectAccessReview in version "v1" cannot be handled as a SelfSubjectAccessReview: '
        'the body is of kind "SubjectAccessReview" of "authorization.k8s.io/v1"'
    )


@pytest.mark.parametrize("metadata", [{"name": "x"}, {"labels": {"a": "b"}}, {"finalizers": ["x/y"]}])
def test_a_question_has_no_metadata(local: InProcessClient, metadata: dict[str, Any]) -> None:
    refused = local.post(ACCESS, {**MAY_I, "metadata": metadata}).refused(422, "Invalid")
    [cause] = refused["details"]["causes"]
    assert (cause["field"], cause["message"].endswith(": must be empty")) == ("metadata", True)


@pytest.mark.parametrize("metadata", [{"name": "x"}, {"labels": {"a": "b"}}, {"finalizers": ["x/y"]}])
def test_a_question_in_a_namespace_has_no_other_metadata(local: InProcessClient, metadata: dict[str, Any]) -> None:
    spec = {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "n"}}
    refused = local.post(IN_NAMESPACE, {"metadata": metadata, "spec": spec}).refused(422, "Invalid")
    [cause] = refused["details"]["causes"]
    assert cause["field"] == "metadata"
    assert cause["message"].endswith(": must be empty except for namespace")


def test_there_is_no_table_of_a_question(local: InProcessClient) -> None:
    as_table = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    local.post(ACCESS, MAY_I, headers=as_table).refused(406, "NotAcceptable")


def test_only_the_metadata_of_a_question(local: InProcessClient) -> None:
    accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    answer = local.post(ACCESS, MAY_I, headers=accept).expect(201)
    assert (answer["kind"], answer["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert "spec" not in answer


def test_a_person_gets_an_indented_answer(local: InProcessClient) -> None:
    assert local.post(ACCESS, MAY_I, pretty="true").body.startswith(b'{\n  "kind": "SelfSubjectAccessReview",\n')


def test_self_subject_review(client: Client) -> None:
    answer = client.post(f"{AUTHENTICATION}/selfsubjectreviews", {}).expect(201)
    assert answer["status"] == {
        "userInfo": {"username": "admin", "uid": "uid1", "groups": ["system:masters", "system:authenticated"]}
    }


def test_token_review(client: Client) -> None:
    answer = client.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": "viewertoken"}}).expect(201)
    assert answer["status"] == {
        "authenticated": True,
        "user": {"username": "viewer", "uid": "uid-viewer", "groups": ["viewers", "system:authenticated"]},
    }


def test_self_subject_rules_review(client: Client) -> None:
    answer = client.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}).expect(201)
    assert any("/api" in rule["nonResourceURLs"] for rule in answer["status"]["nonResourceRules"])
    assert isinstance(answer["status"]["resourceRules"], list)


@pytest.mark.parametrize("resource", ["subjectaccessreviews", "selfsubjectaccessreviews"])
def test_a_question_needs_the_right_to_create_it(local: InProcessClient, resource: str) -> None:
    refused = local.post(f"{AUTHORIZATION}/{resource}", MAY_I, headers={"Authorization": None}).refused(
        403, "Forbidden"
    )
    assert f'cannot create resource "{resource}" in API group "authorization.k8s.io"' in refused["message"]


@pytest.mark.parametrize(
    ("path", "plurals"),
    [
        (AUTHENTICATION, ["selfsubjectreviews", "tokenreviews"]),
        (
            AUTHORIZATION,
            [
                "localsubjectaccessreviews",
                "selfsubjectaccessreviews",
                "selfsubjectrulesreviews",
                "subjectaccessreviews",
            ],
        ),
    ],
)
def test_discovery_lists_reviews_that_can_only_be_created(
    local: InProcessClient, path: str, plurals: list[str]
) -> None:
    resources = local.get(path).expect(200)["resources"]
    assert [each["name"] for each in resources] == plurals
    assert [each["singularName"] for each in resources] == [plural[:-1] for plural in plurals]
    for each in resources:
        assert (each["verbs"], "storageVersionHash" in each) == (["create"], False)
        assert each["namespaced"] == each["name"].startswith("local")


def test_openapi_describes_reviews_and_their_creation_alone(local: InProcessClient) -> None:
    document = local.get(f"/openapi/v3{AUTHORIZATION}").expect(200)
    paths = {path: item.keys() & {"get", "post", "put", "patch", "delete"} for path, item in document["paths"].items()}
    assert paths.pop(f"{AUTHORIZATION}/") == {"get"}
    assert set(paths) == {
        f"{AUTHORIZATION}/{plural}"
        for plural in (
            "namespaces/{namespace}/localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
            "subjectaccessreviews",
        )
    }
    assert all(methods == {"post"} for methods in paths.values())
    schemas = document["components"]["schemas"]
    spec = "io.k8s.api.authorization.v1.SubjectAccessReviewSpec"
    assert schemas["io.k8s.api.authorization.v1.SubjectAccessReview"]["properties"]["spec"]["allOf"] == [
        {"$ref": f"#/components/schemas/{spec}"}
    ]
    assert set(schemas[spec]["properties"]) == {
        "resourceAttributes",
        "nonResourceAttributes",
        "user",
        "groups",
        "extra",
        "uid",
    }


ALL = [
    IN_NAMESPACE,
    f"{AUTHENTICATION}/selfsubjectreviews",
    f"{AUTHENTICATION}/tokenreviews",
    ACCESS,
    f"{AUTHORIZATION}/selfsubjectrulesreviews",
    f"{AUTHORIZATION}/subjectaccessreviews",
]
NAMES = ["metadata", "spec", "status", "user", "groups", "extra", "token", "audiences", "namespace", "verb", "key"]
NESTED = [
    "resourceAttributes",
    "nonResourceAttributes",
    "fieldSelector",
    "rawSelector",
    "requirements",
    "key",
    "values",
]
bodies = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(NAMES + NESTED), below, max_size=4),
    max_leaves=12,
)


@given(path=st.sampled_from(ALL), body=bodies)
def test_no_question_is_too_odd_for_an_answer(in_process: InProcess, path: str, body: Any) -> None:
    answer = in_process.client().request("POST", path, body=json.dumps(body).encode(), headers={"Content-Type": JSON})
    assert answer.status in (201, 400, 422), answer.body


@given(path=st.sampled_from(ALL), body=st.binary(max_size=64))
def test_no_bytes_are_too_odd_for_an_answer(in_process: InProcess, path: str, body: bytes) -> None:
    sent = protobuf_codec.MAGIC + body
    answer = in_process.client().request("POST", path, body=sent, headers={"Content-Type": PROTOBUF})
    assert answer.status in (201, 400, 422), answer.body
