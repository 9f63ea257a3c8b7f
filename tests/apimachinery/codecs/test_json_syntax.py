r"""Malformed JSON is named in the words of Go's encoding/json. The messages were printed by Go 1.26."""

import time

import pytest

from clusterregistry.apimachinery.codecs.json_syntax import syntax_error

IN_HEXADECIMAL = r"in \u hexadecimal character escape"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"nope", "invalid character 'o' in literal null (expecting 'u')"),
        (b"nulL", "invalid character 'L' in literal null (expecting 'l')"),
        (b"nul", "invalid character ' ' in literal null (expecting 'l')"),
        (b'{"a":trUe}', "invalid character 'U' in literal true (expecting 'u')"),
        (b"[falsy]", "invalid character 'y' in literal false (expecting 'e')"),
        (b"nullx", "invalid character 'x' after top-level value"),
        (b"True", "invalid character 'T' looking for beginning of value"),
        (b"-", "invalid character ' ' in numeric literal"),
        (b"[-x]", "invalid character 'x' in numeric literal"),
        (b"1.", "invalid character ' ' after decimal point in numeric literal"),
        (b"[1.x]", "invalid character 'x' after decimal point in numeric literal"),
        (b"[1.5.1]", "invalid character '.' after array element"),
        (b"[1e]", "invalid character ']' in exponent of numeric literal"),
        (b"[1.5E+]", "invalid character ']' in exponent of numeric literal"),
        (b"[1e5e1]", "invalid character 'e' after array element"),
        (b'{"a":01}', "invalid character '1' after object key:value pair"),
        (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        (b"[[1] 2]", "invalid character '2' after array element"),
        (b'{"a":[1,2,]}', "invalid character ']' looking for beginning of value"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a":1,"b":{"c":2 ]}', "invalid character ']' after object key:value pair"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\', "invalid character ' ' in string escape code"),
        (b'"\\u12g4"', f"invalid character 'g' {IN_HEXADECIMAL}"),
        (b'"\\u12', f"invalid character ' ' {IN_HEXADECIMAL}"),
        (b'"\\\\\\q"', "invalid character 'q' in string escape code"),
        (b'["\\\\\\"", x]', "invalid character 'x' looking for beginning of value"),
        (b'"a\x00"', r"invalid character '\x00' in string literal"),
        (b'"a\x0b"', r"invalid character '\v' in string literal"),
        (b"\x7f", r"invalid character '\x7f' looking for beginning of value"),
        (b"\x80", r"invalid character '\u0080' looking for beginning of value"),
        (b"\xff", "invalid character 'ÿ' looking for beginning of value"),
        (b"\\", r"invalid character '\\' looking for beginning of value"),
        (b'{"a', "unexpected end of JSON input"),
        (b'{"a":1,', "unexpected end of JSON input"),
        (b"[1", "unexpected end of JSON input"),
        (b"[" * 201, "exceeded max depth"),
    ],
)
def test_the_first_wrong_byte_is_named(body: bytes, message: str) -> None:
    assert syntax_error(body) == message


@pytest.mark.parametrize(
    "body", [b"null", b" [ ] ", b'{"a":{},"b":[{"c":[-0.5e-7,true]}],"d":"\\u00e9\\\\\\"\xff"}', b"1e400", b"9" * 5000]
)
def test_a_document_without_a_wrong_byte_has_no_error(body: bytes) -> None:
    assert syntax_error(body) is None


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"0," * 199_000 + b"]",
        b"[" + b"[]," * 99_000 + b"]",
        b"[" + b'{"a":[0]},' * 66_000 + b"]",
        b'["' + rb"\\" * 1_500_000 + b"\x00",
        b'["' + rb"\n" * 1_500_000 + b"\x00",
        b"[" + b"1" * 3_000_000 + b"x]",
        b" " * 3_000_000,
    ],
)
def test_the_largest_bodies_take_little_time(body: bytes) -> None:
    begun = time.process_time()
    assert syntax_error(body)
    assert time.process_time() - begun < 2  # 0.3 s at most, on an idle machine
