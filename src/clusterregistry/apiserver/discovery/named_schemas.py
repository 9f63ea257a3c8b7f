"""Schemas with names, which refer to each other: what OpenAPI calls definitions or components.

A kind of ours becomes two of them, itself and its list; spec and status are written in place, as
kube-apiserver does for custom resources. Of a native kind every struct below has a name too. The types they
share are in ``meta_types``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterregistry.apimachinery.schema.schemas import Array, Map, Object, Schema, String
from clusterregistry.apiserver.registry.resource import Definition, Version

META_PREFIX = "io.k8s.apimachinery.pkg.apis.meta.v1."

_IN_META = frozenset(("LabelSelector", "LabelSelectorRequirement", "FieldSelectorRequirement"))
"""Structs below native kinds that are not of the kind's own group."""


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
    """What stands under a name: a schema and the kinds of the objects that it describes."""

    schema: Schema
    kinds: Sequence[Kind] = ()


NamedSchemas = Mapping[str, NamedSchema]


def meta(name: str, description: str = "") -> Reference:
    """A reference to a type that all kinds share."""
    return Reference(name=META_PREFIX + name, description=description)


def schema_name(resource: Definition, version: Version, kind: str) -> str:
    """As kube-apiserver names them: a custom resource by its group's parts reversed, a native kind by its package."""
    parts = resource.group.split(".")
    package = ["io", "k8s", "api", parts[0]] if resource.native else reversed(parts)
    return ".".join([*package, version.name, kind])


def kind_of(resource: Definition, version: Version) -> Kind:
    return Kind(group=resource.group, version=version.name, kind=resource.kind)


def list_kind_of(resource: Definition, version: Version) -> Kind:
    return Kind(group=resource.group, version=version.name, kind=resource.list_kind)


def of_resource(resource: Definition, version: Version) -> dict[str, NamedSchema]:
    """The kind and its list."""
    kind, list_kind = kind_of(resource, version), list_kind_of(resource, version)
    name, list_name = (schema_name(resource, version, each.kind) for each in (kind, list_kind))
    below = _Structs(resource, version)
    schema = below.with_references(version.schema)
    return below.named | {
        name: NamedSchema(schema=_whole_object(schema), kinds=(kind,)),
        list_name: NamedSchema(schema=_list(name, kind), kinds=(list_kind,)),
    }


class _Structs:
    """The structs below a kind that have names of their own. Those of custom resources have none.

    What describes a struct stands at the field that is one: kubectl shows nothing else in a list of fields. Where it
    is an item, the field is described already, and the struct by itself.
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
        name = META_PREFIX + struct if struct in _IN_META else schema_name(self._resource, self._version, struct)
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
