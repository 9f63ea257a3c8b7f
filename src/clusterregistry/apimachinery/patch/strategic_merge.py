"""Strategic merge patch: a merge patch that knows from the schema which lists are maps and sets.

The rules and directives are those of k8s.io/apimachinery's strategicpatch: ``$patch``, ``$retainKeys``,
``$deleteFromPrimitiveList/FIELD`` and ``$setElementOrder/FIELD``. Fields that no schema describes merge as in a
JSON merge patch. Lists are merged in ``list_merging``.
"""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.patch import list_merge
from clusterregistry.apimachinery.patch.errors import InvalidPatch, not_decodable
from clusterregistry.apimachinery.patch.list_merge import DELETE, DIRECTIVE, REPLACE, MergeItems
from clusterregistry.apimachinery.patch.merge_patch import without_nulls
from clusterregistry.apimachinery.schema.schemas import Array, Map, Object, Schema, String

_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_ELEMENT_ORDER = "$setElementOrder"

_BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
_BAD_PREFIXED = {
    _DELETE_FROM: "invalid patch format of primitive list",
    _ELEMENT_ORDER: list_merge.BAD_ELEMENT_ORDER,
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
    """The document with the patch merged into it, lists as ``schema`` says. ``schema`` need not describe metadata.

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
    """What ``$patch`` in a map leaves: the rest of the patch, or nothing."""
    directive = patch[DIRECTIVE]
    if directive == DELETE:
        return {}
    if directive != REPLACE:
        raise list_merge.unknown_directive(directive)
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
    merged = list_merge.merged_in_order(
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
        result[field] = list_merge.without_items(result[field], items)


def _apply_change(result: _Map, key: str, *, value: Any, schema: Schema | None) -> None:
    current = result.get(key)
    if value is None:
        result.pop(key, None)
    elif isinstance(value, dict) and isinstance(current, dict):
        result[key] = _merged(current, value, schema)
    elif isinstance(value, list) and isinstance(current, list):
        result[key] = list_merge.merged(current, value, strategy=_strategy(schema), merge_items=_items_merger(schema))
    elif _is_kept(value):
        result[key] = _added(value)
    else:  # a directive with nothing to apply it to
        result.pop(key, None)


def _items_merger(schema: Schema | None) -> MergeItems:
    items = schema.items if isinstance(schema, Array) else None
    return lambda current, change: _merged(current, change, items)


def _strategy(schema: Schema | None) -> list_merge.Strategy:
    if not isinstance(schema, Array) or schema.list_type == "atomic":
        return list_merge.Strategy(merges=False)
    return list_merge.Strategy(merges=True, key=schema.map_keys[0] if schema.map_keys else "")


def _described(schema: Schema | None, key: str) -> Schema | None:
    if isinstance(schema, Object):
        return schema.fields.get(key)
    return schema.values if isinstance(schema, Map) else None


def _field_of(key: str, prefix: str) -> str:
    """The field that ``PREFIX/FIELD`` is about."""
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
