"""Documents that are only many values."""

from __future__ import annotations

import pytest

from clusterregistry.codecs import DecodeError, json_codec, yaml_codec
from clusterregistry.codecs.decoding import MAX_VALUES

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
