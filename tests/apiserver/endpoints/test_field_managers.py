from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apiserver.endpoints.options import WriteOptions, manager_name
from clusterregistry.apiserver.endpoints.request import Request


class _Request(Request):
    """One of which only the headers matter."""

    async def read_body(self) -> tuple[bytes, bool]:
        raise AssertionError

    async def disconnected(self) -> None:
        raise AssertionError


def request(user_agent: bytes | None) -> Request:
    headers = {} if user_agent is None else {"user-agent": user_agent.decode("latin-1")}
    return _Request(method="POST", path="/", query_string=b"", headers=headers)


def manager(user_agent: bytes | None, *, asked: str = "") -> str:
    return manager_name(request(user_agent), WriteOptions(field_manager=asked))


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (b"kubectl/v1.36.4 (linux/amd64) kubernetes/abc", "kubectl"),
        (b"curl/8.5.0", "curl"),
        (b"python-requests", "python-requests"),
        (b"Mozilla/5.0 (X11; Linux x86_64)", "Mozilla"),
        (b"my program", "my program"),
        (b" spaces /1", " spaces "),
        (b"/1.0", ""),
        (b"//", ""),
        (b"", ""),
        (None, ""),
    ],
)
def test_the_program_is_what_stands_before_the_first_slash(user_agent: bytes | None, name: str) -> None:
    assert manager(user_agent) == name


def test_the_query_comes_before_the_user_agent() -> None:
    assert manager(b"kubectl/v1", asked="me/too") == "me/too"
    assert manager(None, asked="me") == "me"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (b"a\tb\x7f\x01c/1", "abc"),
        ("a\N{NO-BREAK SPACE}b\N{ZERO WIDTH SPACE}c/1".encode(), "abc"),
        ("a\N{LINE SEPARATOR}\N{ZERO WIDTH NO-BREAK SPACE}b".encode(), "ab"),
    ],
)
def test_what_cannot_be_printed_is_left_out(user_agent: bytes, name: str) -> None:
    assert manager(user_agent) == name


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("Käse/1".encode(), "Käse"),
        ("日本/1".encode(), "日本"),
        ("😀".encode(), "😀"),
        ("Käse/1".encode("latin-1"), "K\N{REPLACEMENT CHARACTER}se"),
        (b"a\xff\xfe/1", "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_a_user_agent_is_read_as_utf_8(user_agent: bytes, name: str) -> None:
    assert manager(user_agent) == name


@pytest.mark.parametrize("broken", [b"\xe2\x82", b"\xf0\x9f\x98", b"\xf0\x9f", b"\xed\xa0\x80", b"\xc3\xc3"])
def test_each_byte_that_fits_nowhere_is_one_replacement(broken: bytes) -> None:
    assert manager(b"a" + broken + b"b/1") == "a" + "\N{REPLACEMENT CHARACTER}" * len(broken) + "b"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (b"x" * 128, "x" * 128),
        (b"x" * 129, "x" * 128),
        (b"x" * 5000 + b"/1", "x" * 128),
        (("x" * 127 + "é").encode(), "x" * 127),
        (("x" * 126 + "é").encode(), "x" * 126 + "é"),
        (("x" * 127 + "éy").encode(), "x" * 127),
        (("日" * 50).encode(), "日" * 42),
        (b"\x01" * 200 + b"x" * 200, "x" * 128),
    ],
)
def test_a_name_has_at_most_128_bytes_and_whole_characters(user_agent: bytes, name: str) -> None:
    assert manager(user_agent) == name


@given(st.binary(max_size=300))
def test_whatever_comes_the_name_can_be_stored(user_agent: bytes) -> None:
    name = manager(user_agent)
    assert len(name.encode()) <= 128
    assert name.isprintable()
    assert "/" not in name
