"""Keys that stand twice: the first of them are told, at a cost that does not depend on how long they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusterregistry.apimachinery.codecs import MAX_STRICT_ERRORS, Decoded, json_codec, yaml_codec
from clusterregistry.apimachinery.codecs.decoded import MAX_SHOWN
from tests.apimachinery.codecs.memory import little_memory

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
