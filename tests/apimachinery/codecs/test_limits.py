"""Limits of decoding: a small body must not cost much time or memory."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from clusterregistry.apimachinery.codecs import (
    MAX_STRICT_ERRORS,
    Decoded,
    DecodeError,
    json_codec,
    protobuf_codec,
    yaml_codec,
)
from clusterregistry.apimachinery.codecs.decoded import MAX_SHOWN, MAX_VALUES
from tests.apimachinery.codecs.memory import little_memory
from tools.hostile_cases import message, review_in_protobuf

# Number of values

TOO_MANY = "the document has more than 200000 values"


def test_json_of_too_many_values_is_refused() -> None:
    for body in (b"[" + b"1," * MAX_VALUES + b"1]", b"[" + b"{}," * (MAX_VALUES // 2) + b"{}]"):
        with pytest.raises(DecodeError, match=TOO_MANY):
            json_codec.decode(body)


def test_yaml_of_too_many_values_is_refused() -> None:
    with pytest.raises(DecodeError, match=TOO_MANY):
        yaml_codec.decode(b"- 1\n" * (2 * MAX_VALUES + 1))


def test_as_many_as_allowed_are_read() -> None:
    assert len(json_codec.decode(b"[" + b"1," * (MAX_VALUES - 2) + b"1]").value) == MAX_VALUES - 1


def test_what_is_within_a_text_is_no_value() -> None:
    text = r"a,[{\",\\" * MAX_VALUES
    assert json_codec.decode(b'["' + text.encode() + b'"]').value == ['a,[{",\\' * MAX_VALUES]


def test_a_text_without_an_end_is_read_once() -> None:
    """Each quote in it is escaped, but looks like the beginning of a text to those who begin there."""
    body = b"[" + b"," * (MAX_VALUES + 1) + b'"' + rb"\"" * 50_000
    begun = time.thread_time()
    assert json_codec.count_values(body, most=MAX_VALUES) == MAX_VALUES + 2
    assert time.thread_time() - begun < 1


METADATA, SPEC, OWNERS, MANAGED_FIELDS = 1, 2, 13, 17


def requirements(count: int) -> bytes:
    return review_in_protobuf(message(SPEC, message(1, message(9, message(2, b"") * count))))


def metadata(content: bytes) -> bytes:
    return review_in_protobuf(message(METADATA, content))


def field_set(document: bytes) -> bytes:
    return message(MANAGED_FIELDS, message(7, message(1, document)))


@pytest.mark.parametrize(
    "body",
    [
        requirements(1_400_000),
        metadata(message(OWNERS, b"") * 1_000_000),
        metadata(field_set(b"[" + b"[]," * 90_000 + b"[]]") * 3),
        review_in_protobuf(message(SPEC, b"") * 1_000_000),
    ],
    ids=["lists", "metadata", "documents within", "one field again and again"],
)
def test_protobuf_of_too_many_values_is_refused_before_it_is_parsed(body: bytes) -> None:
    with little_memory(), pytest.raises(DecodeError, match=TOO_MANY):
        protobuf_codec.decode(body)


def test_as_many_as_allowed_are_read_from_protobuf() -> None:
    count = MAX_VALUES // 2 - 10
    spec = protobuf_codec.decode(requirements(count)).value["spec"]
    assert len(spec["resourceAttributes"]["labelSelector"]["requirements"]) == count


def test_a_large_protobuf_of_few_values_is_read() -> None:
    text = b"[{,:" * 200_000
    assert protobuf_codec.decode(metadata(message(1, text))).value["metadata"]["name"] == text.decode()


@pytest.mark.parametrize("end", [b"\x12", b"\x12\xff", b"\x12\x05a", b"\x17", b"\xff" * 11])
def test_large_protobuf_that_is_cut_off_is_malformed(end: bytes) -> None:
    body = review_in_protobuf(message(METADATA, message(1, b"a" * 500_000)) + end)
    with pytest.raises(DecodeError, match="malformed or cut off"):
        protobuf_codec.decode(body)


# Duplicate keys

LONG = 1_000_000


def repeated(count: int, *, below: bytes = b"k") -> bytes:
    pairs = b",".join(b'"a%d":1,"a%d":2' % (number, number) for number in range(count))
    return b'{"%b":{%b}}' % (below, pairs)


def test_of_repeated_keys_in_json_the_first_hundred_are_named() -> None:
    found = json_codec.decode(repeated(500))
    assert found.duplicates == [f"k.a{number}" for number in range(MAX_STRICT_ERRORS)]
    assert found.value == {"k": {f"a{number}": 2 for number in range(500)}}


def test_keys_repeated_below_a_long_key_take_little_memory() -> None:
    body = repeated(500, below=b"k" * LONG)
    with little_memory():
        found = json_codec.decode(body)
    assert found.duplicates == ["k" * MAX_SHOWN + "..."]
    assert len(found.strict_errors[0]) < 2 * MAX_SHOWN


def test_a_key_repeated_many_times_is_named_once() -> None:
    body = b'{"a":{' + b",".join([b'"b":1'] * 1000) + b"}}"
    assert json_codec.decode(body).duplicates == ["a.b"]


def test_a_long_key_above_many_others_that_differ_costs_nothing() -> None:
    pairs = b",".join(b'"a%d":1' % number for number in range(50_000))
    body = b'{"x":1,"x":1,"%b":{%b}}' % (b"k" * LONG, pairs)
    with little_memory():
        assert json_codec.decode(body).duplicates == ["x"]


def test_of_repeated_keys_in_yaml_the_first_hundred_are_named() -> None:
    body = b"".join(b"a%d: 1\na%d: 2\n" % (number, number) for number in range(500))
    warnings = yaml_codec.decode(body).warnings
    assert len(warnings) == MAX_STRICT_ERRORS
    assert warnings[-1] == 'line 200: key "a99" already set in map'


def test_a_long_key_that_is_repeated_in_yaml_is_cut() -> None:
    body = b"".join(b"? %b\n: %d\n" % (b"k" * 20_000, number) for number in range(50))
    with little_memory():
        found = yaml_codec.decode(body)
    assert found.value == {"k" * 20_000: 49}
    assert max(map(len, found.warnings)) < 2 * MAX_SHOWN


@pytest.mark.parametrize("decode", [json_codec.decode, yaml_codec.decode], ids=["JSON", "YAML"])
def test_repeated_keys_are_not_looked_for_unless_strict(decode: Callable[..., Decoded]) -> None:
    found = decode(b'{"a":1,"a":2}', strict=False)
    assert (found.value, found.duplicates, found.strict_errors) == ({"a": 2}, [], [])


def test_escapes_beside_a_lone_surrogate_take_little_memory() -> None:
    body = b'["' + b"\\n" * 1_000_000 + b'\\ud800"]'
    with little_memory():
        found = json_codec.decode(body)
    assert found.value == ["\n" * 1_000_000 + "\N{REPLACEMENT CHARACTER}"]


def test_many_texts_take_little_memory_to_count() -> None:
    body = b'["",' + b'",",' * 150_000 + b'""]'
    with little_memory(1_000_000):
        assert json_codec.count_values(body, most=200_000) == 150_002


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (rb'["\\ud800\udc00"]', "\\ud800\N{REPLACEMENT CHARACTER}"),
        (rb'["\\\ud800"]', "\\\N{REPLACEMENT CHARACTER}"),
        (rb'["\ud83d\ude00\udc00"]', "\N{GRINNING FACE}\N{REPLACEMENT CHARACTER}"),
        (rb'["\ud800\ud83d\ude00"]', "\N{REPLACEMENT CHARACTER}\N{GRINNING FACE}"),
    ],
)
def test_backslashes_decide_what_is_a_surrogate(body: bytes, value: str) -> None:
    assert json_codec.decode(body).value == [value]


# Aliases of YAML

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


# Tag directives of YAML: libyaml compares each with all, and expands each use

TOO_LONG = "^yaml: the tag directives take more than 4096 bytes$"


def directives(count: int, line_break: str = "\n") -> str:
    return "".join(f"%TAG !{number}! tag:example.com,2000:{line_break}" for number in range(count)) + "---\n"


def test_a_few_directives_are_read() -> None:
    assert yaml_codec.decode(f"{directives(50)}a: !1!b c\n".encode()).value == {"a": "c"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_many_directives_are_refused(encoding: str) -> None:
    for line_break in ("\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"):
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
