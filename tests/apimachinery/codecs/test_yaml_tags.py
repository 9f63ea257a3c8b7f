"""Directives that give tags short names: libyaml compares each with all, and writes out what a name stands for."""

from __future__ import annotations

import pytest

from clusterregistry.apimachinery.codecs import DecodeError, yaml_codec

TOO_LONG = "^yaml: the tag directives take more than 4096 bytes$"


def directives(count: int, line_break: str = "\n") -> str:
    return "".join(f"%TAG !{number}! tag:example.com,2000:{line_break}" for number in range(count)) + "---\n"


def test_a_few_directives_are_read() -> None:
    assert yaml_codec.decode(f"{directives(50)}a: !1!b c\n".encode()).value == {"a": "c"}


@pytest.mark.parametrize("line_break", ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_many_directives_are_refused(line_break: str, encoding: str) -> None:
    with pytest.raises(DecodeError, match=TOO_LONG):
        yaml_codec.decode(directives(2000, line_break).encode(encoding))


def test_a_long_prefix_is_refused() -> None:
    with pytest.raises(DecodeError, match=TOO_LONG):
        yaml_codec.decode(b"%TAG !a! tag:" + b"x" * 5000 + b"\n---\n- !a!b c\n")


def test_directives_behind_a_comment_count() -> None:
    with pytest.raises(DecodeError, match=TOO_LONG):
        yaml_codec.decode(f"# ---\n{directives(2000)}".encode())


def test_texts_with_percent_signs_are_no_directives() -> None:
    text = "100 %TAG " * 1000
    assert yaml_codec.decode(f"a: '{text}'".encode()).value == {"a": text}
