"""JSON merge patch (RFC 7386), with the behaviour of the Go library that kube-apiserver uses."""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.patch.errors import InvalidPatch, not_decodable

_SCALARS = frozenset((str, int, float, bool))


def apply(document: Any, patch: Any) -> Any:
    """The document with the patch merged into it. Idempotent. Raises InvalidPatch unless the patch is a map."""
    if patch is None:
        raise InvalidPatch("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise not_decodable(patch, "value of type map[string]interface {}")
    return _merged(document, patch)


def without_nulls(value: Any) -> Any:
    """A value as a patch adds it: without null members at any depth, with null items.

    Unlike the RFC, the Go library looks into lists too.
    """
    if isinstance(value, dict):
        if _SCALARS.issuperset(map(type, value.values())):  # as in most maps: all of it stays
            return dict(value)
        return {key: without_nulls(child) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [without_nulls(child) for child in value]
    return value


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(target, dict):
        return without_nulls(patch)
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
