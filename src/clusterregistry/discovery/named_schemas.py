"""Schemas with names, which refer to each other: what OpenAPI calls definitions or components.

A kind of ours becomes two of them, itself and its list; spec and status are written in place, as
kube-apiserver does for custom resources. The types they share are in ``meta_types``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterregistry.apis.meta.schemas import Array, Map, Object, Schema, String
from clusterregistry.registry.definitions import Definition, Version

META_PREFIX = "io.k8s.apimachinery.pkg.apis.meta.v1."


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


def schema_name(kind: Kind) -> str:
    """The group's parts reversed, then version and kind, as kube-apiserver names custom resources."""
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def kind_of(resource: Definition, version: Version) -> Kind:
    return Kind(group=resource.group, version=version.name, kind=resource.kind)


def list_kind_of(resource: Definition, version: Version) -> Kind:
    return Kind(group=resource.group, version=version.name, kind=resource.list_kind)


def of_resource(resource: Definition, version: Version) -> dict[str, NamedSchema]:
    """The kind and its list."""
    kind, list_kind = kind_of(resource, version), list_kind_of(resource, version)
    name = schema_name(kind)
    return {
        name: NamedSchema(schema=_whole_object(version.schema), kinds=(kind,)),
        schema_name(list_kind): NamedSchema(schema=_list(name, kind), kinds=(list_kind,)),
    }


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
