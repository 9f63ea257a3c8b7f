"""Aliases stand for bytes: a little YAML must not become more than a client may send."""

from __future__ import annotations

import pytest

from clusterregistry.apimachinery.codecs import DecodeError, yaml_codec
from tests.apimachinery.codecs.memory import little_memory

EXCESSIVE = "^yaml: document contains excessive aliasing$"
LIMIT = 3 * 1024 * 1024


def aliases(count: int, *, size: int) -> bytes:
    return b"a: &k %b\n" % (b"x" * size) + b"".join(b"k%d: *k\n" % number for number in range(count))


def test_aliases_of_a_long_text_are_refused_above_the_limit_of_a_body() -> None:
    body = aliases(1000, size=100_000)
    with little_memory(), pytest.raises(DecodeError, match=EXCESSIVE):
        yaml_codec.decode(body)


def test_aliases_up_to_the_limit_are_read() -> None:
    assert len(yaml_codec.decode(aliases(3, size=LIMIT // 3)).value) == 4
    with pytest.raises(DecodeError, match=EXCESSIVE):
        yaml_codec.decode(aliases(4, size=LIMIT // 3))


def test_an_alias_as_a_key_counts_too() -> None:
    body = b"a: &k %b\nb:\n" % (b"x" * 100_000) + b"  ? *k\n  : 1\n" * 2000
    with little_memory(), pytest.raises(DecodeError, match=EXCESSIVE):
        yaml_codec.decode(body)


@pytest.mark.parametrize("anchored", [b"[%b]", b"{x: %b}", b"{? %b : x}"], ids=["list", "value", "key"])
def test_texts_within_lists_and_maps_count(anchored: bytes) -> None:
    body = b"a: &k " + anchored % (b"x" * 100_000) + b"\n" + b"".join(b"k%d: *k\n" % n for n in range(40))
    with pytest.raises(DecodeError, match=EXCESSIVE):
        yaml_codec.decode(body)


def test_aliases_of_aliases_count_what_they_stand_for() -> None:
    body = b"a: &a %b\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: [*c,*c,*c,*c]\n" % (b"x" * 50_000)
    with pytest.raises(DecodeError, match=EXCESSIVE):
        yaml_codec.decode(body)


def test_bytes_count_not_characters() -> None:
    text = "ü".encode() * 100_000
    with pytest.raises(DecodeError, match=EXCESSIVE):
        yaml_codec.decode(b"a: &k %b\n" % text + b"".join(b"k%d: *k\n" % n for n in range(16)))
