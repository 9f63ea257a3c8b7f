"""Strategies of custom resources: the schema validates, the main resource owns the spec, ``/status`` the status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.registry.strategy import Object


class SpecStrategy:
    """The strategy of a main resource: the spec is the client's, and the status is kept as it was.

    A kind overrides ``set_defaults``, ``validate_object`` and ``warnings`` as it needs. Without a status in its schema
    there is nothing to keep.
    """

    allow_create_on_update = True
    allow_unconditional_update = True

    def __init__(self, schema: schemas.Object) -> None:
        self._structural = Structural(schema)
        self.reset_fields = frozenset({"status"} & schema.fields.keys())

    def set_defaults(self, obj: Object) -> None:
        """Fills in, in place, what a client left out."""

    def validate_object(self, obj: Object, old: Object | None) -> list[FieldError]:  # noqa: ARG002 - for subclasses
        """Everything that the schema lets through and that is still wrong; ``old`` is None for a new object."""
        return []

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:  # noqa: ARG002 - for subclasses
        return ()

    def prepare_for_create(self, obj: Object) -> None:
        obj.pop("status", None)
        self.set_defaults(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        if "status" in old:
            obj["status"] = old["status"]
        else:
            obj.pop("status", None)
        self.set_defaults(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return self._structural.validate(obj) + self.validate_object(obj, None)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        # What did not change is not held against the client: rules may have become stricter since.
        return self._structural.validate(obj, old) + self.validate_object(obj, old)


class StatusStrategy:
    """The strategy of ``/status``: the status is the client's, and all else is kept as it was."""

    allow_create_on_update = False
    allow_unconditional_update = True
    reset_fields = frozenset(("metadata", "spec"))

    def __init__(self, schema: schemas.Object) -> None:
        self._structural = Structural(schema)

    def prepare_for_create(self, obj: Object) -> None:
        """Drops the status, as the main resource does. No request creates an object here."""
        obj.pop("status", None)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        kept = {**old, "metadata": _merged_metadata(obj.get("metadata"), old.get("metadata", {}))}
        if "status" in obj:
            kept["status"] = obj["status"]
        else:
            kept.pop("status", None)
        obj.clear()
        obj.update(kept)

    def validate(self, obj: Object) -> list[FieldError]:
        return self._structural.validate(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return self._structural.validate_part("status", obj.get("status"), old.get("status"))

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:  # noqa: ARG002 - the port's signature
        return ()


def _merged_metadata(metadata: Any, old: Object) -> Object:
    """The old metadata with the precondition and the managed fields of the request."""
    given, merged = metadata if isinstance(metadata, dict) else {}, {**old}
    for key in ("resourceVersion", "managedFields"):
        if key in given:
            merged[key] = given[key]
        else:
            merged.pop(key, None)
    return merged
