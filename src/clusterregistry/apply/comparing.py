"""What changed from one object to another, as sets of fields.

Schemas are compiled to functions, once: every write compares, and most of what it would ask a schema is always the
same. What has no parts that could be owned one by one needs no function at all, and which fields differ is found
without code of ours that runs for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import compress, filterfalse, repeat
from operator import ne
from typing import Any, NamedTuple

from clusterregistry.apis.meta import schemas
from clusterregistry.apis.meta.schemas import Array, Schema
from clusterregistry.apply.elements import FIELD
from clusterregistry.apply.field_sets import LEAF, SELF, Fields, Names, is_atomic, whole_names
from clusterregistry.apply.items import compile_by_element, grouped

_ABSENT: Any = object()


class Comparison(NamedTuple):
    """``gained`` are the fields that the new object has anew or with another value, ``removed`` those it lacks."""

    gained: Fields
    removed: Fields


NO_CHANGE = Comparison({}, {})

Compare = Callable[[dict[str, Any], dict[str, Any]], Comparison]


Changes = tuple[Fields, Fields]
"""The same of a part of an object: what it has gained, and what was removed from it."""


class _Parts(NamedTuple):
    """Values whose parts are owned one by one. Of one that is empty, or of another type, the whole is owned."""

    type: type
    everything: Callable[[Any], Fields]
    """The node of a value that is neither."""
    compare: Callable[[Any, Any], Changes]
    """What differs between two values of the type."""


def compare(schema: schemas.Object, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """Compares two objects of one schema. Parts that are equal are not looked into."""
    return NO_CHANGE if old is new else compile_compare(schema)(old, new)


def compile_compare(schema: schemas.Object, hidden: Names | None = None) -> Compare:
    """The same as a function of two objects, for one schema. Fields in ``hidden`` are passed over."""
    compare_structs = _struct_parts(schema, hidden or {}).compare

    def compare_objects(old: dict[str, Any], new: dict[str, Any]) -> Comparison:
        return NO_CHANGE if old is new else Comparison(*compare_structs(old, new))

    return compare_objects


def _compiled(schema: Schema, hidden: Names) -> _Parts | None:
    """None where nothing but the whole can be owned."""
    if is_atomic(schema):
        return None
    match schema:
        case schemas.Object():
            return _struct_parts(schema, hidden)
        case schemas.Map(values=values):
            return _map_parts(_alike(_compiled(values, {})), element_of=_FIELD_OF)
        case Array():
            return _list_parts(schema)
        case _:
            return None


def _everything(parts: _Parts | None, value: Any) -> Fields:
    """The node of a value with all its parts: what comes with it and goes with it, itself included."""
    return parts.everything(value) if parts and value and type(value) is parts.type else LEAF


def _record(parts: _Parts, element: str, before: Any, after: Any, changes: Changes) -> None:
    """Records what differs in a value that has changed, in place of the whole, or that it is new with all its parts."""
    gained, removed = changes
    if before is _ABSENT:
        gained[element] = _everything(parts, after)
        return
    kind = parts.type
    old, new = before if type(before) is kind else kind(), after if type(after) is kind else kind()
    if not old and not new:
        return
    came, went = parts.compare(old, new)
    if came:
        gained[element] = came
    else:
        del gained[element]
    if went:
        removed[element] = went


# Structs and maps

_FIELD_OF = FIELD.__add__


class _Below(NamedTuple):
    """What is in a struct, a map or a list."""

    parts_of: Callable[[str], _Parts]
    having_parts: Callable[[Iterable[str]], Iterable[str]]
    """Those of some names that lead to values with parts, for which ``parts_of`` may be asked."""


def _named(fields: dict[str, _Parts]) -> _Below:
    return _Below(fields.__getitem__, fields.keys().__and__)


def _alike(parts: _Parts | None) -> _Below:
    return _Below(lambda _name: parts, iter) if parts else _named({})


def _struct_parts(schema: schemas.Object, hidden: Names) -> _Parts:
    whole = whole_names(hidden)
    compiled = {name: _compiled(field, hidden.get(name) or {}) for name, field in schema.fields.items()}
    fields = {name: parts for name, parts in compiled.items() if parts and name not in whole}
    return _map_parts(_named(fields), element_of=_FIELD_OF, hidden=whole)


def _map_parts(below: _Below, *, element_of: Callable[[str], str], hidden: frozenset[str] = frozenset()) -> _Parts:
    """The parts of dicts. Everything is recorded as a whole first; then what has parts is looked into."""
    parts_of, having_parts = below
    is_hidden = hidden.__contains__

    def all_of(value: dict[str, Any]) -> Fields:
        names = list(filterfalse(is_hidden, value)) if hidden else value
        node: Fields = {SELF: LEAF, **dict.fromkeys(map(element_of, names), LEAF)}
        for name in having_parts(names):
            node[element_of(name)] = _everything(parts_of(name), value[name])
        return node

    def compare_maps(old: dict[str, Any], new: dict[str, Any]) -> Changes:
        names = list(filterfalse(is_hidden, new)) if hidden else new
        changed = list(compress(names, map(ne, map(new.get, names), map(old.get, names, repeat(_ABSENT)))))
        gained: Fields = dict.fromkeys(map(element_of, changed), LEAF)
        removed: Fields = {}
        for name in having_parts(changed):
            _record(parts_of(name), element_of(name), old.get(name, _ABSENT), new[name], (gained, removed))
        if gone := old.keys() - new.keys() - hidden:
            removed |= dict.fromkeys(map(element_of, gone), LEAF)
            for name in having_parts(gone):
                removed[element_of(name)] = _everything(parts_of(name), old[name])
        return gained, removed

    return _Parts(dict, all_of, compare_maps)


# Lists whose items have an identity


def _list_parts(schema: Array) -> _Parts:
    """Where it is simple to tell items apart they are those of a map, in which they have their elements for names."""
    items, by_element = _compiled(schema.items, {}), compile_by_element(schema)
    as_map = _map_parts(_alike(items), element_of=str)

    def all_of(value: list[Any]) -> Fields:
        found = by_element(value)
        return as_map.everything(found) if found is not None else _all_groups(items, grouped(schema, value))

    def compare_lists(before: list[Any], after: list[Any]) -> Changes:
        old, new = by_element(before), by_element(after)
        if old is None or new is None:
            return _compare_groups(items, grouped(schema, before), grouped(schema, after))
        return as_map.compare(old, new)

    return _Parts(list, all_of, compare_lists)


_Groups = dict[str, list[Any]]


def _all_groups(items: _Parts | None, groups: _Groups) -> Fields:
    """The node of a list. Duplicates are owned as a whole, without the fields below them."""
    node: Fields = {SELF: LEAF}
    for element, same in groups.items():
        node[element] = _everything(items, same[0]) if len(same) == 1 else LEAF
    return node


def _compare_groups(items: _Parts | None, old: _Groups, new: _Groups) -> Changes:
    changes: Changes = ({}, {})
    for element in old | new:
        _compare_same(items, element, old.get(element, []), new.get(element, []), changes)
    return changes


def _compare_same(items: _Parts | None, element: str, old: list[Any], new: list[Any], changes: Changes) -> None:
    """Items with one identity, which may be duplicates."""
    gained, removed = changes
    if len(old) <= 1 and len(new) <= 1:
        _compare_one(items, element, (old or [_ABSENT])[0], (new or [_ABSENT])[0], changes)
        return
    if len(old) == 1:
        removed[element] = _everything(items, old[0])
    elif len(new) == 1:
        gained[element] = _everything(items, new[0])
    if len(new) > 1 and new != old:
        gained[element] = LEAF
    elif len(old) > 1 and len(new) <= 1:
        removed[element] = LEAF


def _compare_one(items: _Parts | None, element: str, before: Any, after: Any, changes: Changes) -> None:
    """An item that is no duplicate, and may be absent before or after."""
    gained, removed = changes
    if after is _ABSENT:
        removed[element] = _everything(items, before)
    elif before != after:
        gained[element] = LEAF
        if items:
            _record(items, element, before, after, changes)
