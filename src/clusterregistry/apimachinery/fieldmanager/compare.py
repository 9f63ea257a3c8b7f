"""Compares two objects of one schema: the fields that differ, as field sets.

Every write compares, so each schema is compiled to functions, once. A value without parts of its own, such as a scalar
or an atomic list, needs no function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.fieldmanager.field_set import LEAF, SELF, Fields, Names, is_atomic, whole_names
from clusterregistry.apimachinery.fieldmanager.path_element import FIELD, compile_by_element, grouped
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Array, Schema

_ABSENT: Any = object()


class Comparison(NamedTuple):
    """``gained``: the fields that are new or have another value in the new object. ``removed``: those that it lacks."""

    gained: Fields
    removed: Fields


NO_CHANGE = Comparison({}, {})

Compare = Callable[[dict[str, Any], dict[str, Any]], Comparison]

Changes = tuple[Fields | None, Fields | None]
"""The nodes of the gained and of the removed fields in a part of an object; None for no fields."""

_CompareParts = Callable[[Any, Any], Changes]


class _Parts(NamedTuple):
    """The parts of a value, each of which has managers. An empty value, or one of a wrong type, has none."""

    everything: Callable[[Any], Fields]
    """The node of a value with all its parts: the fields that are gained or removed together with it."""
    compare: _CompareParts
    """Compares two values that are not equal."""


def compare(schema: schemas.Object, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """Compares two objects of one schema. Equal parts are skipped."""
    return NO_CHANGE if old is new else compile_compare(schema)(old, new)


def compile_compare(schema: schemas.Object, hidden: Names | None = None) -> Compare:
    """Compiles a schema to a function that compares two objects. Fields in ``hidden`` are skipped."""
    compare_structs = _struct_parts(schema, hidden or {}).compare

    def compare_objects(old: dict[str, Any], new: dict[str, Any]) -> Comparison:
        if old is new:
            return NO_CHANGE
        gained, removed = compare_structs(old, new)
        return Comparison(gained or {}, removed or {})

    return compare_objects


def _compiled(schema: Schema, hidden: Names) -> _Parts | None:
    """None for values without parts."""
    if is_atomic(schema):
        return None
    match schema:
        case schemas.Object():
            return _struct_parts(schema, hidden)
        case schemas.Map(values=values):
            return _map_parts(_alike(_compiled(values, {})), element_of=_element_of_field)
        case Array():
            return _list_parts(schema)
        case _:
            return None


def _alike(parts: _Parts | None) -> _PartsOf | None:
    return (lambda _name: parts) if parts else None


def _compare_others(compare_both: _CompareParts, before: Any, after: Any, *, kind: type) -> Changes:
    """Compares two values of which one at least has a wrong type. A value of a wrong type counts as empty."""
    old, new = before if type(before) is kind else kind(), after if type(after) is kind else kind()
    return compare_both(old, new) if old or new else (LEAF, None)


# Structs and maps

_PartsOf = Callable[[str], _Parts | None]
"""The parts of the value under a name; None for a value without parts."""

_KEPT = 1024
_MOST_NAMES = 32


def _field_of(name: str) -> str:
    return FIELD + name


_element_of_field = bounded_cache(4 * _KEPT)(_field_of)


def _struct_parts(schema: schemas.Object, hidden: Names) -> _Parts:
    whole = whole_names(hidden)
    compiled = {name: _compiled(field, hidden.get(name) or {}) for name, field in schema.fields.items()}
    fields = {name: parts for name, parts in compiled.items() if parts and name not in whole}
    return _map_parts(fields.get if fields else None, element_of=_element_of_field, hidden=whole)


def _map_parts(
    parts_of: _PartsOf | None, *, element_of: Callable[[str], str], hidden: frozenset[str] = frozenset()
) -> _Parts:
    """The parts of dicts. ``parts_of`` returns the parts of a dict's value; None: no value has any."""
    shape = _Shape(parts_of or _NO_PARTS.get, element_of, hidden)
    is_flat = parts_of is None and not hidden
    return _Parts(_everything_flat(element_of) if is_flat else _everything_in(shape), _compare_in(shape))


class _Shape(NamedTuple):
    parts_of: _PartsOf
    element_of: Callable[[str], str]
    hidden: frozenset[str]


def _everything_in(shape: _Shape) -> Callable[[Any], Fields]:
    parts_of, element_of, hidden = shape

    def all_of(value: Any) -> Fields:
        if not value or type(value) is not dict:
            return LEAF
        node: Fields = {SELF: LEAF}
        for name, part in value.items():
            if name not in hidden:
                parts = parts_of(name)
                node[element_of(name)] = parts.everything(part) if parts else LEAF
        return node

    return all_of


def _compare_in(shape: _Shape) -> _CompareParts:
    parts_of, element_of, hidden = shape

    def compare_maps(old: Any, new: Any) -> Changes:
        if type(old) is not dict or type(new) is not dict:
            return _compare_others(compare_maps, old, new, kind=dict)
        gained: Fields = {}
        removed: Fields = {}
        came_new = 0
        for name, after in new.items():
            before = old.get(name, _ABSENT)
            if before is _ABSENT:
                came_new += 1
            if before is after or name in hidden or (before is not _ABSENT and before == after):
                continue
            came, went = _difference(parts_of(name), before, after)
            if came is not None:
                gained[element_of(name)] = came
            if went is not None:
                removed[element_of(name)] = went
        if len(new) - came_new < len(old):  # rare, and counting is cheaper than a set difference
            for name in old.keys() - new.keys() - hidden:
                parts = parts_of(name)
                removed[element_of(name)] = parts.everything(old[name]) if parts else LEAF
        return gained or None, removed or None

    return compare_maps


def _difference(parts: _Parts | None, before: Any, after: Any) -> Changes:
    """Compares two values that are not equal. The first one may be absent."""
    if parts is None:
        return _GAINED
    return (parts.everything(after), None) if before is _ABSENT else parts.compare(before, after)


_GAINED: Changes = LEAF, None
_NO_PARTS: dict[str, _Parts] = {}


def _everything_flat(element_of: Callable[[str], str]) -> Callable[[Any], Fields]:
    """The node of a dict whose values have no parts follows from the dict's keys, and a fleet has few sets of keys.

    So the nodes are cached: field sets are never changed, and may share their parts.
    """

    @bounded_cache(_KEPT, longest=_MOST_NAMES)
    def node_of(names: tuple[str, ...]) -> Fields:
        return {SELF: LEAF, **dict.fromkeys(map(element_of, names), LEAF)}

    def all_of(value: Any) -> Fields:
        return node_of(tuple(value)) if value and type(value) is dict else LEAF

    return all_of


# Lists whose items have an identity


def _list_parts(schema: Array) -> _Parts:
    """Lists whose items have distinct simple keys are compared as maps from path element to item."""
    items, by_element = _compiled(schema.items, {}), compile_by_element(schema)
    as_map = _map_parts(_alike(items), element_of=str)

    def all_of(value: Any) -> Fields:
        if not value or type(value) is not list:
            return LEAF
        found = by_element(value)
        return as_map.everything(found) if found is not None else _all_groups(items, grouped(schema, value))

    def compare_lists(before: Any, after: Any) -> Changes:
        if type(before) is not list or type(after) is not list:
            return _compare_others(compare_lists, before, after, kind=list)
        old, new = by_element(before), by_element(after)
        if old is None or new is None:
            return _compare_groups(items, grouped(schema, before), grouped(schema, after))
        return as_map.compare(old, new)

    return _Parts(all_of, compare_lists)


_Groups = dict[str, list[Any]]


def _all_groups(items: _Parts | None, groups: _Groups) -> Fields:
    """The node of a list. Duplicate items are leaves, without the fields below them."""
    return {SELF: LEAF, **{element: _everything(items, same) for element, same in groups.items()}}


def _everything(items: _Parts | None, same: list[Any]) -> Fields:
    return items.everything(same[0]) if items and len(same) == 1 else LEAF


def _compare_groups(items: _Parts | None, old: _Groups, new: _Groups) -> Changes:
    gained: Fields = {}
    removed: Fields = {}
    for element in old | new:
        came, went = _compare_same(items, old.get(element, []), new.get(element, []))
        if came is not None:
            gained[element] = came
        if went is not None:
            removed[element] = went
    return gained or None, removed or None


def _compare_same(items: _Parts | None, old: list[Any], new: list[Any]) -> Changes:
    """Compares the items with one path element. An item that gets a duplicate counts as replaced."""
    if old == new:
        return None, None
    if len(old) == len(new) == 1:
        return items.compare(old[0], new[0]) if items else (LEAF, None)
    is_replaced = len(old) <= 1 or len(new) <= 1
    return _everything(items, new) if new else None, _everything(items, old) if old and is_replaced else None
