"""The rules that objects of every kind follow when they are created and updated.

The counterpart of ``BeforeCreate`` and ``BeforeUpdate`` in k8s.io/apiserver's ``registry/rest``: metadata that only the
server sets, the generation, and the validation of metadata. Each function applies the rules of all kinds and those of
the kind's ``Strategy``. ``deletion`` has the rules of a delete.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clusterregistry.apimachinery.fieldmanager.managed_fields import differ_only_in_time
from clusterregistry.apimachinery.meta import object_meta_validation
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import PATH_SEGMENTS
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.strategy import Strategy
from clusterregistry.apiserver.registry.uid import new_uid

Object = dict[str, Any]


def prepare_for_create(resource: Resource, obj: Object, *, now: str) -> None:
    """Sets the metadata that the server decides, and drops what a client cannot set."""
    metadata = obj["metadata"]
    for field in ("selfLink", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(field, None)
    if not resource.namespaced:
        metadata.pop("namespace", None)
    metadata["uid"] = new_uid()
    metadata["creationTimestamp"] = now
    if not resource.native:
        metadata["generation"] = 1
    resource.strategy.prepare_for_create(obj)


def validate_create(resource: Resource, strategy: Strategy, obj: Object) -> list[FieldError]:
    metadata = obj["metadata"]
    if resource.validates_metadata:
        # As in kube-apiserver: the rules of all kinds are checked last, so that those of the kind have their say.
        return strategy.validate(obj) or object_meta_validation.validate_create(
            metadata, PATH_SEGMENTS, namespaced=resource.namespaced
        )
    common = object_meta_validation.validate_create(metadata, resource.names, namespaced=resource.namespaced)
    return common + _finalizer_errors(resource, metadata) + strategy.validate(obj)


def prepare_for_update(resource: Resource, strategy: Strategy, *, obj: Object, old: Object) -> None:
    """Takes the metadata that the server decides from ``old``, and counts the generation."""
    metadata, before = obj["metadata"], old["metadata"]
    for field in ("selfLink", "resourceVersion"):
        metadata.pop(field, None)
    if resource.namespaced:
        metadata.setdefault("namespace", before["namespace"])
    else:
        metadata.pop("namespace", None)
    for field in ("creationTimestamp", "generation", "deletionTimestamp"):
        if field in before:
            metadata[field] = before[field]
    for field in ("uid", "deletionGracePeriodSeconds"):
        if field in before:
            metadata.setdefault(field, before[field])
    strategy.prepare_for_update(obj, old)
    if not resource.native and _desired_state(obj) != _desired_state(old):
        obj["metadata"]["generation"] = before.get("generation", 0) + 1


def validate_update(resource: Resource, strategy: Strategy, *, obj: Object, old: Object) -> list[FieldError]:
    """As in kube-apiserver: registry and strategy both validate metadata, so the answer has its causes twice."""
    metadata = obj["metadata"]
    common, changed = object_meta_validation.validate_update(
        metadata, old["metadata"], resource.names, namespaced=resource.namespaced
    )
    particular = strategy.validate_update(obj, old)
    if resource.validates_metadata:
        return common + changed + particular
    if not resource.native:
        return common + changed + changed + particular
    finalizers = _finalizer_errors(resource, metadata)
    return common + changed + common + finalizers + particular + changed + finalizers


def warnings(resource: Resource, strategy: Strategy, *, obj: Object, old: Object | None) -> Iterator[str]:
    """The warnings of an accepted create (``old`` is None) or update."""
    if not resource.native:
        yield from object_meta_validation.finalizer_warnings(obj["metadata"], old and old["metadata"])
    yield from strategy.warnings(obj, old)


def keep_idle_times(obj: Object, old: Object) -> None:
    """Takes the managed fields from ``old`` if only their times differ: then the update changes nothing."""
    # Nearly every write changes something, and comparing the objects finds that sooner than comparing the times.
    metadata, before = obj["metadata"], old["metadata"]
    if obj != {**old, "metadata": metadata}:
        return
    kept = {name: before[name] for name in ("managedFields", "resourceVersion") if name in before}
    if {**metadata, **kept} == before and differ_only_in_time(
        metadata.get("managedFields"), before.get("managedFields")
    ):
        metadata["managedFields"] = before["managedFields"]


def _finalizer_errors(resource: Resource, metadata: Object) -> list[FieldError]:
    return object_meta_validation.validate_qualified_finalizers(metadata) if resource.native else []


def _desired_state(obj: Object) -> Object:
    """The parts that count for the generation: all but metadata and status."""
    return {**obj, "metadata": None, "status": None}
