"""What JSON values are called in the messages of Go's decoder."""

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
    """A value whose shape is wrong. ``str()`` of it is the end of the 400's message, in the words of Go's decoder."""


def json_type(value: Any) -> str:
    """``string``, ``number``, ...: never fails for what JSON can hold."""
    return _NAMES[type(value)]
