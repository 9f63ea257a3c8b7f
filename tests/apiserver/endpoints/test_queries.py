"""What is authorised is what is then done: both read the same query."""

from __future__ import annotations

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.options import list_options
from clusterregistry.apiserver.http.request import Query
from tests.apiserver.api.objects import CLUSTERS

_PIECES = st.sampled_from(["metadata.name=mine", "metadata.name!=x", ",", ";", "%", "%zz", "&", "=", "fieldSelector="])


@given(st.lists(_PIECES, max_size=6))
def test_the_name_that_is_authorised_is_the_name_that_is_selected(pieces: list[str]) -> None:
    query = b"fieldSelector=" + "".join(pieces).encode()
    info = request_info.parse("DELETE", CLUSTERS, query)
    try:
        selected = list_options(Query(query), watch=False).fields.name
    except APIError:
        return
    assert info.name == (selected or "")


def test_a_pair_that_go_would_not_read_is_left_out_on_both_sides() -> None:
    query = f"fieldSelector={quote('metadata.name=mine')},metadata.name!%3Dx%zz".encode()
    assert request_info.parse("DELETE", CLUSTERS, query).name == ""
    assert Query(query).first("fieldSelector") == ""


def test_long_requests_are_read_and_not_kept() -> None:
    before = request_info._parse_cached.cache_info().currsize
    assert request_info.parse("GET", CLUSTERS + "/" + "x" * 5000, b"").name == "x" * 5000
    assert request_info._parse_cached.cache_info().currsize == before


def test_what_is_asked_is_read_the_same_the_second_time() -> None:
    for text in (b"a=1&a=2&b=", b"a=1&a=2&b=" + b"&c=1" * 100):
        first, second = Query(text), Query(text)
        for query in (first, second):
            assert list(query.all("a")) == ["1", "2"]
            assert (query.first("a"), query.first("b", "x"), query.first("z", "x")) == ("1", "", "x")
            assert query
    assert not Query(b"")
