import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apimachinery.codecs import MAX_DEPTH, DecodeError, json_codec
from tests.apimachinery.codecs.wire_values import VALUES


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@given(VALUES)
def test_what_is_encoded_decodes_to_the_same_value(value: Any) -> None:
    decoded = json_codec.decode(json_codec.encode(value))
    assert json_codec.encode(decoded.value) == json_codec.encode(value)
    assert decoded.strict_errors == []


@given(VALUES)
def test_what_is_encoded_for_people_decodes_to_the_same_value(value: Any) -> None:
    assert json_codec.decode(json_codec.encode_pretty(value)).value == value


@given(VALUES, st.sampled_from([{"indent": 1}, {"ensure_ascii": False}, {"separators": (" , ", " : ")}]))
def test_other_encoders_are_read_alike_and_have_no_duplicates(value: Any, options: dict[str, Any]) -> None:
    decoded = json_codec.decode(json.dumps(value, **options).encode())
    assert decoded.value == value
    assert decoded.duplicates == []


@given(st.binary(max_size=40) | st.text('{}[]":,\\ud8tnfe0123.-', max_size=40).map(str.encode))
def test_no_bytes_raise_anything_but_a_decode_error(body: bytes) -> None:
    with contextlib.suppress(DecodeError):
        json_codec.decode(body)


def test_keys_are_sorted_and_the_text_compact() -> None:
    assert json_codec.encode({"b": [1, 2], "a": {"d": None, "c": "é"}}) == '{"a":{"c":"é","d":null},"b":[1,2]}'.encode()


def test_pretty_text_is_indented_by_two() -> None:
    assert json_codec.encode_pretty({"b": 1, "a": [1]}) == b'{\n  "a": [\n    1\n  ],\n  "b": 1\n}'


@pytest.mark.parametrize(
    ("body", "duplicates", "value"),
    [
        (b'{"a":1,"a":2}', ["a"], {"a": 2}),
        (b'{"a":1,"a":1}', ["a"], {"a": 1}),
        (b'{"a":1,"a":2,"a":3}', ["a"], {"a": 3}),
        (b'{ "spec" : {"clusterID":"x", "clusterID":"y"} }', ["spec.clusterID"], {"spec": {"clusterID": "y"}}),
        (b'{"spec":{"list":[{"name":1,"name":2}]}}', ["spec.list[0].name"], {"spec": {"list": [{"name": 2}]}}),
        (b'[[{"a":1,"a":2}]]', ["[0][0].a"], [[{"a": 2}]]),
        (b'{"a":{"b":1,"b":2},"a":{"c":1,"c":1}}', ["a.b", "a", "a.c"], {"a": {"c": 1}}),
        (b'{"\\u0061":1,"a":2}', ["a"], {"a": 2}),
        (b'{"a":1,"a":"\\u0022\\u0022"}', ["a"], {"a": '""'}),
        (b'{"a\\"b":1, "a\\"b":2}', ['a"b'], {'a"b': 2}),
    ],
)
def test_duplicates_are_named_in_document_order_and_the_last_wins(
    body: bytes, duplicates: list[str], value: Any
) -> None:
    decoded = json_codec.decode(body)
    assert decoded.value == value
    assert decoded.duplicates == duplicates
    assert decoded.strict_errors == [f'duplicate field "{path}"' for path in duplicates]
    assert decoded.warnings == decoded.strict_errors


@pytest.mark.parametrize("body", [b'{"a":{"x":1},"b":{"x":1}}', b'{"a": {"x":1}, "b": [{"x":1},{"x":1}]}'])
def test_equal_maps_are_no_duplicates(body: bytes) -> None:
    assert json_codec.decode(body).duplicates == []


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'\r\n {"a" :\t1}\r\n\r\n', {"a": 1}),
        (b'"a\xffb"', "a\ufffdb"),
        (b'"\xe2\x82"', "\ufffd\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        (rb'"\ud800"', "\ufffd"),
        (rb'"\udc00\ud83dA"', "\ufffd\ufffdA"),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (rb'{"\\ud800":"\ud800"}', {"\\ud800": "\ufffd"}),
        (b"99999999999999999999", 1e20),
        (b"-9223372036854775808", -(2**63)),
        (b"null", None),
    ],
)
def test_what_kube_apiserver_tolerates_is_read(body: bytes, value: Any) -> None:
    assert json_codec.decode(body).value == value


def test_integers_beyond_64_bits_are_floats() -> None:
    assert isinstance(json_codec.decode(b"99999999999999999999").value, float)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "unexpected end of JSON input"),
        (b" \n", "unexpected end of JSON input"),
        (b'{"a":', "unexpected end of JSON input"),
        (b'{"', "unexpected end of JSON input"),
        (b"hello", "invalid character 'h' looking for beginning of value"),
        (b"{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        (b"{}}", "invalid character '}' after top-level value"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b'"a\tb"', "invalid character '\\t' in string literal"),
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
        (b"NaN", "invalid character 'N' looking for beginning of value"),
        (b"[-Infinity]", "invalid character 'I' in numeric literal"),
        (b"1e400", "json: cannot unmarshal number into Go value of type float64"),
        (b"1" * 5000, "json: cannot unmarshal number into Go value of type float64"),
        (nested(MAX_DEPTH + 1), "exceeded max depth"),
        (b"[" * 20_000, "exceeded max depth"),
        (b'{"a":' * 5000 + b"1", "exceeded max depth"),
    ],
)
def test_errors_read_as_gos_do(body: bytes, message: str) -> None:
    with pytest.raises(DecodeError) as raised:
        json_codec.decode(body)
    assert str(raised.value) == message


LISTS, MAPS = ("[", "]"), ('{"a":', "}")
LONG = " " * 3000


def at_depth(depth: int, *levels: tuple[str, str], innermost: str, margin: str) -> bytes:
    """A document of so many levels, of these kinds in turn; the innermost value is none of them."""
    used = [levels[number % len(levels)] for number in range(depth)]
    opened, closed = "".join(opening for opening, _ in used), "".join(end for _, end in reversed(used))
    return f"{margin}{opened}{innermost}{closed}".encode()


@pytest.mark.parametrize("innermost", ["1", '"[{"', '"' + "[{" * MAX_DEPTH + '"'])
@pytest.mark.parametrize("levels", [(LISTS,), (MAPS,), (LISTS, MAPS), (MAPS, MAPS, LISTS)])
def test_as_many_levels_as_allowed_are_read_and_no_more(levels: tuple[tuple[str, str], ...], innermost: str) -> None:
    for margin in ("", LONG):
        deepest = at_depth(MAX_DEPTH, *levels, innermost=innermost, margin=margin)
        assert json_codec.decode(deepest).value == json.loads(deepest)
        with pytest.raises(DecodeError, match="exceeded max depth"):
            json_codec.decode(at_depth(MAX_DEPTH + 1, *levels, innermost=innermost, margin=margin))


@pytest.mark.parametrize(("empty", "levels"), [("[]", LISTS), ("{}", MAPS)])
def test_what_is_empty_is_a_level_too(empty: str, levels: tuple[str, str]) -> None:
    deepest = at_depth(MAX_DEPTH - 1, levels, innermost=empty, margin="")
    assert json_codec.decode(deepest).value == json.loads(deepest)
    with pytest.raises(DecodeError, match="exceeded max depth"):
        json_codec.decode(at_depth(MAX_DEPTH, levels, innermost=empty, margin=""))


def test_the_deepest_value_that_decodes_can_be_encoded() -> None:
    assert json_codec.encode(json_codec.decode(nested(MAX_DEPTH)).value) == nested(MAX_DEPTH)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert len(json_codec.decode(b"[" + b",".join([b"{}"] * 500) + b"]").value) == 500


def test_a_deep_value_that_a_duplicate_replaces_does_no_harm() -> None:
    with contextlib.suppress(DecodeError):
        assert json_codec.decode(b'{"a":' + nested(1000) + b',"a":1}').value == {"a": 1}
