"""Merging an applied configuration into the live object. Nothing is removed by it."""

from __future__ import annotations

from typing import Any

from clusterregistry.apis.meta import schemas
from clusterregistry.apis.meta.integers import whole
from clusterregistry.apis.meta.schemas import Array, Schema
from clusterregistry.apply.field_sets import CONTAINERS, is_atomic
from clusterregistry.apply.items import identified


def settled(schema: Schema | None, value: Any, live: Any = None, applied: Any = None) -> Any:
    """The value as it is stored: null in place of a struct, map or list is nothing at all, and 1.0 is an integer.

    A client may apply such a null, and what was emptied is one, unless it is ``applied`` as empty. kube-apiserver
    refuses them in custom resources, even those that it made itself. Parts that are those of ``live`` are settled
    already.
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
    """Whether a configuration has nothing in it that ``settled`` might change: neither nulls nor floats."""
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


def merge(schema: Schema | None, live: Any, applied: Any) -> Any:
    """The live value with what the applied one says. Shares parts with both, changes neither."""
    if type(schema) not in CONTAINERS or not live or is_atomic(schema):
        return applied
    if type(schema) is Array:
        return _lists(schema, live, applied) if type(live) is list else applied
    return _maps(schema, live, applied) if type(live) is dict else applied


def _maps(schema: Schema | None, live: dict[str, Any], applied: Any) -> dict[str, Any]:
    """An applied null says nothing about a map that has something in it."""
    merged = dict(live)
    for name, value in applied.items() if applied else ():
        has_parts = type(value) is not str and name in live
        merged[name] = merge(_part(schema, name), live[name], value) if has_parts else value
    return merged


def _lists(schema: Array, live: list[Any], applied: Any) -> list[Any]:
    """The items of both, merged where they are the same.

    As in kube-apiserver, whose order clients see: applied items keep the order in which they are applied, and
    live items that are not applied come as early as their place among the shared ones allows.
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
            merged.append(merge(schema.items, same[0], theirs[element]) if len(same) == 1 else theirs[element])
        else:
            merged.append(mine[element].pop(0))
    return merged


def _interleaved(live: list[str], applied: list[str]) -> list[tuple[str, bool]]:
    """Elements in the order of the result, and whether each is an applied one."""
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
                # Its turn has been, or comes later: the applied order decides.
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
