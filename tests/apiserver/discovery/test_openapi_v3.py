from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from clusterregistry.apiserver.discovery.documents import Answer, Document
from clusterregistry.apiserver.discovery.openapi_v3 import OpenAPIV3
from clusterregistry.apiserver.discovery.operations import Served
from tests.apiserver.discovery.examples import CARS, RESOURCES
from tests.apiserver.discovery.examples import WIDGETS as WIDGETS_RESOURCE

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
WIDGETS = "/apis/shop.example.com/v1/widgets"
NAME = "apis/shop.example.com/v1"


@pytest.fixture(scope="module")
def openapi() -> OpenAPIV3:
    return OpenAPIV3(Served(resources=RESOURCES), title="Shop", version="v1.2.3")


def document(openapi: OpenAPIV3, name: str = NAME) -> Document:
    found = openapi.document(name)
    assert found is not None
    return found


def content(openapi: OpenAPIV3, name: str = NAME) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(document(openapi, name).body)
    return parsed


def answered(openapi: OpenAPIV3, **request: str) -> Answer:
    answer = openapi.answer(NAME, now=NOW, **request)
    assert answer is not None
    return answer


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def all_names(openapi: OpenAPIV3) -> list[str]:
    return list(json.loads(openapi.index.body)["paths"])


def parameters(operation: dict[str, Any]) -> set[str]:
    return {parameter["name"] for parameter in operation["parameters"]}


def test_the_index_names_every_document_with_its_hash(openapi: OpenAPIV3) -> None:
    paths = json.loads(openapi.index.body)["paths"]
    assert set(paths) == {
        "api",
        "apis",
        "apis/cars.example.org/v2",
        "apis/shop.example.com/v1",
        "apis/shop.example.com/v1beta1",
        "version",
    }
    digest = hashlib.sha512(document(openapi).body).hexdigest().upper()
    assert paths[NAME] == {"serverRelativeURL": f"/openapi/v3/{NAME}?hash={digest}"}


def test_discovery_itself_is_described_for_native_groups_only_as_kube_apiserver_does() -> None:
    native = dataclasses.replace(CARS, native=True)
    openapi = OpenAPIV3(Served(resources=[WIDGETS_RESOURCE, native]), title="Shop", version="v1")
    assert "/apis/shop.example.com/v1/" not in content(openapi)["paths"]
    assert "/apis/cars.example.org/v2/" in content(openapi, "apis/cars.example.org/v2")["paths"]
    assert "apis/cars.example.org" in all_names(openapi)


def test_the_index_is_sent_as_text_as_kube_apiserver_does(openapi: OpenAPIV3) -> None:
    assert openapi.index.content_type == "text/plain; charset=utf-8"


def test_every_reference_resolves_and_no_schema_is_without_use(openapi: OpenAPIV3) -> None:
    for name in all_names(openapi):
        parsed = content(openapi, name)
        known = {f"#/components/schemas/{schema}" for schema in parsed["components"]["schemas"]}
        assert set(references(parsed)) == known


def test_the_documents_are_valid_openapi(openapi: OpenAPIV3) -> None:
    definitions = pytest.importorskip("schemathesis.specs.openapi.definitions")
    for name in all_names(openapi):
        definitions.OPENAPI_30_VALIDATOR.validate(content(openapi, name))


def test_operation_ids_are_unique_over_all_documents(openapi: OpenAPIV3) -> None:
    ids = [
        operation["operationId"]
        for name in all_names(openapi)
        for path in content(openapi, name)["paths"].values()
        for method, operation in path.items()
        if method != "parameters"
    ]
    assert len(ids) == len(set(ids))


def test_a_kind_is_named_with_the_group_reversed_and_has_spec_and_status_in_place(openapi: OpenAPIV3) -> None:
    schema = content(openapi)["components"]["schemas"]["com.example.shop.v1.Widget"]
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "shop.example.com", "kind": "Widget", "version": "v1"}
    ]
    assert set(schema["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}
    assert schema["description"] == "A thing for sale."
    assert "conditions" in schema["properties"]["status"]["properties"]
    listed = content(openapi)["components"]["schemas"]["com.example.shop.v1.WidgetList"]
    assert listed["x-kubernetes-group-version-kind"][0]["kind"] == "WidgetList"
    assert listed["required"] == ["items"]


def test_a_document_has_the_kinds_of_its_own_version_only(openapi: OpenAPIV3) -> None:
    schemas = content(openapi)["components"]["schemas"]
    assert not [name for name in schemas if "v1beta1" in name or "cars" in name]


def test_the_actions_are_those_that_kube_apiserver_names(openapi: OpenAPIV3) -> None:
    paths = content(openapi)["paths"]
    found = {
        (path, method): operation["x-kubernetes-action"]
        for path, item in paths.items()
        for method, operation in item.items()
        if "x-kubernetes-action" in operation
    }
    one, status = WIDGETS + "/{name}", WIDGETS + "/{name}/status"
    assert found == {
        (WIDGETS, "get"): "list",
        (WIDGETS, "post"): "post",
        (WIDGETS, "delete"): "deletecollection",
        (one, "get"): "get",
        (one, "put"): "put",
        (one, "delete"): "delete",
        (one, "patch"): "patch",
        (status, "get"): "get",
        (status, "put"): "put",
        (status, "patch"): "patch",
    }


def test_a_resource_without_status_has_no_status_path(openapi: OpenAPIV3) -> None:
    paths = content(openapi, "apis/cars.example.org/v2")["paths"]
    assert [path for path in paths if path.endswith("/status")] == []


@pytest.mark.parametrize(("suffix", "method"), [("", "post"), ("/{name}", "put"), ("/{name}", "patch")])
def test_writes_take_field_validation_which_kubectl_looks_for(openapi: OpenAPIV3, suffix: str, method: str) -> None:
    operation = content(openapi)["paths"][WIDGETS + suffix][method]
    assert {"dryRun", "fieldManager", "fieldValidation"} <= parameters(operation)
    assert operation["x-kubernetes-group-version-kind"] == {
        "group": "shop.example.com",
        "kind": "Widget",
        "version": "v1",
    }


def test_list_and_delete_take_their_parameters(openapi: OpenAPIV3) -> None:
    paths = content(openapi)["paths"]
    assert parameters(paths[WIDGETS]["get"]) == {
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "watch",
        "allowWatchBookmarks",
        "sendInitialEvents",
    }
    assert parameters(paths[WIDGETS + "/{name}"]["delete"]) == {
        "dryRun",
        "gracePeriodSeconds",
        "orphanDependents",
        "propagationPolicy",
    }
    assert parameters(paths[WIDGETS + "/{name}"]) == {"name", "pretty"}


def test_without_watch_its_parameters_are_not_listed() -> None:
    openapi = OpenAPIV3(Served(resources=RESOURCES, enable_watch=False), title="Shop", version="v1")
    listed = parameters(content(openapi)["paths"][WIDGETS]["get"])
    assert not listed & {"watch", "allowWatchBookmarks", "sendInitialEvents"}


def test_patch_announces_the_types_it_is_given() -> None:
    types = ("application/merge-patch+json", "application/apply-patch+yaml")
    openapi = OpenAPIV3(Served(resources=RESOURCES, patch_types=types), title="Shop", version="v1")
    body = content(openapi)["paths"][WIDGETS + "/{name}"]["patch"]["requestBody"]
    assert set(body["content"]) == set(types)


def test_a_json_patch_is_a_list_of_operations(openapi: OpenAPIV3) -> None:
    body = content(openapi)["paths"][WIDGETS + "/{name}"]["patch"]["requestBody"]["content"]
    assert body["application/json-patch+json"]["schema"]["type"] == "array"
    assert "$ref" in body["application/merge-patch+json"]["schema"]


def test_every_failure_is_a_status(openapi: OpenAPIV3) -> None:
    for item in content(openapi)["paths"].values():
        for method, operation in item.items():
            if method != "parameters":
                failure = operation["responses"]["default"]["content"]["application/json"]["schema"]
                assert failure["$ref"].endswith("meta.v1.Status")


def test_without_a_hash_there_is_no_cache_control(openapi: OpenAPIV3) -> None:
    answer = answered(openapi)
    assert answer.status == 200
    assert answer.body == document(openapi).body
    assert answer.headers == {
        "Content-Type": "application/json",
        "Vary": "Accept",
        "ETag": document(openapi).etag,
    }


def test_with_the_right_hash_the_answer_may_be_kept_for_a_year(openapi: OpenAPIV3) -> None:
    answer = answered(openapi, wanted_hash=document(openapi).hash)
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "public, immutable"
    assert answer.headers["Expires"] == "Thu, 02 Jan 2031 03:04:05 GMT"


def test_a_wrong_hash_is_sent_to_the_right_one(openapi: OpenAPIV3) -> None:
    answer = answered(openapi, wanted_hash="OLD")
    assert answer.status == 301
    assert answer.headers["Location"] == f"/openapi/v3/{NAME}?hash={document(openapi).hash}"
    assert answer.body == b""


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
def test_a_matching_entity_tag_is_a_304(openapi: OpenAPIV3, form: str) -> None:
    etag = document(openapi).etag
    answer = answered(openapi, if_none_match=form.format(etag))
    assert (answer.status, answer.body) == (304, b"")
    assert answer.headers["ETag"] == etag


def test_another_tag_is_answered_in_full(openapi: OpenAPIV3) -> None:
    assert answered(openapi, if_none_match='"other"').status == 200


def test_an_unknown_document_is_none_and_another_encoding_not_acceptable(openapi: OpenAPIV3) -> None:
    assert openapi.answer("apis/nope/v1", now=NOW) is None
    assert answered(openapi, accept="text/html").status == 406
    assert answered(openapi, accept="text/html,application/json").status == 200
