"""Decodes and normalises the object metadata of a client, and removes duplicate owner references.

``object_meta_validation`` validates the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.json_types import ShapeError, json_type
from clusterregistry.apimachinery.schema.fast_path import is_usual

Metadata = dict[str, Any]

_ABSENT: Any = object()
_INT64 = range(-(2**63), 2**63)
_TEXT = frozenset((str,))
_KIND = "{kind}"


class MetadataError(ShapeError):
    """A field of the metadata has a wrong type.

    As in kube-apiserver, the metadata of a custom resource is decoded by itself, and that of a native kind as a part of
    the object: ``of_native`` has the message for the latter.
    """

    def __init__(self, message: str, of_native: str = "") -> None:
        super().__init__(message)
        self._of_native = of_native or message

    def of_native(self, kind: str) -> str:
        """The message for a native kind."""
        return self._of_native.replace(_KIND, kind)


class Decoded(NamedTuple):
    """``metadata`` is a new dict that may share parts with its source; ``unknown`` are the paths of unknown fields."""

    metadata: Metadata
    unknown: list[str]


Decode = Callable[[Any, str, list[str]], Any]
"""Decodes a value, given its path and the list of unknown paths; None: absent."""


def decode(metadata: Any, known: Metadata | None = None) -> Decoded:
    """Metadata as a round trip through Go's ObjectMeta leaves it. Raises MetadataError for a wrong type.

    Null and empty fields are left out, and times are in UTC to the second. Fields are decoded in alphabetical order, as
    in kube-apiserver, so that the same one of several errors is reported. A value that is identical (``is``) to that in
    ``known``, metadata that was decoded before, is kept.
    """
    unknown: list[str] = []
    if metadata is None:
        return Decoded({}, unknown)
    if type(metadata) is not dict:
        found = f"json: cannot unmarshal {json_type(metadata)} into Go"
        raise MetadataError(
            f"{found} value of type v1.ObjectMeta", f"{found} struct field {_KIND}.metadata of type v1.ObjectMeta"
        )
    new = _new(metadata, known) if known else metadata
    if not new or is_usual(new):
        return Decoded({**metadata}, unknown)
    decoded = {key: given for key, given in metadata.items() if key not in new}
    for key in sorted(new):
        field = _FIELDS.get(key)
        if field is None:
            unknown.append(f"metadata.{key}")
        elif (value := field(new[key], key, unknown)) is not None:
            decoded[key] = value
    return Decoded(decoded, unknown)


def _new(metadata: Metadata, known: Metadata) -> Metadata:
    """The fields that are not identical (``is``) in ``known``."""
    if metadata is known:
        return {}
    return {key: given for key, given in metadata.items() if given is not known.get(key, _ABSENT)}


def deduplicate_owner_references(metadata: Metadata, *, patched: bool = False) -> list[str]:
    """Removes duplicate owner references, and returns the warning about them.

    ``patched``: the object is the result of a patch, for which kube-apiserver has another text.
    """
    references = metadata.get("ownerReferences")
    if not references:
        return []
    # Decoded references have only texts and booleans, so equal ones have equal sets of fields.
    kept: dict[frozenset[tuple[str, Any]], Any] = {}
    repeated: list[str] = []
    for reference in references:
        identity = frozenset(reference.items())
        if identity in kept:
            repeated.append(reference["uid"])
        else:
            kept[identity] = reference
    if not repeated:
        return []
    metadata["ownerReferences"] = list(kept.values())
    when = " after mutating admission happens" if patched else ""
    warning = (
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
        "and may reject such requests as early as 1.24; please fix your requests; "
        f"duplicate UID(s) observed: {', '.join(repeated)}"
    )
    return [warning]


def _string(value: Any, path: str, _unknown: list[str], go_type: str = "string") -> str | None:
    if value is None:
        return None
    if type(value) is not str:
        raise _mismatch(value, path, go_type)
    return value or None


def _uid(value: Any, path: str, unknown: list[str]) -> str | None:
    return _string(value, path, unknown, "types.UID")


def _integer(value: Any, path: str, _unknown: list[str]) -> int | None:
    """An int64. Zero is kept: the Go field is a pointer."""
    if value is None:
        return None
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is int and value in _INT64:
        return value
    if type(value) in (int, float):
        raise _unlike(f"number {value}", path, "int64")
    raise _mismatch(value, path, "int64")


def _nonzero(value: Any, path: str, unknown: list[str]) -> int | None:
    return _integer(value, path, unknown) or None


def _time(value: Any, path: str, _unknown: list[str]) -> str | None:
    if value is None:
        return None
    if type(value) is not str and "." in path:
        raise _mismatch(value, path, "string")
    if type(value) is not str:
        found = f"json: cannot unmarshal {json_type(value)} into"
        raise MetadataError(
            f"{found} Go value of type string", f"{found} {_go_field(path, native=True)} of type string"
        )
    try:
        time = times.normalise(value)
    except ValueError as error:
        raise MetadataError(str(error)) from None
    return None if time == times.ZERO else time


def _boolean(value: Any, path: str, _unknown: list[str]) -> bool | None:
    if value is None or type(value) is bool:
        return value
    raise _mismatch(value, path, "bool")


def _string_map(value: Any, path: str, _unknown: list[str]) -> dict[str, str] | None:
    if value is None:
        return None
    if type(value) is not dict:
        raise _mismatch(value, path, "map[string]string")
    if _TEXT.issuperset(map(type, value.values())):
        return {**value} or None
    for item in value.values():
        if type(item) is not str and item is not None:
            raise _mismatch(item, path, "string")
    return {key: item or "" for key, item in value.items()} or None


def _strings(value: Any, path: str, _unknown: list[str]) -> list[str] | None:
    if value is None:
        return None
    if type(value) is not list:
        raise _mismatch(value, path, "[]string")
    for item in value:
        if type(item) is not str and item is not None:
            raise _mismatch(item, path, "string")
    return [item or "" for item in value] or None


def _owner_references(value: Any, path: str, unknown: list[str]) -> list[dict[str, Any]] | None:
    if value is None:
        return None
    if type(value) is not list:
        raise _mismatch(value, path, "[]v1.OwnerReference")
    return [_owner_reference(item, f"{path}[{index}]", unknown) for index, item in enumerate(value)] or None


def _owner_reference(value: Any, path: str, unknown: list[str]) -> dict[str, Any]:
    if value is not None and type(value) is not dict:
        raise _mismatch(value, "ownerReferences", "v1.OwnerReference")
    given = value or {}
    unknown.extend(f"metadata.{path}.{key}" for key in sorted(given) if key not in _OWNER_REFERENCE)
    decoded: dict[str, Any] = {"apiVersion": "", "kind": "", "name": "", "uid": ""}
    for key, field in _OWNER_REFERENCE.items():
        if key in given and (item := field(given[key], f"ownerReferences.{key}", unknown)) is not None:
            decoded[key] = item
    return decoded


def _managed_fields(value: Any, path: str, unknown: list[str]) -> list[dict[str, Any]] | None:
    """The entries by their types alone: ``fieldmanager`` interprets them."""
    if value is None:
        return None
    if type(value) is not list:
        raise _mismatch(value, path, "[]v1.ManagedFieldsEntry")
    return [_managed_fields_entry(item, f"{path}[{index}]", unknown) for index, item in enumerate(value)] or None


def _managed_fields_entry(value: Any, path: str, unknown: list[str]) -> dict[str, Any]:
    if value is not None and type(value) is not dict:
        raise _mismatch(value, "managedFields", "v1.ManagedFieldsEntry")
    given = value or {}
    if not given.keys() <= _MANAGED_FIELDS_ENTRY.keys():
        unknown.extend(f"metadata.{path}.{key}" for key in sorted(given) if key not in _MANAGED_FIELDS_ENTRY)
    return {
        key: item
        for key, path_of_field, field in _ENTRY_FIELDS
        if key in given and (item := field(given[key], path_of_field, unknown)) is not None
    }


def _operation(value: Any, path: str, unknown: list[str]) -> str | None:
    return _string(value, path, unknown, "v1.ManagedFieldsOperationType")


def _anything(value: Any, _path: str, _unknown: list[str]) -> Any:
    return value


_OWNER_REFERENCE: dict[str, Decode] = {
    "apiVersion": _string,
    "kind": _string,
    "name": _string,
    "uid": _uid,
    "controller": _boolean,
    "blockOwnerDeletion": _boolean,
}
"""In the order in which Go shows them in messages."""

_MANAGED_FIELDS_ENTRY: dict[str, Decode] = {
    "apiVersion": _string,
    "fieldsType": _string,
    "fieldsV1": _anything,
    "manager": _string,
    "operation": _operation,
    "subresource": _string,
    "time": _time,
}

_ENTRY_FIELDS = tuple((key, f"managedFields.{key}", field) for key, field in _MANAGED_FIELDS_ENTRY.items())

_FIELDS: dict[str, Decode] = {
    "annotations": _string_map,
    # Gone from Kubernetes; kept here so that validation can refuse it by name.
    "clusterName": _string,
    "creationTimestamp": _time,
    "deletionGracePeriodSeconds": _integer,
    "deletionTimestamp": _time,
    "finalizers": _strings,
    "generateName": _string,
    "generation": _nonzero,
    "labels": _string_map,
    "managedFields": _managed_fields,
    "name": _string,
    "namespace": _string,
    "ownerReferences": _owner_references,
    "resourceVersion": _string,
    "selfLink": _string,
    "uid": _uid,
}


_STRUCTS = {"ownerReferences": "OwnerReference", "managedFields": "ManagedFieldsEntry"}


def _mismatch(value: Any, path: str, go_type: str) -> MetadataError:
    return _unlike(json_type(value), path, go_type)


def _unlike(found: str, path: str, go_type: str) -> MetadataError:
    start, end = f"json: cannot unmarshal {found} into", f"of type {go_type}"
    return MetadataError(f"{start} {_go_field(path)} {end}", f"{start} {_go_field(path, native=True)} {end}")


def _go_field(path: str, *, native: bool = False) -> str:
    """A nested field is named by the struct that holds it and its path from the top: so does encoding/json."""
    struct = _STRUCTS.get(path.partition(".")[0], "ObjectMeta") if "." in path else "ObjectMeta"
    return f"Go struct field {struct}.{'metadata.' if native else ''}{path}"
