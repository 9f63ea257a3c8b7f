"""The elements of a path to a field, as they stand in ``fieldsV1``.

``f:NAME`` is a field of a struct or a key of a map, ``k:{...}`` the item of a list that has these keys,
``v:VALUE`` the item of a set, ``i:N`` an item by its index.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.codecs import json_codec
from clusterregistry.apimachinery.codecs.decoded import too_deep
from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apimachinery.meta.integers import whole

FIELD = "f:"
KEY = "k:"
VALUE = "v:"
INDEX = "i:"

_KINDS = (FIELD, KEY, VALUE, INDEX)
_INTEGER = re.compile("[+-]?[0-9]{1,18}", re.ASCII)


class MalformedElementError(ValueError):
    """What should be an element of a path is none."""


def of_key(keys: dict[str, Any]) -> str:
    """The element of a list's item that has these values for the list's keys."""
    return KEY + _json(keys)


def of_value(value: Any) -> str:
    """The element of a set's item."""
    return VALUE + _json(value)


def _json(value: Any) -> str:
    """Equal elements must be equal texts: whole numbers are integers."""
    if type(value) is dict:
        value = {name: whole(each) for name, each in value.items()}
    return json_codec.encode_as_go(whole(value)).decode()


@bounded_cache(4096)
def canonical(element: str) -> str | None:
    """The element as we write it; None for one of a kind that nobody knows yet. Raises MalformedElementError."""
    kind, content = element[:2], element[2:]
    if len(kind) < len(FIELD) or kind[1] != ":":
        raise MalformedElementError(f"no element of a path: {element}")
    if kind not in _KINDS:
        return None
    if kind == FIELD:
        return element
    if kind == INDEX:
        return INDEX + str(_index(content))
    value = _loaded(content)
    if kind == KEY and not isinstance(value, dict):
        raise MalformedElementError(f"keys of a list's item must be a map: {element}")
    return kind + _json(value)


def _index(content: str) -> int:
    if not _INTEGER.fullmatch(content):
        raise MalformedElementError(f"no index: {content}")
    return int(content)


def _loaded(content: str) -> Any:
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise MalformedElementError(f"no JSON: {content}") from None
    if too_deep(value):
        raise MalformedElementError(f"nested too deeply: {content}")
    return value


def shown(element: str) -> str:
    """For people: ``.name``, ``[type="OK"]``, ``[="value"]``, ``[0]``."""
    kind, content = element[:2], element[2:]
    if kind == FIELD:
        return f".{content}"
    if kind == INDEX:
        return f"[{content}]"
    value = orjson.loads(content)
    if kind == VALUE:
        return f"[={_shown_value(value)}]"
    return "[" + ",".join(f"{name}={_shown_value(each)}" for name, each in sorted(value.items())) + "]"


def _shown_value(value: Any) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + ",".join(map(_shown_value, value)) + "]"
    if isinstance(value, dict):
        return "".join(f"{name}={_shown_value(each)}" for name, each in sorted(value.items()))
    return _json(value)


def position(element: str) -> tuple[int, Any]:
    """By which elements are sorted: fields first, then keys, values and indices."""
    kind, content = element[:2], element[2:]
    if kind == FIELD:
        return 0, content
    if kind == INDEX:
        return 3, int(content)
    value = orjson.loads(content)
    if kind == VALUE:
        return 2, _rank(value)
    return 1, [(name, _rank(each)) for name, each in sorted(value.items())]


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers before texts before the rest."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0, value
    return (1, value) if isinstance(value, str) else (2, _json(value))
