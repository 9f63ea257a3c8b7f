"""How clusters are created and updated, through the main resource and through ``/status``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from clusterregistry.api.clusterregistry.v1alpha1.defaults import set_defaults
from clusterregistry.api.clusterregistry.v1alpha1.types import CLUSTER
from clusterregistry.api.clusterregistry.v1alpha1.validation import validate_spec, validate_spec_update
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.registry.cluster import secret_lint as lint

SecretLint = Literal["warn", "reject", "off"]

_STRUCTURAL = Structural(CLUSTER)


class ClusterStrategy:
    """The rules of the main resource: the spec is the client's, the status is kept as it was."""

    allow_create_on_update = True
    allow_unconditional_update = True
    reset_fields = frozenset(("status",))

    def __init__(self, secret_lint: SecretLint) -> None:
        self._lint = secret_lint

    def prepare_for_create(self, obj: Object) -> None:
        obj.pop("status", None)
        set_defaults(obj)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        if "status" in old:
            obj["status"] = old["status"]
        else:
            obj.pop("status", None)
        set_defaults(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return _STRUCTURAL.validate(obj) + validate_spec(obj) + self._rejected(obj, None)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        # What did not change is not held against the client: rules may have become stricter since.
        errors = _STRUCTURAL.validate(obj, old)
        if obj.get("spec") != old.get("spec"):
            errors += validate_spec_update(obj, old) + validate_spec(obj, old)
        return errors + self._rejected(obj, old)

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:
        return lint.warnings(self._findings(obj, old)) if self._lint == "warn" else ()

    def _rejected(self, obj: Object, old: Object | None) -> list[FieldError]:
        return lint.errors(self._findings(obj, old)) if self._lint == "reject" else []

    def _findings(self, obj: Object, old: Object | None) -> list[lint.Finding]:
        before: Object = old or {}
        metadata, metadata_before = _map(obj.get("metadata")), _map(before.get("metadata"))
        return lint.inspect(
            spec=_changed(obj.get("spec"), before.get("spec")),
            labels=_changed(metadata.get("labels"), metadata_before.get("labels")),
            annotations=_changed(metadata.get("annotations"), metadata_before.get("annotations")),
        )


class ClusterStatusStrategy:
    """The rules of ``/status``: the status is the client's, all else is kept as it was."""

    allow_create_on_update = False
    allow_unconditional_update = True
    reset_fields = frozenset(("metadata", "spec"))

    def prepare_for_create(self, obj: Object) -> None:
        """Nothing is created here; an object that were would be empty of status, as on the main resource."""
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
        return _STRUCTURAL.validate(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return _STRUCTURAL.validate_part("status", obj.get("status"), old.get("status"))

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:  # noqa: ARG002 - the port's signature
        """None. No credentials are looked for either: heartbeats are the most frequent writes of all."""
        return ()


def _merged_metadata(metadata: Any, old: Object) -> Object:
    """The old metadata, but for what the request itself is about: its precondition and who manages what."""
    given, merged = _map(metadata), {**old}
    for key in ("resourceVersion", "managedFields"):
        if key in given:
            merged[key] = given[key]
        else:
            merged.pop(key, None)
    return merged


def _changed(value: Any, before: Any) -> Any:
    """What of a value the client has changed, by its entries; the rest is not held against it."""
    if value == before:
        return None
    if not before or type(before) is not dict or type(value) is not dict:
        return value
    return {key: item for key, item in value.items() if item != before.get(key)}


def _map(value: Any) -> Object:
    return value if isinstance(value, dict) else {}
