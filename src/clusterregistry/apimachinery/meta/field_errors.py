"""Validation errors that say which field is wrong, worded as Kubernetes words them.

Validation collects these in a list and never stops at the first; ``errors.invalid`` turns the list
into one 422 answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
TYPE_INVALID = "FieldValueTypeInvalid"
DUPLICATE = "FieldValueDuplicate"
NOT_SUPPORTED = "FieldValueNotSupported"
FORBIDDEN = "FieldValueForbidden"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"

ENOUGH = 1000
"""Wrong fields after which validation of lists and maps stops: no response reports as many."""

_LONGEST_VALUE = 1024
"""Characters of a value in a message: each is reported twice, and there can be hundreds."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field: ``field`` is its path, ``reason`` a Kubernetes cause type."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    def cause(self) -> dict[str, str]:
        """The entry of ``details.causes`` in a Status."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quoted(text: str) -> str:
    """Text in quotes as Go's ``%q`` writes it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escaped(each) for each in text) + '"'


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:  # noqa: PLR2004 - ASCII
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"  # noqa: PLR2004 - beyond the basic plane


def shown(value: Any) -> str:
    """A value as Kubernetes shows it in a message: strings quoted, numbers bare, the rest as JSON.

    A long value is cut.
    """
    if isinstance(value, str):
        return quoted(value) if len(value) <= _LONGEST_VALUE else f"{quoted(value[:_LONGEST_VALUE])}..."
    try:
        text = orjson.dumps(value, default=str).decode("utf-8", "replace")
    except TypeError:  # numbers beyond 64 bits, lone surrogates: a message must never fail for its value
        text = json.dumps(value, separators=(",", ":"), default=str)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, REQUIRED, _with_detail("Required value", detail))


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, INVALID, _with_detail(f"Invalid value: {shown(value)}", detail))


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, TYPE_INVALID, _with_detail(f"Invalid value: {shown(value)}", detail))


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, DUPLICATE, f"Duplicate value: {shown(value)}")


def not_supported(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    listed = ", ".join(shown(item) for item in supported)
    return FieldError(field, NOT_SUPPORTED, f"Unsupported value: {shown(value)}: supported values: {listed}")


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(field, FORBIDDEN, _with_detail("Forbidden", detail))


def too_long(field: str, limit: int) -> FieldError:
    return FieldError(field, TOO_LONG, f"Too long: may not be more than {limit} bytes")


def too_many(field: str, number: int, limit: int) -> FieldError:
    return FieldError(field, TOO_MANY, f"Too many: {number}: must have at most {limit} items")


def aggregate(errors: Iterable[FieldError]) -> str:
    """All messages in one text: a single one bare, several in brackets, equal ones once."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text
