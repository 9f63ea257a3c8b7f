"""Documents that are only many values."""

from __future__ import annotations

import time

import pytest

from clusterregistry.apimachinery.codecs import DecodeError, json_codec, protobuf_codec, yaml_codec
from clusterregistry.apimachinery.codecs.decoded import MAX_VALUES
from tests.apimachinery.codecs.memory import little_memory
from tools.hostile_cases import message, review_in_protobuf

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
