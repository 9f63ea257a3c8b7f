"""JSON types and values in the words of Go."""

from __future__ import annotations

import json
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


def go_text(value: Any) -> str:
    """As Go's ``%v`` shows it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{go_text(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(go_text, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)
