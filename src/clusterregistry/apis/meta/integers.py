"""Decimal numbers in text, read and refused as Go's strconv does: kube-apiserver shows its clients these errors."""

from __future__ import annotations

from clusterregistry.apis.meta.field_errors import quoted

_SIGNED = range(-(2**63), 2**63)
_UNSIGNED = range(2**64)
_MOST_DIGITS = 20  # more are beyond 64 bits; a long text is not converted at all


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
