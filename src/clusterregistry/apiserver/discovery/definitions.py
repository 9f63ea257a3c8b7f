"""The types that all kinds share, under the names that Kubernetes gives them.

Clients find ``ObjectMeta`` and ``DeleteOptions`` by these names; the descriptions are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterregistry.apimachinery.meta.object_meta_schema import (
    MANAGED_FIELDS,
    MANAGED_FIELDS_ENTRY,
    OBJECT_META,
    OWNER_REFERENCE,
    OWNER_REFERENCES,
)
from clusterregistry.apimachinery.schema.schemas import Array, Boolean, Integer, Map, Object, Schema, String
from clusterregistry.apiserver.registry.resource import Definition, Version

META_PREFIX = "io.k8s.apimachinery.pkg.apis.meta.v1."

_CORE_PREFIX = "io.k8s.api.core.v1."

_SHARED = {
    "LabelSelector": META_PREFIX,
    "LabelSelectorRequirement": META_PREFIX,
    "FieldSelectorRequirement": META_PREFIX,
    "ObjectReference": _CORE_PREFIX,
    "EventSource": _CORE_PREFIX,
}
"""Structs below native kinds that are not of the kind's own group, with the names of their packages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference(Schema):
    """A schema of that name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A group, version and kind: which objects a schema or operation is about."""

    group: str
    version: str
    kind: str

    def wire(self) -> dict[str, str]:
        return {"group": self.group, "kind": self.kind, "version": self.version}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSchema:
    """A schema, and the kinds of the objects that it describes."""

    schema: Schema
    kinds: Sequence[Kind] = ()


NamedSchemas = Mapping[str, NamedSchema]


def meta(name: str, description: str = "") -> Reference:
    """A reference to a type that all kinds share."""
    return Reference(name=META_PREFIX + name, description=description)


def schema_name(resource: Definition, version: Version, kind: str) -> str:
    """As kube-apiserver names them: a custom resource by its group's parts reversed, a native kind by its package."""
    parts = (resource.group_of(version) or "core").split(".")
    package = ["io", "k8s", "api", parts[0]] if resource.native else reversed(parts)
    return ".".join([*package, version.name, kind])


def kind_of(resource: Definition, version: Version) -> Kind:
    return Kind(group=resource.group_of(version), version=version.name, kind=resource.kind)


def list_kind_of(resource: Definition, version: Version) -> Kind:
    return Kind(group=resource.group_of(version), version=version.name, kind=resource.list_kind)


def view_schema_name(resource: Definition, version: Version, name: str) -> str:
    """The name of the schema of a view."""
    return schema_name(resource, version, resource.kind + name.capitalize())


def of_resource(resource: Definition, version: Version) -> dict[str, NamedSchema]:
    """The kind, its list and its views."""
    kind, list_kind = kind_of(resource, version), list_kind_of(resource, version)
    name, list_name = (schema_name(resource, version, each.kind) for each in (kind, list_kind))
    below = _Structs(resource, version)
    schema = below.with_references(version.schema)
    views = {
        view_schema_name(resource, version, part): NamedSchema(
            schema=view.schema, kinds=(Kind(group=view.group, version=view.version, kind=view.kind),)
        )
        for part, view in resource.views.items()
    }
    return (
        below.named
        | views
        | {
            name: NamedSchema(schema=_whole_object(schema), kinds=(kind,)),
            list_name: NamedSchema(schema=_list(name, kind), kinds=(list_kind,)),
        }
    )


class _Structs:
    """The structs below a kind that have names of their own. Those of custom resources have none.

    The description of a struct is that of its field: kubectl shows nothing else in a list of fields. An item of a list
    keeps its own description, since the field has one already.
    """

    def __init__(self, resource: Definition, version: Version) -> None:
        self._resource, self._version = resource, version
        self.named: dict[str, NamedSchema] = {}

    def with_references(self, schema: Object) -> Object:
        """The schema with references in the places of these structs, all the way down."""
        return replace(schema, fields={name: self._field(field) for name, field in schema.fields.items()})

    def _field(self, schema: Schema) -> Schema:
        if not isinstance(schema, Object) or not schema.type_name:
            return self._inner(schema)
        return replace(self._reference(replace(schema, description="")), description=schema.description)

    def _inner(self, schema: Schema) -> Schema:
        match schema:
            case Array():
                return replace(schema, items=self._inner(schema.items))
            case Map():
                return replace(schema, values=self._inner(schema.values))
            case Object():
                return self._reference(schema) if schema.type_name else self.with_references(schema)
        return schema

    def _reference(self, schema: Object) -> Reference:
        struct = schema.type_name.rpartition(".")[2]
        package = _SHARED.get(struct)
        name = package + struct if package else schema_name(self._resource, self._version, struct)
        self.named[name] = NamedSchema(schema=self.with_references(schema))
        return Reference(name=name)


def reachable(roots: Sequence[str], schemas: NamedSchemas) -> dict[str, NamedSchema]:
    """The named schemas that the roots need, themselves included."""
    found: dict[str, NamedSchema] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = schemas[name]
            waiting.extend(_references(schemas[name].schema))
    return found


def _references(schema: Schema) -> Iterator[str]:
    match schema:
        case Reference(name=name):
            yield name
        case Array(items=inner) | Map(values=inner):
            yield from _references(inner)
        case Object(fields=fields):
            for field in fields.values():
                yield from _references(field)


def _whole_object(schema: Object) -> Object:
    fields: dict[str, Schema] = {
        "apiVersion": String(description="The group and version of the schema that this object follows."),
        "kind": String(description="The kind of this object, in CamelCase."),
        "metadata": meta("ObjectMeta", "What all objects have: name, labels, annotations and what the server adds."),
    }
    return Object(
        description=schema.description,
        fields=fields | dict(schema.fields),
        required=schema.required,
        old_spellings=schema.old_spellings,
    )


def _list(name: str, kind: Kind) -> Object:
    fields: dict[str, Schema] = {
        "apiVersion": String(description="The group and version of the schema that this list follows."),
        "kind": String(description="The kind of this list, in CamelCase."),
        "metadata": meta("ListMeta", "The resource version of the list and where it continues."),
        "items": Array(items=Reference(name=name), description="The objects."),
    }
    return Object(description=f"A list of objects of kind {kind.kind}.", fields=fields, required=("items",))


VERSION_INFO = "io.k8s.apimachinery.pkg.version.Info"


def meta_types(group_versions: Sequence[tuple[str, str]]) -> dict[str, NamedSchema]:
    """All of them, by name. Every served group version has its own kind of DeleteOptions, as in Kubernetes."""
    kinds = {
        "DeleteOptions": [_core("DeleteOptions")]
        + [Kind(group=group, version=version, kind="DeleteOptions") for group, version in group_versions],
    } | {name: [_core(name)] for name in ("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList")}
    types = {name: NamedSchema(schema=schema, kinds=kinds.get(name, ())) for name, schema in _TYPES.items()}
    return {META_PREFIX + name: named for name, named in types.items()} | {
        VERSION_INFO: NamedSchema(schema=_VERSION_INFO)
    }


def _core(kind: str) -> Kind:
    return Kind(group="", version="v1", kind=kind)


def _text(description: str) -> String:
    return String(description=description)


def _typed(what: str, fields: dict[str, Schema], *, required: tuple[str, ...] = ()) -> Object:
    """A type that is sent on its own, so with apiVersion and kind."""
    own: dict[str, Schema] = {
        "apiVersion": _text("The group and version of the schema that this object follows."),
        "kind": _text("The kind of this object, in CamelCase."),
    }
    return Object(description=what, fields=own | fields, required=required)


_OBJECT_META = replace(
    OBJECT_META,
    fields={
        **OBJECT_META.fields,
        "creationTimestamp": meta("Time", OBJECT_META.fields["creationTimestamp"].description),
        "deletionTimestamp": meta("Time", OBJECT_META.fields["deletionTimestamp"].description),
        "ownerReferences": replace(OWNER_REFERENCES, items=meta("OwnerReference")),
        "managedFields": replace(MANAGED_FIELDS, items=meta("ManagedFieldsEntry")),
    },
)
"""The same type, with references where Kubernetes has names for what is below."""

_LIST_META = Object(
    description="What every list has besides its items.",
    fields={
        "resourceVersion": _text("The state that the list shows; a watch can start from it."),
        "continue": _text("Where the next page starts; empty on the last one."),
        "remainingItemCount": Integer(description="How many items follow this page, where that is known."),
        "selfLink": _text("No longer set by any server."),
    },
)

_MANAGED_FIELDS_ENTRY = replace(
    MANAGED_FIELDS_ENTRY,
    fields={
        **MANAGED_FIELDS_ENTRY.fields,
        "time": meta("Time", MANAGED_FIELDS_ENTRY.fields["time"].description),
        "fieldsV1": meta("FieldsV1", "The fields."),
    },
)

_STATUS = _typed(
    "The outcome of a request that answers with no object.",
    {
        "metadata": meta("ListMeta", "Empty."),
        "status": _text("Success or Failure."),
        "message": _text("The outcome for people."),
        "reason": _text("The outcome for programs, one word."),
        "details": meta("StatusDetails", "What the outcome is about."),
        "code": Integer(format="int32", description="The HTTP status code."),
    },
)

_STATUS_DETAILS = Object(
    description="What a Status is about.",
    fields={
        "name": _text("The name of the object."),
        "group": _text("The group of the resource."),
        "kind": _text("The resource or kind."),
        "uid": _text("The identity of the object."),
        "causes": Array(items=meta("StatusCause"), description="Each single thing that is wrong."),
        "retryAfterSeconds": Integer(format="int32", description="Seconds after which to try again."),
    },
)

_STATUS_CAUSE = Object(
    description="One thing that is wrong.",
    fields={
        "reason": _text("What is wrong, for programs."),
        "message": _text("What is wrong, for people."),
        "field": _text("The path of the field that is wrong."),
    },
)

_DELETE_OPTIONS = _typed(
    "How to delete.",
    {
        "gracePeriodSeconds": Integer(minimum=0, description="Seconds for a graceful end; 0 means at once."),
        "preconditions": meta("Preconditions", "What must hold; otherwise nothing is deleted."),
        "orphanDependents": Boolean(description="Deprecated: use propagationPolicy."),
        "propagationPolicy": _text("What becomes of dependents: Orphan, Background or Foreground."),
        "dryRun": Array(items=String(), description="All: do everything but store the outcome."),
        "ignoreStoreReadErrorWithClusterBreakingPotential": Boolean(
            description="Delete even what cannot be read from storage."
        ),
    },
)

_PRECONDITIONS = Object(
    description="What must hold for a deletion.",
    fields={
        "uid": _text("The identity that the object must have."),
        "resourceVersion": _text("The resource version that the object must be at."),
    },
)

_GROUP_VERSION = Object(
    description="A version of a group.",
    fields={
        "groupVersion": _text("GROUP/VERSION."),
        "version": _text("The version alone."),
    },
    required=("groupVersion", "version"),
)

_SERVER_ADDRESS = Object(
    description="An address of the server for the clients of a range of addresses.",
    fields={
        "clientCIDR": _text("The range of client addresses."),
        "serverAddress": _text("The host, or host and port, of the server."),
    },
    required=("clientCIDR", "serverAddress"),
)

_API_GROUP = _typed(
    "A group and its versions.",
    {
        "name": _text("The name of the group."),
        "versions": Array(items=meta("GroupVersionForDiscovery"), description="The versions that are served."),
        "preferredVersion": meta("GroupVersionForDiscovery", "The version to use when any will do."),
        "serverAddressByClientCIDRs": Array(
            items=meta("ServerAddressByClientCIDR"), description="Where the server is reached."
        ),
    },
    required=("name", "versions"),
)

_API_VERSIONS = _typed(
    "The versions of the core group.",
    {
        "versions": Array(items=String(), description="The versions that are served."),
        "serverAddressByClientCIDRs": Array(
            items=meta("ServerAddressByClientCIDR"), description="Where the server is reached."
        ),
    },
    required=("versions", "serverAddressByClientCIDRs"),
)

_API_RESOURCE = Object(
    description="A resource or subresource and what can be done with it.",
    fields={
        "name": _text("The plural name; a subresource follows after a slash."),
        "singularName": _text("The singular name."),
        "namespaced": Boolean(description="Whether its objects have a namespace."),
        "group": _text("The group of the kind, where it is not that of the list."),
        "version": _text("The version of the kind, where it is not that of the list."),
        "kind": _text("The kind of its objects."),
        "verbs": Array(items=String(), description="What can be done."),
        "shortNames": Array(items=String(), description="Shorter names that clients accept."),
        "categories": Array(items=String(), description="Names of sets of resources that it belongs to."),
        "storageVersionHash": _text("Changes when the version in which objects are stored does."),
    },
    required=("name", "singularName", "namespaced", "kind", "verbs"),
)

_VERSION_INFO = Object(
    description="Which server this is.",
    fields={
        name: String()
        for name in (
            "major",
            "minor",
            "emulationMajor",
            "emulationMinor",
            "minCompatibilityMajor",
            "minCompatibilityMinor",
            "gitVersion",
            "gitCommit",
            "gitTreeState",
            "buildDate",
            "goVersion",
            "compiler",
            "platform",
        )
    },
    required=("major", "minor", "gitVersion"),
)

_TYPES: dict[str, Schema] = {
    "ObjectMeta": _OBJECT_META,
    "ListMeta": _LIST_META,
    "OwnerReference": OWNER_REFERENCE,
    "ManagedFieldsEntry": _MANAGED_FIELDS_ENTRY,
    "FieldsV1": MANAGED_FIELDS_ENTRY.fields["fieldsV1"],
    "Time": String(format="date-time", description="A time in RFC 3339 format."),
    "Status": _STATUS,
    "StatusDetails": _STATUS_DETAILS,
    "StatusCause": _STATUS_CAUSE,
    "DeleteOptions": _DELETE_OPTIONS,
    "Preconditions": _PRECONDITIONS,
    "WatchEvent": Object(
        description="One event of a watch.",
        fields={
            "object": Object(
                description="The object: as it is, for DELETED as it last was, for ERROR a Status.", fields={}
            ),
            "type": _text("ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."),
        },
        required=("type", "object"),
    ),
    "Patch": Object(description="A change to an object, in the format that the content type names.", fields={}),
    "GroupVersionForDiscovery": _GROUP_VERSION,
    "ServerAddressByClientCIDR": _SERVER_ADDRESS,
    "APIVersions": _API_VERSIONS,
    "APIGroup": _API_GROUP,
    "APIGroupList": _typed(
        "The groups that are served.",
        {"groups": Array(items=meta("APIGroup"), description="The groups.")},
        required=("groups",),
    ),
    "APIResource": _API_RESOURCE,
    "APIResourceList": _typed(
        "The resources of a group version.",
        {
            "groupVersion": _text("GROUP/VERSION."),
            "resources": Array(items=meta("APIResource"), description="The resources."),
        },
        required=("groupVersion", "resources"),
    ),
}
