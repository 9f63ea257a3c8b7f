from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.endpoints import negotiation
from clusterregistry.apiserver.endpoints.negotiation import (
    JSON,
    PATCH_TYPES,
    PROTOBUF,
    YAML,
    Representation,
    body_type,
    negotiate,
    negotiate_watch,
    patch_type,
)
from tests.apiserver.server.requests import BareRequest


def representation(accept: str, *, native: bool = False, query: bytes = b"") -> Representation:
    request = BareRequest(("accept", accept))
    request.query_string = query
    return negotiate(request, native=native)


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "kind", "version", "media_type"),
    [
        ("", "", "", JSON),
        (TABLE, "Table", "v1", JSON),
        (TABLE.replace("v=v1", "v=v1beta1"), "Table", "v1beta1", JSON),
        ("application/yaml;as=Table;v=v1;g=meta.k8s.io", "Table", "v1", YAML),
        (f"{TABLE},application/json", "Table", "v1", JSON),
        (f"application/json;q=0.9,{TABLE}", "Table", "v1", JSON),
        (f"{TABLE};q=0.5,application/yaml", "", "", YAML),
        (TABLE.replace("Table", "Unknown") + ",application/json", "", "", JSON),
        (f"{TABLE.replace('v=v1', 'v=v2')},{TABLE}", "Table", "v1", JSON),
        ("  application/json ; as=Table ; v=v1 ; g=meta.k8s.io ", "Table", "v1", JSON),
        ("*/*;q=0.1, text/html", "", "", JSON),
        ("text/html;q=1, application/yaml;q=0.2, application/json;q=0.1", "", "", YAML),
    ],
)
def test_the_best_that_we_have(accept: str, kind: str, version: str, media_type: str) -> None:
    found = representation(accept)
    assert (found.kind, found.version, found.media_type) == (kind, version, media_type)


def test_compact_json_is_the_one_that_costs_nothing() -> None:
    assert representation("application/json").is_plain
    for accept in (TABLE, "application/yaml"):
        assert not representation(accept).is_plain
    assert not representation("", query=b"pretty=true").is_plain


def answered(agree: Callable[[], str]) -> str | int:
    """What was agreed on, or the status of the refusal."""
    try:
        return agree()
    except APIError as error:
        return error.code


@given(st.text(max_size=80))
def test_no_header_is_more_than_not_acceptable(accept: str) -> None:
    assert answered(lambda: representation(accept).media_type) in (JSON, YAML, 406)


@given(st.text(max_size=80))
def test_no_content_type_is_more_than_unsupported(content_type: str) -> None:
    assert answered(lambda: body_type(content_type)) in (*negotiation.ACCEPTED, 415)
    assert answered(lambda: patch_type(content_type)) in (*PATCH_TYPES, 415)


@pytest.mark.parametrize("content_type", ["application/json", "APPLICATION/JSON ; charset=utf-8", "", " "])
def test_json_bodies(content_type: str) -> None:
    assert body_type(content_type) == JSON


@pytest.mark.parametrize("content_type", ["application/merge-patch+json", " application/merge-patch+json;charset=x "])
def test_a_patch_names_its_type(content_type: str) -> None:
    assert patch_type(content_type) == "application/merge-patch+json"


@pytest.mark.parametrize("content_type", ["", "application/json", "APPLICATION/MERGE-PATCH+JSON"])
def test_a_patch_must_name_its_type_as_it_is_spelt(content_type: str) -> None:
    with pytest.raises(APIError) as caught:
        patch_type(content_type)
    assert caught.value.code == 415


@pytest.mark.parametrize(
    ("accept", "kind", "media_type"),
    [
        (PROTOBUF, "", PROTOBUF),
        (f"{PROTOBUF},{JSON}", "", PROTOBUF),
        (f"{PROTOBUF};q=0.5,{JSON}", "", JSON),
        ("*/*", "", JSON),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{TABLE}", "Table", JSON),
    ],
)
def test_native_kinds_come_in_protobuf_but_their_tables_do_not(accept: str, kind: str, media_type: str) -> None:
    found = representation(accept, native=True)
    assert (found.kind, found.media_type) == (kind, media_type)


def test_other_kinds_have_no_protobuf() -> None:
    assert answered(lambda: representation(PROTOBUF).media_type) == 406
    assert answered(lambda: body_type(PROTOBUF)) == 415
    assert answered(lambda: body_type(PROTOBUF, native=True)) == PROTOBUF
    assert negotiate_watch(BareRequest(("accept", f"{PROTOBUF},{JSON}")), native=False).media_type == JSON
