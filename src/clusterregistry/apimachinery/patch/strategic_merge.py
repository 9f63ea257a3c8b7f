"""Strategic merge patch: a merge patch that knows from the schema which lists are maps and sets.

The rules and directives are those of k8s.io/apimachinery's strategicpatch: ``$patch``, ``$retainKeys``,
``$deleteFromPrimitiveList/FIELD`` and ``$setElementOrder/FIELD``. Fields that no schema describes merge as in a
JSON merge patch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.patch.errors import InvalidPatch, PatchFailed, not_decodable
from clusterregistry.apimachinery.patch.merge_patch import without_nulls
from clusterregistry.apimachinery.schema.schemas import Array, Map, Object, Schema, String

DIRECTIVE = "$patch"
DELETE, REPLACE, MERGE = "delete", "replace", "merge"

BAD_ELEMENT_ORDER = "invalid patch format of setElementOrder list"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_ELEMENT_ORDER = "$setElementOrder"

_BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
_BAD_PREFIXED = {
    _DELETE_FROM: "invalid patch format of primitive list",
    _ELEMENT_ORDER: BAD_ELEMENT_ORDER,
}

# The metadata of every kind, so far as its lists are merged.
_OWNER_REFERENCE = Object(fields={"uid": String()})
_METADATA = Object(
    fields={
        "finalizers": Array(items=String(), list_type="set"),
        "ownerReferences": Array(items=_OWNER_REFERENCE, list_type="map", map_keys=("uid",)),
    }
)

_Map = dict[str, Any]


def apply(document: _Map, patch: Any, *, schema: Schema) -> _Map:
    """Merges a patch into a document, lists by their ``schema``, which need not describe metadata.

    Raises InvalidPatch for malformed directives and PatchFailed for lists that cannot be merged.
    """
    if patch is None:  # Go decodes null into an empty map
        return document
    if not isinstance(patch, dict):
        raise not_decodable(patch, "value of type map[string]interface {}")
    return _merged(document, patch, _with_metadata(schema))


def _with_metadata(schema: Schema) -> Schema:
    fields = schema.fields if isinstance(schema, Object) else {}
    return Object(fields={"metadata": _METADATA, **fields})


def _merged(original: _Map, patch: _Map, schema: Schema | None) -> _Map:
    if DIRECTIVE in patch:
        return _replaced(patch)
    changes = dict(patch)
    result = _retained(original, changes)
    for key in [key for key in changes if key.startswith(_ELEMENT_ORDER)]:
        _apply_element_order(result, changes, key=key, schema=schema)
    for key in [key for key in changes if key.startswith(_DELETE_FROM)]:
        _apply_deletions(result, _field_of(key, _DELETE_FROM), changes.pop(key))
    for key, value in changes.items():
        _apply_change(result, key, value=value, schema=_described(schema, key))
    return result


def _replaced(patch: _Map) -> _Map:
    """The result of ``$patch`` in a map: the rest of the patch, or an empty map."""
    directive = patch[DIRECTIVE]
    if directive == DELETE:
        return {}
    if directive != REPLACE:
        raise unknown_directive(directive)
    rest: _Map = _added({key: value for key, value in patch.items() if key != DIRECTIVE})
    return rest


def _retained(original: _Map, changes: _Map) -> _Map:
    """The original with the keys that ``$retainKeys`` lists; takes the directive out of the changes."""
    if _RETAIN_KEYS not in changes:
        return dict(original)
    keys = changes.pop(_RETAIN_KEYS)
    if not isinstance(keys, list):
        raise InvalidPatch(_BAD_RETAIN_KEYS)
    set_keys = (key for key, value in changes.items() if value is not None and _is_field(key))
    if any(key not in keys for key in set_keys):
        raise InvalidPatch(_BAD_RETAIN_KEYS)
    return {key: value for key, value in original.items() if key in keys}


def _apply_element_order(result: _Map, changes: _Map, *, key: str, schema: Schema | None) -> None:
    """Merges the list that ``$setElementOrder/FIELD`` orders; takes both out of the changes."""
    field, order = _field_of(key, _ELEMENT_ORDER), changes.pop(key)
    described = _described(schema, field)
    merged = merged_in_order(
        result.get(field),
        changes.pop(field, None),
        order=order,
        strategy=_strategy(described),
        merge_items=_items_merger(described),
    )
    if merged is not None:
        result[field] = merged


def _apply_deletions(result: _Map, field: str, items: Any) -> None:
    if items is None:  # as strategicpatch does: null deletes the list itself
        result.pop(field, None)
    elif isinstance(items, list) and isinstance(result.get(field), list):
        result[field] = without_items(result[field], items)


def _apply_change(result: _Map, key: str, *, value: Any, schema: Schema | None) -> None:
    current = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict) and isinstance(current, dict):
        result[key] = _merged(current, value, schema)
    elif isinstance(value, list) and isinstance(current, list):
        result[key] = merged(current, value, strategy=_strategy(schema), merge_items=_items_merger(schema))
    elif _is_kept(value):
        result[key] = _added(value)
    else:  # a directive with nothing to apply it to
        result.pop(key, None)


def _items_merger(schema: Schema | None) -> MergeItems:
    items = schema.items if isinstance(schema, Array) else None
    return lambda current, change: _merged(current, change, items)


def _strategy(schema: Schema | None) -> Strategy:
    if not isinstance(schema, Array) or schema.list_type == "atomic" or not schema.merges_in_patches:
        return Strategy(merges=False)
    return Strategy(merges=True, key=schema.map_keys[0] if schema.map_keys else "")


def _described(schema: Schema | None, key: str) -> Schema | None:
    if isinstance(schema, Object):
        return schema.fields.get(key)
    return schema.values if isinstance(schema, Map) else None


def _field_of(key: str, prefix: str) -> str:
    """The field of ``PREFIX/FIELD``."""
    start, slash, field = key.partition("/")
    if start != prefix or not slash:
        raise InvalidPatch(_BAD_PREFIXED[prefix])
    return field


def _is_field(key: str) -> bool:
    return not key.startswith((_RETAIN_KEYS, _DELETE_FROM, _ELEMENT_ORDER)) and key != DIRECTIVE


def _is_kept(value: Any) -> bool:
    """Whether a value of the patch becomes a value of the object: maps with ``$patch`` never do."""
    return not (isinstance(value, dict) and DIRECTIVE in value)


def _added(value: Any) -> Any:
    """A value that the object did not have: without nulls and directives at any depth."""
    return _without_directives(without_nulls(value))


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {key: child for key, child in value.items() if _is_field(key) and _is_kept(child)}
        return {key: _without_directives(child) for key, child in fields.items()}
    if isinstance(value, list):
        return [_without_directives(child) for child in value if _is_kept(child)]
    return value


# Lists

MergeItems = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
"""Merges an item of the patch into the item of the object that has the same key."""

_GO_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64", dict: "map", list: "slice"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How one list merges; ``key`` identifies its items and is empty when they are scalars."""

    merges: bool
    key: str = ""


def merged(current: list[Any], patch: list[Any], *, strategy: Strategy, merge_items: MergeItems) -> list[Any]:
    """Merges two lists: items of the patch in its order, others at their former places. Raises PatchError."""
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
    """Merges two lists in a given order of items; None if both lists are absent. Raises PatchError."""
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
    """A list of scalars without some of them. Raises InvalidPatch for other items."""
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
    """The list without the items that ``$patch`` removes, and the patch without directives."""
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
    """Sorts items: those in ``order`` by it, the others by the former list.

    Of two candidates the one that was first in the former list comes first; else the one in ``order``.
    """
    ranks, places = _ranks(order, key), _ranks(former, key)
    identified = [(_identity_in(item, key), item) for item in items]
    named = sorted((pair for pair in identified if pair[0] in ranks), key=lambda pair: ranks[pair[0]])
    unknown = len(places)  # an item in neither list comes last
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
    """A hashable identity of a JSON scalar: 1 and true differ."""
    if isinstance(value, (dict, list)):
        raise InvalidPatch(f"expected a scalar, but received a {_go_type(value)}")
    return (isinstance(value, bool), value)


def _go_type(value: Any) -> str:
    return _GO_TYPES.get(type(value), "<nil>")
