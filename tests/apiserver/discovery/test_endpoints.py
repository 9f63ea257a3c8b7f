from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.meta.errors import APIError
from tests.apiserver.discovery.examples import discovery

NOW = datetime(2030, 1, 2, tzinfo=UTC)
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/", "APIGroupList"),
        ("/apis/shop.example.com", "APIGroup"),
        ("/apis/shop.example.com/", "APIGroup"),
        ("/apis/shop.example.com/v1", "APIResourceList"),
    ],
)
def test_each_path_answers_its_document(path: str, kind: str) -> None:
    answer = discovery().answer(path, now=NOW, accept="application/json")
    assert answer is not None
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert json.loads(answer.body)["kind"] == kind


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/nope",
        "/apis/nope.example.com",
        "/apis/shop.example.com/v9",
        "/apis/shop.example.com/v1/widgets",
        "/openapi",
        "/openapi/v3/nope",
        "/openapi/v3/apis/shop.example.com/v9",
    ],
)
def test_other_paths_are_no_discovery(path: str) -> None:
    assert discovery().answer(path, now=NOW) is None


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_the_root_paths_have_an_aggregated_form(path: str) -> None:
    served = discovery()
    answer = served.answer(path, now=NOW, accept=AGGREGATED + ",application/json")
    assert answer is not None
    assert answer.headers["Content-Type"] == AGGREGATED
    assert answer.headers["Vary"] == "Accept"
    assert json.loads(answer.body)["kind"] == "APIGroupDiscoveryList"
    again = served.answer(path, now=NOW, accept=AGGREGATED, if_none_match=answer.headers["ETag"])
    assert again is not None
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("accept", [AGGREGATED, "text/html", "application/json;as=Table;v=v1;g=meta.k8s.io"])
def test_below_the_root_a_form_or_type_that_is_not_there_is_not_acceptable(accept: str) -> None:
    with pytest.raises(APIError) as caught:
        discovery().answer("/apis/shop.example.com", now=NOW, accept=accept)
    assert caught.value.code == 406


def test_a_group_comes_in_yaml_too() -> None:
    answer = discovery().answer("/apis/shop.example.com", now=NOW, accept="application/yaml")
    assert answer is not None
    assert answer.headers["Content-Type"] == "application/yaml"
    assert yaml_codec.decode(answer.body).value["kind"] == "APIGroup"


def test_the_plain_objects_are_there_for_other_encodings() -> None:
    served = discovery()
    document = served.plain("/apis")
    assert document is not None
    assert json.loads(document.body) == served.objects["/apis"]


def test_open_api_is_served_in_both_versions() -> None:
    served = discovery()
    for path, content_type in [
        ("/openapi/v2", "application/json"),
        ("/openapi/v3", "text/plain; charset=utf-8"),
        ("/openapi/v3/apis/shop.example.com/v1", "application/json"),
    ]:
        answer = served.answer(path, now=NOW)
        assert answer is not None
        assert answer.status == 200
        assert answer.headers["Content-Type"] == content_type


def test_the_urls_of_the_index_are_answered_as_immutable() -> None:
    served = discovery()
    index = served.answer("/openapi/v3", now=NOW)
    assert index is not None
    for entry in json.loads(index.body)["paths"].values():
        path, _, wanted_hash = entry["serverRelativeURL"].partition("?hash=")
        answer = served.answer(path, now=NOW, wanted_hash=wanted_hash)
        assert answer is not None
        assert answer.headers["Cache-Control"] == "public, immutable"


def test_documents_are_the_same_on_every_replica() -> None:
    first, second = discovery(), discovery()
    for path in ("/openapi/v2", "/openapi/v3", "/openapi/v3/apis/shop.example.com/v1"):
        assert first.answer(path, now=NOW) == second.answer(path, now=NOW)
    assert first.openapi_v2.protobuf == second.openapi_v2.protobuf


def test_without_watch_no_document_announces_it() -> None:
    served = discovery(enable_watch=False)
    assert "watch" not in served.objects["/apis/shop.example.com/v1"]["resources"][0]["verbs"]
    combined = served.aggregated("/apis", AGGREGATED)
    assert combined is not None
    assert b'"watch"' not in combined.body
    assert b'"watch"' not in served.openapi_v2.json.body
