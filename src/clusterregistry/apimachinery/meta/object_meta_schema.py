"""The schema of ``metadata``, and of whole objects."""

from __future__ import annotations

from dataclasses import replace

from clusterregistry.apimachinery.schema.schemas import Array, Boolean, Integer, Map, Object, Schema, String


def _text(description: str) -> String:
    return String(description=description)


OWNER_REFERENCE = Object(
    description="An object that another depends on.",
    atomic=True,
    fields={
        "apiVersion": _text("The group and version of the owner."),
        "kind": _text("The kind of the owner."),
        "name": _text("The name of the owner."),
        "uid": String(default="", description="The identity of the owner."),
        "controller": Boolean(description="Whether the owner is the one that manages the object."),
        "blockOwnerDeletion": Boolean(description="Whether the owner stays, in foreground deletion, until this goes."),
    },
    required=("apiVersion", "kind", "name", "uid"),
)

OWNER_REFERENCES = Array(
    items=OWNER_REFERENCE,
    list_type="map",
    map_keys=("uid",),
    description="The objects that this one depends on.",
)

MANAGED_FIELDS_ENTRY = Object(
    description="The fields that one manager has set in one way.",
    fields={
        "manager": _text("The name of the manager."),
        "operation": _text("Apply or Update."),
        "apiVersion": _text("The version in which the fields are named."),
        "time": String(format="date-time", description="When the manager last changed a field."),
        "fieldsType": _text("The format of the fields: FieldsV1."),
        "fieldsV1": Object(description="A set of fields, as a tree of their names.", fields={}),
        "subresource": _text("The subresource through which they were set; empty for the object itself."),
    },
)

MANAGED_FIELDS = Array(
    items=MANAGED_FIELDS_ENTRY, description="Which fields which manager has set; kept by the server."
)

OBJECT_META = Object(
    description="What every object has besides its kind's own fields.",
    fields={
        "name": _text("The name, unique among the objects of a kind. It cannot change."),
        "generateName": _text("A prefix from which the server makes a unique name when none is given."),
        "namespace": _text("The namespace. Objects of root-scoped kinds have none."),
        "labels": Map(values=String(), description="Keys and values to select objects by."),
        "annotations": Map(values=String(), description="Keys and values for tools and people, not for selection."),
        "uid": _text("The identity of this object, set by the server; never used twice."),
        "resourceVersion": _text("The state of the object, opaque to clients: for conflict detection and watches."),
        "generation": Integer(description="Counts the changes of what is wanted; set by the server."),
        "creationTimestamp": String(format="date-time", description="When the object was created; set by the server."),
        "deletionTimestamp": String(
            format="date-time", description="When deletion was asked for; the object goes when no finalizer is left."
        ),
        "deletionGracePeriodSeconds": Integer(description="Seconds for a graceful end; set with deletionTimestamp."),
        "finalizers": Array(
            items=String(),
            list_type="set",
            description="What must be done, each by its own controller, before the object may go.",
        ),
        "ownerReferences": OWNER_REFERENCES,
        "managedFields": MANAGED_FIELDS,
        "selfLink": _text("No longer set by any server."),
    },
)


def whole_object(schema: Object) -> Object:
    """The schema of a kind's whole objects, with ``apiVersion``, ``kind`` and ``metadata``."""
    # Gone from Kubernetes; known here so that validation can refuse it by name.
    metadata = replace(OBJECT_META, fields={**OBJECT_META.fields, "clusterName": String()})
    common: dict[str, Schema] = {"apiVersion": String(), "kind": String(), "metadata": metadata}
    return Object(fields=common | dict(schema.fields))
