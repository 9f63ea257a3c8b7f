"""The authorization attributes and the warnings of a request."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apiserver.authn.user import User, authenticated
from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.request import Request, WarningRecorder, attributes_of
from tests.apiserver.server.requests import BareRequest


def headers(*texts: str) -> list[bytes]:
    recorder = WarningRecorder()
    for text in texts:
        recorder.add(text)
    found = recorder.headers()
    assert {name for name, _ in found} <= {b"warning"}
    return [value for _, value in found]


def test_nothing_is_no_header() -> None:
    assert headers() == headers("") == []


def test_the_form_of_a_warning() -> None:
    assert headers("careful") == [b'299 - "careful"']


def test_each_is_given_once_and_in_order() -> None:
    assert headers("b", "a", "b") == [b'299 - "b"', b'299 - "a"']


def test_quotes_are_escaped() -> None:
    assert headers('a "b" \\c') == [b'299 - "a \\"b\\" \\\\c"']


def test_four_thousand_and_ninety_six_characters_are_not_cut() -> None:
    assert headers("x" * 4096) == [b'299 - "' + b"x" * 4096 + b'"']
    assert headers("x" * 4097) == [b'299 - "' + b"x" * 256 + b'"']


def test_above_that_every_warning_is_cut() -> None:
    found = headers(*(f"{index:02}" + "x" * 298 for index in range(14)))
    assert {len(value) for value in found} == {len(b'299 - ""') + 256}
    assert len(found) == 14


def test_a_short_warning_stays_whole_beside_long_ones() -> None:
    assert headers("short", "x" * 5000)[0] == b'299 - "short"'


def test_warnings_that_do_not_fit_are_left_out() -> None:
    found = headers(*(f"{index:03}" + "x" * 400 for index in range(100)))
    assert 16 <= len(found) <= 17


def test_a_checkpoint_can_be_restored_any_number_of_times() -> None:
    recorder = WarningRecorder()
    restore_all = recorder.checkpoint()
    recorder.add("before")
    restore = recorder.checkpoint()
    for _ in range(2):
        recorder.add("behind")
        restore()
        assert recorder.headers() == [(b"warning", b'299 - "before"')]
    restore_all()
    assert recorder.headers() == []


@given(st.lists(st.text(), max_size=30))
def test_any_text_makes_a_valid_header(texts: list[str]) -> None:
    for value in headers(*texts):
        value.decode("utf-8")
        assert value.startswith(b'299 - "')
        assert value.endswith(b'"')
        assert not set(value) & set(range(0x20))
        assert 0x7F not in value


JANE, JOHN = authenticated(name="jane"), authenticated(name="john")


def request_by(user: User, method: str = "PUT", path: str = "/apis/g/v1/things/a/status") -> Request:
    request = BareRequest()
    request.info = request_info.parse(method, path, b"")
    request.user = user
    return request


def test_attributes_have_the_user_of_the_request() -> None:
    assert [attributes_of(request_by(user)).user for user in (JANE, JANE, JOHN, JANE)] == [JANE, JANE, JOHN, JANE]


def test_a_user_with_other_groups_is_another_user() -> None:
    for groups in (("a",), ("b",), ("b",)):
        user = authenticated(name="jane", groups=groups)
        assert attributes_of(request_by(user)).user is user


def test_attributes_have_the_verb_and_the_name_of_the_request() -> None:
    requests = [
        request_by(JANE, method, path) for method in ("GET", "PUT") for path in ("/apis/g/v1/things/b", "/x")
    ] * 2
    found = [(each.verb, each.name, each.path) for each in map(attributes_of, requests)]
    things = "/apis/g/v1/things/b"
    assert found == [("get", "b", things), ("get", "", "/x"), ("update", "b", things), ("put", "", "/x")] * 2
