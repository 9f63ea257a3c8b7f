"""The items of lists whose items have an identity: sets, and lists of maps that are told apart by keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Any

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.fieldmanager import path_element
from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apimachinery.schema.schemas import Array, Object, String

_REMEMBERED = 4096
_LONGEST_REMEMBERED = 128
_STRINGS = frozenset((str,))


class NoIdentityError(ValueError):
    """An item of which nobody can say which one it is; the message is kube-apiserver's."""


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
    return path_element.of_value(item)


def _keyed(schema: Array, item: Any) -> str:
    if item is None:
        raise NoIdentityError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise NoIdentityError("associative list with keys may not have non-map elements")
    if len(schema.map_keys) == 1:
        name = schema.map_keys[0]
        value = item.get(name)
        if type(value) is str and len(value) <= _LONGEST_REMEMBERED:
            return _named(name, value)
    keys = {name: item[name] if name in item else _default(schema, name) for name in schema.map_keys}
    keys = {name: value for name, value in keys.items() if name in item or value is not None}
    if not keys:
        named = " ".join(quoted(name) for name in schema.map_keys)
        raise NoIdentityError(
            f"associative list with keys has an element that omits all key fields [{named}] "
            "(and doesn't have default values for any key fields)"
        )
    return path_element.of_key(keys)


@lru_cache(_REMEMBERED)
def _named(key: str, value: str) -> str:
    """The element of an item with one key. Remembered: a fleet has few names of conditions."""
    return path_element.of_key({key: value})


def _default(schema: Array, name: str) -> str | None:
    field = schema.items.fields.get(name) if isinstance(schema.items, Object) else None
    return field.default if isinstance(field, String) else None


def identified(schema: Array, items: Any) -> Iterator[tuple[str, Any]]:
    """The items with their elements; those without an identity are passed over, validation refuses them."""
    for item in items if isinstance(items, list) else ():
        try:
            yield element_of(schema, item), item
        except NoIdentityError:
            continue


def grouped(schema: Array, items: Any) -> dict[str, list[Any]]:
    """The items by their elements. More than one for an element are duplicates, which old objects may have."""
    groups: dict[str, list[Any]] = {}
    for element, item in identified(schema, items):
        groups.setdefault(element, []).append(item)
    return groups


# The usual lists: items that are told apart by one text

ByElement = Callable[[Any], dict[str, Any] | None]


def compile_by_element(schema: Array) -> ByElement:
    """A function that has the items of a list by their elements; None where that is not simple, see ``grouped``.

    Simple are maps that all have the list's only key, and texts in a set, none of them twice. What is done with these
    is the same for each, so that no code of ours has to run for each.
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
    """Remembered: a fleet has few names of conditions."""
    keep = bounded_cache(_REMEMBERED, longest=_LONGEST_REMEMBERED)
    if not schema.map_keys:
        return keep(path_element.of_value)
    (key,) = schema.map_keys
    return keep(lambda text: path_element.of_key({key: text}))
