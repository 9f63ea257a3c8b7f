"""The strategies of clusters: what the schema cannot say of a spec, the secret lint, and writes in v1beta1.

Objects are in the storage version, v1alpha1. A write in v1beta1 is validated in the form that its client sees, so that
errors name the fields of v1beta1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from clusterregistry.api.clusterregistry import secret_lint as lint
from clusterregistry.api.clusterregistry.v1alpha1.defaults import set_defaults
from clusterregistry.api.clusterregistry.v1alpha1.types import CLUSTER
from clusterregistry.api.clusterregistry.v1alpha1.validation import validate_spec, validate_spec_update
from clusterregistry.api.clusterregistry.v1beta1 import conversion
from clusterregistry.api.clusterregistry.v1beta1.conversion import (
    GENERATIONS_KEY,
    KEYS,
    LOCATION_KEY,
    annotations_of,
    from_v1alpha1,
)
from clusterregistry.api.clusterregistry.v1beta1.types import STORED_CLUSTER
from clusterregistry.api.clusterregistry.v1beta1.validation import validate_conditions, validate_location
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.schema import schemas
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.apiserver.registry.structural_strategy import SpecStrategy, StatusStrategy

SecretLint = Literal["warn", "reject", "off"]


class ClusterStrategy(SpecStrategy):
    """Status writes have no lint: heartbeats are the most frequent writes of all."""

    def __init__(self, secret_lint: SecretLint, *, schema: schemas.Object = CLUSTER) -> None:
        super().__init__(schema)
        self._lint = secret_lint

    def set_defaults(self, obj: Object) -> None:
        set_defaults(obj)

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        if not KEYS.isdisjoint(annotations_of(obj)):
            conversion.set_observed_generations(obj, None)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        super().prepare_for_update(obj, old)
        now, before = annotations_of(obj), annotations_of(old)
        if now is not before and now.get(LOCATION_KEY) != before.get(LOCATION_KEY):
            # The annotation is a part of the spec, in v1beta1: the generation counts its changes.
            obj["metadata"] = {**obj["metadata"], "generation": old["metadata"].get("generation", 0) + 1}

    def validate_object(self, obj: Object, old: Object | None) -> list[FieldError]:
        annotations, errors = annotations_of(obj), self.validate_spec(obj, old)
        if not KEYS.isdisjoint(annotations):
            errors = conversion.annotation_errors(annotations, annotations_of(old or {})) + errors
        return errors + lint.errors(self._findings(obj, old)) if self._lint == "reject" else errors

    def validate_spec(self, obj: Object, old: Object | None) -> list[FieldError]:
        """The errors in the spec that the schema does not find; an unchanged spec is not held against the client."""
        if old is None:
            return validate_spec(obj)
        if obj.get("spec") == old.get("spec"):
            return []
        return validate_spec_update(obj, old) + validate_spec(obj, old)

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


class V1Beta1Strategy(ClusterStrategy):
    """Writes in v1beta1: what v1beta1 does not show stays as it is stored."""

    def __init__(self, secret_lint: SecretLint) -> None:
        super().__init__(secret_lint, schema=STORED_CLUSTER)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        conversion.set_observed_generations(obj, annotations_of(old).get(GENERATIONS_KEY))
        conversion.keep_unseen(obj, old)
        super().prepare_for_update(obj, old)

    def validate(self, obj: Object) -> list[FieldError]:
        return super().validate(from_v1alpha1(obj))

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return super().validate_update(from_v1alpha1(obj), from_v1alpha1(old))

    def validate_spec(self, obj: Object, old: Object | None) -> list[FieldError]:
        location, before = _location(obj), _location(old)
        errors = [] if location == before else validate_location(location)
        return errors + super().validate_spec(obj, old)

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:
        return super().warnings(from_v1alpha1(obj), old and from_v1alpha1(old))


class V1Beta1StatusStrategy(StatusStrategy):
    """Writes of the status in v1beta1."""

    def __init__(self) -> None:
        super().__init__(STORED_CLUSTER)

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        generations = annotations_of(obj).get(GENERATIONS_KEY)
        super().prepare_for_update(obj, old)
        conversion.set_observed_generations(obj, generations)
        conversion.keep_unseen(obj, old)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        seen, before = from_v1alpha1(obj), from_v1alpha1(old)
        now, then = _map(seen.get("status")).get("conditions"), _map(before.get("status")).get("conditions")
        return super().validate_update(seen, before) + validate_conditions(now, then)


def _location(cluster: Object | None) -> Any:
    return _map((cluster or {}).get("spec")).get("location")


def _changed(value: Any, before: Any) -> Any:
    """The entries of a value that the client has changed; the others are not held against it."""
    if value == before:
        return None
    if not before or type(before) is not dict or type(value) is not dict:
        return value
    return {key: item for key, item in value.items() if item != before.get(key)}


def _map(value: Any) -> Object:
    return value if isinstance(value, dict) else {}
