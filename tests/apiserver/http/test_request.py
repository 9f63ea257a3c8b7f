from __future__ import annotations

import pytest

from clusterregistry.apiserver.http.request import HeaderNames
from tests.apiserver.server.requests import BareRequest

REMOTE = HeaderNames(("x-remote-user", "x-remote-group"), prefixes=("x-remote-extra-", "x-more-"))


@pytest.mark.parametrize("name", ["X-Remote-User", "x-remote-group", "X-Remote-Extra-Scopes", "X-More-"])
@pytest.mark.parametrize("before", [[], [("Accept", "*/*")]])
def test_a_header_is_found_by_its_name_or_how_it_begins(name: str, before: list[tuple[str, str]]) -> None:
    request = BareRequest(*before, (name, "value"), (name, "again"), ("Host", "x"))
    assert request.has_any_header(REMOTE)
    request.drop_headers(REMOTE)
    assert not request.has_any_header(REMOTE)
    assert request.header(name.lower()) == ""
    assert request.header_values(name.lower()) == ()
    assert request.headers_beginning("x-") == []
    assert request.header("host") == "x"


@pytest.mark.parametrize("name", ["X-Remote-Users", "X_Remote_User", "Xx-Remote-Extra-A", "X-Remote-Extra", "X-Mor"])
def test_another_header_is_left_alone(name: str) -> None:
    request = BareRequest((name, "value"), (name, "again"))
    assert not request.has_any_header(REMOTE)
    request.drop_headers(REMOTE)
    assert request.header_values(name.lower()) == ["value", "again"]


def test_what_is_remembered_of_names_that_clients_choose_is_bounded() -> None:
    names = HeaderNames(("a",), prefixes=("b-",))
    for number in range(1000):
        assert names.found_in(("a", f"b-{number}", f"c-{number}")) == {"a", f"b-{number}"}
    assert names.found_in(("a", "c" * 100_000)) == {"a"}
    assert len(names._found) <= 256
    assert all(sum(map(len, given)) <= 2048 for given in names._found)


def test_headers_that_begin_alike_keep_their_order_and_repetitions() -> None:
    request = BareRequest(("X-A-One", "1"), ("Y", "y"), ("x-a-two", "2"), ("X-A-ONE", "3"))
    assert request.headers_beginning("x-a-") == [("one", "1"), ("two", "2"), ("one", "3")]
