from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apiserver.endpoints.request import WarningRecorder


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


def test_what_is_short_stays_whole_beside_what_is_cut() -> None:
    assert headers("short", "x" * 5000)[0] == b'299 - "short"'


def test_what_does_not_fit_is_left_out() -> None:
    found = headers(*(f"{index:03}" + "x" * 400 for index in range(100)))
    assert 16 <= len(found) <= 17


def test_what_was_added_since_can_be_taken_back_any_number_of_times() -> None:
    recorder = WarningRecorder()
    take_back_all = recorder.checkpoint()
    recorder.add("before")
    take_back = recorder.checkpoint()
    for _ in range(2):
        recorder.add("behind")
        take_back()
        assert recorder.headers() == [(b"warning", b'299 - "before"')]
    take_back_all()
    assert recorder.headers() == []


@given(st.lists(st.text(), max_size=30))
def test_no_text_makes_a_header_that_is_none(texts: list[str]) -> None:
    for value in headers(*texts):
        value.decode("utf-8")
        assert value.startswith(b'299 - "')
        assert value.endswith(b'"')
        assert not set(value) & set(range(0x20))
        assert 0x7F not in value
