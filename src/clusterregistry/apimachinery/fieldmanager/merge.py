"""Merges an applied configuration into the live object. A merge removes nothing, see ``prune``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterregistry.apimachinery.fieldmanager.field_set import CONTAINERS, is_atomic
from clusterregistry.apimachinery.fieldmanager.path_element import identified
from clusterregistry.apimachinery.meta.integers import whole
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.schemas import Array, Schema


def settled(schema: Schema | None, value: Any, live: Any = None, applied: Any = None) -> Any:
    """The value as it is stored: without nulls in place of structs, maps and lists, and with 1 for 1.0.

    A client may apply such a null, and pruning leaves a null in place of an emptied struct, unless the struct is
    ``applied`` as empty. kube-apiserver refuses these nulls in custom resources, even those that it made itself.
    Parts of ``live`` are settled already.
    """
    if value is live:
        return value
    if type(value) is dict:
        return _settled_map(schema, value, _dict(live), _dict(applied))
    if type(value) is list:
        items = schema.items if type(schema) is Array else None
        return [settled(items, each) for each in value]
    return whole(value) if type(schema) is schemas.Integer else value


def is_settled(configuration: Any) -> bool:
    """Whether a configuration has neither nulls nor floats, so that ``settled`` cannot change it."""
    if type(configuration) is dict:
        return all(map(is_settled, configuration.values()))
    if type(configuration) is list:
        return all(map(is_settled, configuration))
    return configuration is not None and type(configuration) is not float


def _settled_map(
    schema: Schema | None, value: dict[str, Any], live: dict[str, Any], applied: dict[str, Any]
) -> dict[str, Any]:
    kept = {}
    for name, each in value.items():
        if each is live.get(name) and each is not None:
            kept[name] = each
            continue
        part = _part(schema, name)
        if each is None and type(part) in CONTAINERS:
            each = applied.get(name)  # noqa: PLW2901 - empty in place of emptied
        if each is not None or type(part) not in CONTAINERS:
            kept[name] = settled(part, each, live.get(name), applied.get(name))
    return kept


def _dict(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _part(schema: Schema | None, name: str) -> Schema | None:
    return schema.fields.get(name) if type(schema) is schemas.Object else getattr(schema, "values", None)


Merge = Callable[[Any, Any], Any]
"""Takes the live and the applied value."""


def merge(schema: schemas.Object, live: dict[str, Any], applied: dict[str, Any]) -> Any:
    """The live object with the values of the applied one. Shares parts with both, changes neither."""
    return compile_merge(schema)(live, applied)


def compile_merge(schema: schemas.Object) -> Merge:
    """Compiles a schema to a function that merges. The applied value must fit the schema."""
    compiled = {name: _compiled(field) for name, field in schema.fields.items()}
    merges = {name: merge_part for name, merge_part in compiled.items() if merge_part}

    def merge_structs(live: Any, applied: Any) -> Any:
        if not live or type(live) is not dict:
            return applied
        if not applied:  # a null does not empty a map
            return dict(live)
        merged = {**live, **applied}
        for name in merges.keys() & applied.keys() & live.keys():
            merged[name] = merges[name](live[name], applied[name])
        return merged

    return merge_structs


def _compiled(schema: Schema) -> Merge | None:
    """None where the applied value replaces the live one."""
    if is_atomic(schema):
        return None
    match schema:
        case schemas.Object():
            return compile_merge(schema)
        case schemas.Map(values=values):
            return _compile_maps(_compiled(values))
        case Array():
            return _compile_lists(schema)
        case _:
            return None


def _compile_maps(merge_values: Merge | None) -> Merge:
    def merge_maps(live: Any, applied: Any) -> Any:
        if not live or type(live) is not dict:
            return applied
        merged = {**live, **(applied or {})}
        if merge_values and applied:
            for name in live.keys() & applied.keys():
                merged[name] = merge_values(live[name], applied[name])
        return merged

    return merge_maps


def _compile_lists(schema: Array) -> Merge:
    merge_items = _compiled(schema.items)
    return lambda live, applied: _lists(schema, merge_items, live, applied) if live and type(live) is list else applied


def _lists(schema: Array, merge_items: Merge | None, live: list[Any], applied: Any) -> list[Any]:
    """The items of both lists, merged where they have the same path element.

    In kube-apiserver's order: applied items keep their order, and live items that are not applied come as early as
    their place among the shared ones allows.
    """
    theirs = dict(identified(schema, applied))
    if not theirs:
        return live
    mine: dict[str, list[Any]] = {}
    order: list[str] = []
    for element, item in identified(schema, live):
        mine.setdefault(element, []).append(item)
        order.append(element)
    merged: list[Any] = []
    for element, is_applied in _interleaved(order, list(theirs)):
        if is_applied:
            same = mine.get(element, [])
            # Duplicates are replaced by the one that is applied.
            merged.append(merge_items(same[0], theirs[element]) if merge_items and len(same) == 1 else theirs[element])
        else:
            merged.append(mine[element].pop(0))
    return merged


def _interleaved(live: list[str], applied: list[str]) -> list[tuple[str, bool]]:
    """The path elements in the order of the result, each with whether it is applied."""
    wanted, present = set(applied), set(live)
    shared = [element for element in applied if element in present]
    done: set[str] = set()
    result: list[tuple[str, bool]] = []
    at = to = 0
    while at < len(live) or to < len(applied):
        here = live[at] if at < len(live) else None
        if here is not None:
            if here not in wanted:
                result.append((here, False))
                at += 1
                continue
            if to < len(applied) and shared and here != shared[0]:
                # It came already, or comes later: the applied order decides.
                at += 1
                continue
            at += here in done
        if to < len(applied):
            element = applied[to]
            result.append((element, True))
            done.add(element)
            to += 1
            at += element == here
            if shared and shared[0] == element:
                shared.pop(0)
    return result
