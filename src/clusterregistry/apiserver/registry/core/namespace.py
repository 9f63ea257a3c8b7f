"""The resource Namespace: strategies, rules of deletion and printed columns.

A namespace is deleted in steps: a delete marks it Terminating, a controller removes what is in it and takes the
finalizer ``kubernetes`` from its spec through ``finalize``, and with the last finalizer the namespace goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.api.core import GROUP
from clusterregistry.api.core.v1 import VERSION
from clusterregistry.api.core.v1.defaults import set_namespace_defaults
from clusterregistry.api.core.v1.types import ACTIVE, FINALIZER_KUBERNETES, NAMESPACE, NAMESPACE_KIND, TERMINATING
from clusterregistry.api.core.v1.validation import (
    validate_namespace,
    validate_namespace_finalizers,
    validate_namespace_status,
)
from clusterregistry.apimachinery.meta import object_meta_validation
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import LABELS
from clusterregistry.apimachinery.schema import native
from clusterregistry.apiserver.registry.columns import field_cell, name_column
from clusterregistry.apiserver.registry.resource import Column, Resource, Subresource, Version
from clusterregistry.apiserver.registry.strategy import Object

NAMESPACES = "namespaces"
PERMANENT = ("default", "kube-system", "kube-public")
"""The namespaces that always exist."""

_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
_decode_struct = native.decoder(NAMESPACE, kind=NAMESPACE_KIND)


def namespace_resource() -> Resource:
    phase, created = field_cell("status", "phase"), field_cell("metadata", "creationTimestamp")
    columns = (
        name_column("The name of the namespace. It cannot be changed."),
        Column(name="Status", type="string", cell=lambda obj: phase(obj) or "", description="Active or Terminating."),
        Column(name="Age", type="string", is_age=True, cell=created, description="When the namespace was created."),
    )
    return Resource(
        group=GROUP,
        kind=NAMESPACE_KIND,
        plural=NAMESPACES,
        singular="namespace",
        short_names=("ns",),
        versions=(Version(name=VERSION, schema=NAMESPACE, columns=columns, decode=_decode),),
        storage_version=VERSION,
        strategy=NamespaceStrategy(),
        subresources={
            "finalize": Subresource(strategy=FinalizeStrategy(), verbs=("update",)),
            "status": Subresource(strategy=NamespaceStatusStrategy()),
        },
        verbs=_VERBS,
        names=LABELS,
        native=True,
        validates_metadata=True,
        check_delete=check_delete,
        deletion=NamespaceDeletion(),
        selectable_fields={"name": _name, "status.phase": lambda obj: phase(obj) or ""},
        default_roles=(),
        read_your_writes=True,
    )


def _decode(obj: Object) -> list[str]:
    unknown = _decode_struct(obj)
    set_namespace_defaults(obj)
    return unknown


def _name(obj: Object) -> str:
    """The name under a second label, which old clients use."""
    name: str = obj["metadata"]["name"]
    return name


class NamespaceStrategy:
    """The client owns the metadata alone, but for the finalizers of a new namespace."""

    allow_create_on_update = False
    allow_unconditional_update = True
    reset_fields = frozenset(("status",))

    def prepare_for_create(self, obj: Object) -> None:
        _decode(obj)  # an applied object has not been decoded yet, and a generated name is not in its label
        finalizers = obj["spec"].get("finalizers", [])
        if FINALIZER_KUBERNETES not in finalizers:
            obj["spec"] = {"finalizers": [*finalizers, FINALIZER_KUBERNETES]}
        obj["status"] = {"phase": ACTIVE}

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        _decode(obj)
        obj["spec"], obj["status"] = old["spec"], old["status"]

    def validate(self, obj: Object) -> list[FieldError]:
        metadata = obj["metadata"]
        return [
            *object_meta_validation.validate_create(metadata, LABELS),
            *object_meta_validation.validate_qualified_finalizers(metadata),
            *validate_namespace(obj),
        ]

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        metadata = obj["metadata"]
        whole, _ = object_meta_validation.validate_update(metadata, old["metadata"], LABELS)
        finalizers = object_meta_validation.validate_qualified_finalizers(metadata)
        return [*whole, *finalizers, *validate_namespace(obj), *_metadata_change_errors(obj, old)]

    def warnings(self, _obj: Object, _old: Object | None) -> Sequence[str]:
        return ()


class NamespaceStatusStrategy(NamespaceStrategy):
    """The strategy of ``status``: all but the spec may change."""

    reset_fields = frozenset(("spec",))

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        _decode(obj)
        obj["spec"] = old["spec"]

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return [*_metadata_change_errors(obj, old), *validate_namespace_status(obj)]


class FinalizeStrategy(NamespaceStrategy):
    """The strategy of ``finalize``: all but the status may change."""

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        _decode(obj)
        obj["status"] = old["status"]

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return [*_metadata_change_errors(obj, old), *validate_namespace_finalizers(obj)]


def _metadata_change_errors(obj: Object, old: Object) -> list[FieldError]:
    metadata = obj["metadata"]
    changed = object_meta_validation.validate_update(metadata, old["metadata"], LABELS).change
    return changed + object_meta_validation.validate_qualified_finalizers(metadata)


def check_delete(obj: Object) -> str:
    """Some namespaces stay."""
    return "this namespace may not be deleted" if obj["metadata"]["name"] in PERMANENT else ""


class NamespaceDeletion:
    """The finalizers in the spec hold a deleted namespace."""

    def is_held(self, obj: Object) -> bool:
        return bool(obj["spec"].get("finalizers"))

    def mark_deleted(self, obj: Object) -> None:
        obj["status"] = {**obj["status"], "phase": TERMINATING}
