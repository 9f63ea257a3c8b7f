"""The names of JSON types in the messages of Go's decoder."""

from __future__ import annotations

from typing import Any

_NAMES = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


class ShapeError(ValueError):
    """A value has a wrong type. The message is the end of that of the 400, in the words of Go's decoder."""


def json_type(value: Any) -> str:
    """``string``, ``number``, ...: defined for every JSON value."""
    return _NAMES[type(value)]
