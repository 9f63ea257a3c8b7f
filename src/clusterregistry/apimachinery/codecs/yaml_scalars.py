"""What an unquoted YAML scalar means: the rules of go-yaml v2, which kube-apiserver reads YAML with.

They are YAML 1.1 with exceptions: no sexagesimal numbers, octal as in Go, timestamps stay strings.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from bisect import bisect_left
from typing import Any

from clusterregistry.apimachinery.codecs.decoded import DecodeError

Scalar = str | int | float | bool | None

_TAG_PREFIX = "tag:yaml.org,2002:"
MERGE_TAG = _TAG_PREFIX + "merge"
_BINARY_TAG = _TAG_PREFIX + "binary"
_FLOAT_TAG = _TAG_PREFIX + "float"

_MIN_INT64, _MAX_INT64, _MAX_UINT64 = -(2**63), 2**63 - 1, 2**64 - 1


def _spellings(*words: str) -> list[str]:
    return [spelling for word in words for spelling in (word, word.capitalize(), word.upper())]


_NAMED: dict[str, Scalar] = {
    **dict.fromkeys(_spellings("y", "yes", "true", "on"), True),
    **dict.fromkeys(_spellings("n", "no", "false", "off"), False),
    **dict.fromkeys(["", "~", *_spellings("null")]),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
}

_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)|(?P<decimal>0|[1-9][0-9]*))"
)
_BASES = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LONGEST_INTEGER = 70
"""Characters, sign and prefix included: more than 64 binary digits are no integer, whatever the base."""

_POSITIONAL_EXPONENTS = range(-4, 6)
"""Outside of these Go writes a float with an exponent, whatever the number of its digits."""

_DIGITS = range(9)
"""Behind the first one; nine in all are enough for any float of 32 bits."""

_TYPE_TAGS = {str: "str", bool: "bool", int: "int", float: "float", type(None): "null"}


def resolve(text: str) -> Scalar:
    """The value of a plain scalar without a tag."""
    if text and text[0] in "+-.0123456789":
        return _NAMED[text] if text in _NAMED else _number(text)
    return _NAMED.get(text, text)


def resolve_tagged(text: str, tag: str) -> Scalar:
    """The value of a scalar with an explicit tag. Raises DecodeError when the text is none of that type."""
    kind = tag.removeprefix(_TAG_PREFIX)
    if tag == _BINARY_TAG:
        return _binary(text)
    if kind not in ("bool", "int", "float", "null"):
        return text
    value = resolve(text)
    if tag == _FLOAT_TAG and type(value) is int:
        return float(value)
    found = _TYPE_TAGS[type(value)]
    if found != kind:
        raise DecodeError(f"yaml: cannot decode !!{found} `{text}` as a !!{kind}")
    return value


def as_json(value: Any) -> Any:
    """A value as it is after the way through JSON: whole floats are integers, NaN is an error."""
    if isinstance(value, (str, bool)):  # by far the most frequent
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise DecodeError(f"json: unsupported value: {_go_float_name(value)}")
        return int(value) if value.is_integer() and abs(value) <= _MAX_INT64 else value
    if isinstance(value, int) and value > _MAX_INT64:
        return float(value)
    return value


def as_key(value: Any) -> str:
    """A map's key as the string that JSON needs. Raises DecodeError for what cannot be one."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value <= _MAX_INT64:
        return str(value)
    if isinstance(value, float):
        return _float_key(value)
    kind = "%!s(<nil>)" if value is None else "uint64"
    raise DecodeError(f"unsupported map key of type: {kind}")


def _number(text: str) -> Scalar:
    plain = text if text[0] == "." else text.replace("_", "")
    match = _INTEGER.fullmatch(plain) if len(plain) <= _LONGEST_INTEGER else None
    if match and match.lastgroup:
        value = int(match["sign"] + match[match.lastgroup], _BASES[match.lastgroup])
        if _MIN_INT64 <= value <= (_MAX_INT64 if match["sign"] else _MAX_UINT64):
            return value
    if _FLOAT.fullmatch(plain):
        # Beyond the largest float Go's parser reports an error, and the text stays a string.
        return text if math.isinf(float(plain)) else float(plain)
    return text


def _binary(text: str) -> str:
    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        raise DecodeError("yaml: !!binary value contains invalid base64 data") from None
    return data.decode(errors="replace")


def _go_float_name(value: float) -> str:
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _float_key(value: float) -> str:
    """A float as sigs.k8s.io/yaml writes it into a key: the shortest text of its 32 bits."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    try:
        narrow = struct.pack("f", value)
    except OverflowError:
        return ".inf" if value > 0 else "-.inf"
    [value] = struct.unpack("f", narrow)
    # More digits are never less exact, so that few numbers of digits have to be tried.
    digits = bisect_left(_DIGITS, True, key=lambda digits: struct.pack("f", float(f"{value:.{digits}e}")) == narrow)
    text = f"{value:.{digits}e}"
    mantissa, _, exponent = text.partition("e")
    if int(exponent) in _POSITIONAL_EXPONENTS:
        places = max(len(mantissa.lstrip("-").replace(".", "")) - 1 - int(exponent), 0)
        return f"{float(text):.{places}f}"
    return text
