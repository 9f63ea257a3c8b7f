"""Integers as in Go: parsed from text as by strconv, and converted from whole floats."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.meta.field_errors import quoted

_SIGNED = range(-(2**63), 2**63)
_UNSIGNED = range(2**64)
_MOST_DIGITS = 20  # more are beyond 64 bits; a long text is not converted at all

_SAFE = range(-(2**53) + 1, 2**53)
"""Floats beyond these are not exact integers: not a JSON integer for kube-apiserver."""


def whole(value: Any) -> Any:
    """The integer for a float such as 1.0, as Go writes it; any other value unchanged."""
    return int(value) if type(value) is float and value.is_integer() and int(value) in _SAFE else value


def parse_int(text: str) -> int:
    """A signed 64-bit number. Raises ValueError."""
    return _parse(text, "ParseInt", _SIGNED, digits=text[1:] if text[:1] in {"+", "-"} else text)


def parse_uint(text: str) -> int:
    """An unsigned 64-bit number. Raises ValueError."""
    return _parse(text, "ParseUint", _UNSIGNED, digits=text)


def _parse(text: str, function: str, allowed: range, *, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"strconv.{function}: parsing {quoted(text)}: invalid syntax")
    if len(digits.lstrip("0")) > _MOST_DIGITS or int(text) not in allowed:
        raise ValueError(f"strconv.{function}: parsing {quoted(text)}: value out of range")
    return int(text)
