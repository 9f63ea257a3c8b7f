"""How strategic merge patch merges lists: lists of maps by a key, lists of scalars as sets, others not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.patch.errors import InvalidPatch, PatchFailed

DIRECTIVE = "$patch"
DELETE, REPLACE, MERGE = "delete", "replace", "merge"

BAD_ELEMENT_ORDER = "invalid patch format of setElementOrder list"

MergeItems = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
"""Merges an item of the patch into the item of the object that has the same key."""

_GO_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64", dict: "map", list: "slice"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How one list merges; ``key`` identifies its items and is empty when they are scalars."""

    merges: bool
    key: str = ""


def merged(current: list[Any], patch: list[Any], *, strategy: Strategy, merge_items: MergeItems) -> list[Any]:
    """Both lists in one: items of the patch in its order, others where they stood. Raises PatchError."""
    if not strategy.merges:
        return patch
    if _item_type(current, patch) is not dict:
        return _ordered(_distinct([*current, *patch]), order=patch, former=current, key="")
    if not strategy.key:
        raise InvalidPatch("cannot merge lists without merge key")
    current, additions = _directives_applied(current, patch, strategy.key)
    items = _merged_by_key(current, additions, key=strategy.key, merge_items=merge_items)
    return _ordered(items, order=additions, former=current, key=strategy.key)


def merged_in_order(
    current: Any, patch: Any, *, order: Any, strategy: Strategy, merge_items: MergeItems
) -> list[Any] | None:
    """The same, with the order of items given; None when there is no list at all. Raises PatchError."""
    present = [part for part in (current, patch) if part is not None]
    for part in (order, *present):
        if not isinstance(part, list):
            raise InvalidPatch(f"expected a []interface {{}}, but received a {_go_type(part)}")
    _check_order(patch or [], order, strategy.key)
    if not present:
        return None
    items = current or []
    if patch is not None:
        items = merged(items, patch, strategy=strategy, merge_items=merge_items)
    return _ordered(items, order=order, former=current or [], key=strategy.key)


def without_items(current: list[Any], items: list[Any]) -> list[Any]:
    """A list of scalars without some. Raises InvalidPatch when items are no scalars."""
    if _item_type(current, items) is dict:
        raise InvalidPatch("invalid patch format of primitive list")
    unwanted = set(map(_identity, items))
    return [item for item in current if _identity(item) not in unwanted]


def unknown_directive(directive: Any) -> InvalidPatch:
    shown = directive if isinstance(directive, str) else _go_type(directive)
    return InvalidPatch(f"unknown patch type: {shown}")


def _item_type(*lists: list[Any]) -> type | None:
    """The one type of all items, None when there is no item."""
    types = {type(item) for items in lists for item in items}
    if list in types:
        raise PatchFailed("lists of lists are not supported")
    if len(types) > 1 or type(None) in types:
        raise InvalidPatch("list element types are not identical")
    return types.pop() if types else None


def _directives_applied(
    current: list[Any], patch: list[Any], key: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The list without what ``$patch`` items remove, and the items of the patch that are none."""
    additions = [item for item in patch if DIRECTIVE not in item]
    directives = [item for item in patch if DIRECTIVE in item]
    unwanted = set()
    for item in directives:
        if item[DIRECTIVE] == DELETE:
            unwanted.add(_key_of(item, key))
        elif item[DIRECTIVE] == MERGE:
            raise InvalidPatch("merging lists cannot yet be specified in the patch")
        elif item[DIRECTIVE] != REPLACE:
            raise unknown_directive(item[DIRECTIVE])
    if any(item[DIRECTIVE] == REPLACE for item in directives):
        return additions, []
    return [item for item in current if _identity(item.get(key)) not in unwanted], additions


def _merged_by_key(
    current: list[dict[str, Any]], additions: list[dict[str, Any]], *, key: str, merge_items: MergeItems
) -> list[dict[str, Any]]:
    items = list(current)
    # Of items with equal keys the first is the one that is merged into.
    places = {_identity(item.get(key)): place for place, item in reversed(list(enumerate(items)))}
    for addition in additions:
        place = places.setdefault(_key_of(addition, key), len(items))
        if place == len(items):
            # Merged into nothing, so that neither nulls nor directives stay in a new item.
            items.append(merge_items({}, addition))
        else:
            items[place] = merge_items(items[place], addition)
    return items


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """The patch's items must stand in the order list, in the same sequence."""
    if not patch or not order:
        return
    wanted = iter([_identity_in(item, key) for item in order])
    for item in patch:
        if isinstance(item, dict) and DIRECTIVE in item:
            continue
        if _identity_in(item, key) not in wanted:
            raise InvalidPatch("The order in patch list doesn't match $setElementOrder list")


def _ordered(items: Iterable[Any], *, order: Sequence[Any], former: Sequence[Any], key: str) -> list[Any]:
    """Items that ``order`` names in its order, among the others, which keep that of the former list.

    Of two candidates the one that stood first before goes first; where that says nothing, the ordered one.
    """
    ranks, places = _ranks(order, key), _ranks(former, key)
    identified = [(_identity_in(item, key), item) for item in items]
    named = sorted((pair for pair in identified if pair[0] in ranks), key=lambda pair: ranks[pair[0]])
    unknown = len(places)  # an item that neither list has comes last
    others = sorted(
        (pair for pair in identified if pair[0] not in ranks), key=lambda pair: places.get(pair[0], unknown)
    )
    result: list[Any] = []
    taken = 0
    for identity, other in others:
        while taken < len(named) and places.get(identity, unknown) >= places.get(named[taken][0], -1):
            result.append(named[taken][1])
            taken += 1
        result.append(other)
    return result + [item for _, item in named[taken:]]


def _ranks(items: Sequence[Any], key: str) -> dict[Any, int]:
    return {_identity_in(item, key): place for place, item in reversed(list(enumerate(items)))}


def _distinct(items: list[Any]) -> list[Any]:
    return list({_identity(item): item for item in items}.values())


def _identity_in(item: Any, key: str) -> Any:
    if not key:
        return _identity(item)
    if not isinstance(item, dict):
        raise InvalidPatch(f"expected a map[string]interface {{}}, but received a {_go_type(item)}")
    return _key_of(item, key)


def _key_of(item: dict[str, Any], key: str) -> Any:
    if key not in item:
        raise InvalidPatch(f"map does not contain declared merge key: {key}")
    return _identity(item[key])


def _identity(value: Any) -> Any:
    """Something hashable that is equal for equal JSON scalars only."""
    if isinstance(value, (dict, list)):
        raise InvalidPatch(f"expected a scalar, but received a {_go_type(value)}")
    return (isinstance(value, bool), value)


def _go_type(value: Any) -> str:
    return _GO_TYPES.get(type(value), "<nil>")
