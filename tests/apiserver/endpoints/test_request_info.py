"""Paths, methods and queries as kube-apiserver reads them."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.options import list_options
from clusterregistry.apiserver.endpoints.request_info import parse, parse_bool
from clusterregistry.apiserver.http.request import Query
from tests.apiserver.api.objects import CLUSTERS

GROUP = "/apis/example.com/v1"


@pytest.mark.parametrize(
    ("method", "path", "query", "verb", "name", "subresource"),
    [
        ("GET", "/things", b"", "list", "", ""),
        ("HEAD", "/things", b"", "list", "", ""),
        ("GET", "/things/", b"", "list", "", ""),
        ("GET", "/things", b"watch=true", "watch", "", ""),
        ("GET", "/things", b"watch", "watch", "", ""),
        ("GET", "/things", b"watch=false", "list", "", ""),
        ("GET", "/things", b"watch=0", "list", "", ""),
        ("GET", "/things", b"watch=true&watch=false", "watch", "", ""),
        ("GET", "/things", b"fieldSelector=metadata.name%3Da", "list", "a", ""),
        ("GET", "/things", b"watch=1&fieldSelector=metadata.name%3Da", "watch", "a", ""),
        ("GET", "/things", b"fieldSelector=metadata.name!%3Da", "list", "", ""),
        ("GET", "/things", b"fieldSelector=nonsense", "list", "", ""),
        ("POST", "/things", b"", "create", "", ""),
        ("POST", "/things", b"fieldSelector=metadata.name%3Da", "create", "", ""),
        ("DELETE", "/things", b"", "deletecollection", "", ""),
        ("DELETE", "/things", b"fieldSelector=metadata.name%3Da", "deletecollection", "a", ""),
        ("GET", "/things/a", b"", "get", "a", ""),
        ("GET", "/things/a", b"watch=true", "get", "a", ""),
        ("HEAD", "/things/a", b"", "get", "a", ""),
        ("PUT", "/things/a", b"", "update", "a", ""),
        ("PATCH", "/things/a", b"", "patch", "a", ""),
        ("DELETE", "/things/a", b"", "delete", "a", ""),
        ("GET", "/things/a/status", b"", "get", "a", "status"),
        ("PUT", "/things/a/status", b"", "update", "a", "status"),
        ("GET", "/watch/things", b"", "watch", "", ""),
        ("GET", "/watch/things/a", b"", "watch", "a", ""),
        ("BREW", "/things/a", b"", "", "a", ""),
    ],
)
def test_resources(  # noqa: PLR0913 - a table
    *, method: str, path: str, query: bytes, verb: str, name: str, subresource: str
) -> None:
    info = parse(method, GROUP + path, query)
    assert info.is_resource
    assert (info.group, info.version, info.resource) == ("example.com", "v1", "things")
    assert (info.verb, info.name, info.subresource) == (verb, name, subresource)


def test_the_core_group_has_no_name() -> None:
    info = parse("GET", "/api/v1/things/a", b"")
    assert (info.group, info.version, info.resource, info.name) == ("", "v1", "things", "a")


def test_a_namespace() -> None:
    info = parse("GET", f"{GROUP}/namespaces/n/things/a", b"")
    assert (info.namespace, info.path_namespace, info.resource, info.name) == ("n", "n", "things", "a")
    assert info.key == "n/a"
    assert parse("GET", f"{GROUP}/watch/namespaces/n/things/a", b"").key == "n/a"


@pytest.mark.parametrize("subresource", ["", "status", "finalize"])
def test_a_namespace_is_a_resource_of_its_own_and_is_authorized_within_itself(subresource: str) -> None:
    info = parse("GET", f"/api/v1/namespaces/n/{subresource}", b"")
    assert (info.resource, info.name, info.subresource) == ("namespaces", "n", subresource)
    assert (info.namespace, info.path_namespace, info.key) == ("n", "", "n")


def test_the_collection_of_namespaces_is_within_none() -> None:
    info = parse("GET", "/api/v1/namespaces", b"")
    assert (info.verb, info.resource, info.namespace) == ("list", "namespaces", "")


@pytest.mark.parametrize(
    "path", ["/", "", "/healthz", "/apis", "/apis/", "/apis/example.com", GROUP, GROUP + "/", "/api/v1", "/x/y/z/a"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "BREW"])
def test_other_paths(path: str, method: str) -> None:
    info = parse(method, path, b"")
    assert not info.is_resource
    assert (info.verb, info.path, info.resource) == (method.lower(), path, "")


@pytest.mark.parametrize("query", [b"\xff", b"watch=%ff", b"&&&", b"=", b"watch=true;x", b"%"])
def test_no_query_is_too_odd(query: bytes) -> None:
    assert parse("GET", f"{GROUP}/things", query).verb in ("list", "watch")


@pytest.mark.parametrize("value", ["true", "1", "yes", "", "True"])
def test_true(value: str) -> None:
    assert parse_bool(value)


@pytest.mark.parametrize("value", ["false", "0", "False", "FALSE", None])
def test_false(value: str | None) -> None:
    assert not parse_bool(value)


_PIECES = st.sampled_from(["metadata.name=mine", "metadata.name!=x", ",", ";", "%", "%zz", "&", "=", "fieldSelector="])


@given(st.lists(_PIECES, max_size=6))
def test_the_authorized_name_is_the_selected_name(pieces: list[str]) -> None:
    query = b"fieldSelector=" + "".join(pieces).encode()
    info = request_info.parse("DELETE", CLUSTERS, query)
    try:
        selected = list_options(Query(query), watch=False).fields.name
    except APIError:
        return
    assert info.name == (selected or "")


def test_authorization_and_selection_ignore_a_pair_that_go_would_not_parse() -> None:
    query = f"fieldSelector={quote('metadata.name=mine')},metadata.name!%3Dx%zz".encode()
    assert request_info.parse("DELETE", CLUSTERS, query).name == ""
    assert Query(query).first("fieldSelector") == ""


def test_long_paths_are_parsed_and_not_cached() -> None:
    before = request_info._parse_cached.cache_info().currsize
    assert request_info.parse("GET", CLUSTERS + "/" + "x" * 5000, b"").name == "x" * 5000
    assert request_info._parse_cached.cache_info().currsize == before
