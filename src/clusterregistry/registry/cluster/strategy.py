"""The strategy of clusters: what the schema cannot say of a spec, and the secret lint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from clusterregistry.api.clusterregistry.v1alpha1.defaults import set_defaults
from clusterregistry.api.clusterregistry.v1alpha1.types import CLUSTER
from clusterregistry.api.clusterregistry.v1alpha1.validation import validate_spec, validate_spec_update
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.apiserver.registry.structural_strategy import SpecStrategy
from clusterregistry.registry.cluster import secret_lint as lint

SecretLint = Literal["warn", "reject", "off"]


class ClusterStrategy(SpecStrategy):
    """Status writes have no lint: heartbeats are the most frequent writes of all."""

    def __init__(self, secret_lint: SecretLint) -> None:
        super().__init__(CLUSTER)
        self._lint = secret_lint

    def set_defaults(self, obj: Object) -> None:
        set_defaults(obj)

    def validate_object(self, obj: Object, old: Object | None) -> list[FieldError]:
        errors: list[FieldError] = []
        if old is None:
            errors += validate_spec(obj)
        elif obj.get("spec") != old.get("spec"):
            errors += validate_spec_update(obj, old) + validate_spec(obj, old)
        return errors + lint.errors(self._findings(obj, old)) if self._lint == "reject" else errors

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:
        return lint.warnings(self._findings(obj, old)) if self._lint == "warn" else ()

    def _findings(self, obj: Object, old: Object | None) -> list[lint.Finding]:
        before: Object = old or {}
        metadata, metadata_before = _map(obj.get("metadata")), _map(before.get("metadata"))
        return lint.inspect(
            spec=_changed(obj.get("spec"), before.get("spec")),
            labels=_changed(metadata.get("labels"), metadata_before.get("labels")),
            annotations=_changed(metadata.get("annotations"), metadata_before.get("annotations")),
        )


def _changed(value: Any, before: Any) -> Any:
    """The entries of a value that the client has changed; the others are not held against it."""
    if value == before:
        return None
    if not before or type(before) is not dict or type(value) is not dict:
        return value
    return {key: item for key, item in value.items() if item != before.get(key)}


def _map(value: Any) -> Object:
    return value if isinstance(value, dict) else {}
