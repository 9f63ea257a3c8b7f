"""Headers and queries of a request."""

from __future__ import annotations

import pytest

from clusterregistry.apiserver.http.request import HeaderNames, Query
from tests.apiserver.server.requests import BareRequest

REMOTE = HeaderNames(("x-remote-user", "x-remote-group"), prefixes=("x-remote-extra-", "x-more-"))


@pytest.mark.parametrize("name", ["X-Remote-User", "x-remote-group", "X-Remote-Extra-Scopes", "X-More-"])
def test_headers_are_found_and_dropped_by_name_or_prefix(name: str) -> None:
    request = BareRequest(("Accept", "*/*"), (name, "value"), (name, "again"), ("Host", "x"))
    assert request.has_any_header(REMOTE)
    request.drop_headers(REMOTE)
    assert not request.has_any_header(REMOTE)
    assert request.header(name.lower()) == ""
    assert request.header_values(name.lower()) == ()
    assert request.headers_beginning("x-") == []
    assert request.header("host") == "x"


@pytest.mark.parametrize("name", ["X-Remote-Users", "X_Remote_User", "Xx-Remote-Extra-A", "X-Remote-Extra", "X-Mor"])
def test_other_headers_are_kept(name: str) -> None:
    request = BareRequest((name, "value"), (name, "again"))
    assert not request.has_any_header(REMOTE)
    request.drop_headers(REMOTE)
    assert request.header_values(name.lower()) == ["value", "again"]


def test_the_cache_of_header_names_is_bounded() -> None:
    names = HeaderNames(("a",), prefixes=("b-",))
    for number in range(1000):
        assert names.found_in(("a", f"b-{number}", f"c-{number}")) == {"a", f"b-{number}"}
    assert names.found_in(("a", "c" * 100_000)) == {"a"}
    assert len(names._found) <= 256
    assert all(sum(map(len, given)) <= 2048 for given in names._found)


def test_headers_with_a_prefix_keep_their_order_and_repetitions() -> None:
    request = BareRequest(("X-A-One", "1"), ("Y", "y"), ("x-a-two", "2"), ("X-A-ONE", "3"))
    assert request.headers_beginning("x-a-") == [("one", "1"), ("two", "2"), ("one", "3")]


@pytest.mark.parametrize("rest", [b"", b"&c=1" * 100], ids=["cached", "too long to cache"])
def test_of_repeated_parameters_the_first_counts(rest: bytes) -> None:
    for _ in range(2):
        query = Query(b"a=1&a=2&b=" + rest)
        assert (list(query.all("a")), list(query.all("z"))) == (["1", "2"], [])
        assert (query.first("a"), query.first("b", "x"), query.first("z", "x")) == ("1", "", "x")
        assert ("b" in query, "z" in query, bool(query)) == (True, False, True)
    assert not Query(b"")
