"""The elements of a path to a field, as they stand in ``fieldsV1``.

``f:NAME`` is a field of a struct or a key of a map, ``k:{...}`` the item of a list that has these keys,
``v:VALUE`` the item of a set, ``i:N`` an item by its index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Any

import orjson

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.codecs import json_codec
from clusterregistry.apimachinery.codecs.decoded import too_deep
from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apimachinery.meta.integers import whole
from clusterregistry.apimachinery.schema.schemas import Array, Object, String

FIELD = "f:"
KEY = "k:"
VALUE = "v:"
INDEX = "i:"

_KINDS = (FIELD, KEY, VALUE, INDEX)
_CACHED = 4096
_LONGEST_CACHED = 128
_STRINGS = frozenset((str,))
_INTEGER = re.compile("[+-]?[0-9]{1,18}", re.ASCII)


class MalformedElementError(ValueError):
    """A text is not a path element."""


def of_key(keys: dict[str, Any]) -> str:
    """The element of a list's item that has these values for the list's keys."""
    return KEY + _json(keys)


def of_value(value: Any) -> str:
    """The element of a set's item."""
    return VALUE + _json(value)


def _json(value: Any) -> str:
    """Go's JSON with integers for whole numbers, so that equal elements are equal texts."""
    if type(value) is dict:
        value = {name: whole(each) for name, each in value.items()}
    return json_codec.encode_as_go(whole(value)).decode()


@bounded_cache(4096)
def canonical(element: str) -> str | None:
    """The element in its canonical form; None for an unknown kind. Raises MalformedElementError."""
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
    """The element as messages show it: ``.name``, ``[type="OK"]``, ``[="value"]``, ``[0]``."""
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
    """The sort key of an element: fields first, then keys, values and indices."""
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


# Items of lists


class NoIdentityError(ValueError):
    """A list item lacks the keys that identify it. The message is kube-apiserver's."""


def element_of(schema: Array, item: Any) -> str:
    """The path element of a list's item. Raises NoIdentityError."""
    if schema.map_keys:
        return _keyed(schema, item)
    if isinstance(item, dict):
        raise NoIdentityError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise NoIdentityError("not supported: associative list with lists as elements")
    if item is None:
        raise NoIdentityError("associative list without keys has an element that's an explicit null")
    return of_value(item)


def _keyed(schema: Array, item: Any) -> str:
    if item is None:
        raise NoIdentityError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise NoIdentityError("associative list with keys may not have non-map elements")
    if len(schema.map_keys) == 1:
        name = schema.map_keys[0]
        value = item.get(name)
        if type(value) is str and len(value) <= _LONGEST_CACHED:
            return _named(name, value)
    keys = {name: item[name] if name in item else _default(schema, name) for name in schema.map_keys}
    keys = {name: value for name, value in keys.items() if name in item or value is not None}
    if not keys:
        named = " ".join(quoted(name) for name in schema.map_keys)
        raise NoIdentityError(
            f"associative list with keys has an element that omits all key fields [{named}] "
            "(and doesn't have default values for any key fields)"
        )
    return of_key(keys)


@lru_cache(_CACHED)
def _named(key: str, value: str) -> str:
    """The element of an item with one key. Cached: a fleet has few names of conditions."""
    return of_key({key: value})


def _default(schema: Array, name: str) -> str | None:
    field = schema.items.fields.get(name) if isinstance(schema.items, Object) else None
    return field.default if isinstance(field, String) else None


def identified(schema: Array, items: Any) -> Iterator[tuple[str, Any]]:
    """The items with their elements. Items without an identity are skipped: validation refuses them."""
    for item in items if isinstance(items, list) else ():
        try:
            yield element_of(schema, item), item
        except NoIdentityError:
            continue


def grouped(schema: Array, items: Any) -> dict[str, list[Any]]:
    """The items by their elements. Old objects may have duplicates: several items for one element."""
    groups: dict[str, list[Any]] = {}
    for element, item in identified(schema, items):
        groups.setdefault(element, []).append(item)
    return groups


# The fast path: lists whose items are identified by one text

ByElement = Callable[[Any], dict[str, Any] | None]


def compile_by_element(schema: Array) -> ByElement:
    """Compiles a function that returns the items of a list by their elements; None where only ``grouped`` can do it.

    It handles maps that all have the list's only key, and texts in a set, without duplicates. No Python code runs for
    each item.
    """
    if len(schema.map_keys) > 1:
        return lambda _items: None
    element_of_text = _elements_of_texts(schema)
    text_of = itemgetter(schema.map_keys[0]) if schema.map_keys else None

    def by_element(items: Any) -> dict[str, Any] | None:
        if type(items) is not list:
            return None
        try:
            texts = list(map(text_of, items)) if text_of else items
        except (TypeError, KeyError):  # no map, or one without the key
            return None
        if not _STRINGS.issuperset(map(type, texts)):
            return None
        found = dict(zip(map(element_of_text, texts), items, strict=True))
        return found if len(found) == len(items) else None

    return by_element


def _elements_of_texts(schema: Array) -> Callable[[str], str]:
    """Cached: a fleet has few names of conditions."""
    keep = bounded_cache(_CACHED, longest=_LONGEST_CACHED)
    if not schema.map_keys:
        return keep(of_value)
    (key,) = schema.map_keys
    return keep(lambda text: of_key({key: text}))
