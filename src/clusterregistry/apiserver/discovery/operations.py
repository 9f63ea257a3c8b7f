"""What can be done with a resource over HTTP, independent of the version of OpenAPI that tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from clusterregistry.apimachinery.schema.schemas import String
from clusterregistry.apiserver.discovery import parameters
from clusterregistry.apiserver.discovery.definitions import META_PREFIX, Kind, kind_of, schema_name
from clusterregistry.apiserver.discovery.parameters import Parameter
from clusterregistry.apiserver.registry.resource import Definition, Version

OBJECT_TYPES = ("application/json", "application/yaml")
"""How objects are sent and answered."""

JSON_PATCH = "application/json-patch+json"

PATCH_TYPES = (JSON_PATCH, "application/merge-patch+json", "application/apply-patch+yaml")
"""The kinds of patch that are announced, which may be fewer than are accepted.

Where strategic merge is announced, kubectl 1.26 and later computes its patches for ``apply`` that way and
warns of every field that it does not find in the schema. It is left out here, as kube-apiserver leaves it
out for custom resources: kubectl then sends plain merge patches, and the server alone judges fields.
"""

STATUS = META_PREFIX + "Status"

SUCCESSES = {200: "OK", 201: "Created", 202: "Accepted"}

Method = Literal["get", "put", "post", "delete", "patch"]
Answers = Mapping[int, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What a request carries: the name of its schema and the media types."""

    schema: str
    media_types: Sequence[str]
    required: bool = True


_DELETE_BODY = Body(schema=META_PREFIX + "DeleteOptions", media_types=OBJECT_TYPES, required=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path. ``answers`` gives the names of the possible schemas for each code of success."""

    method: Method
    id: str
    description: str
    tag: str
    answers: Answers
    action: str = ""
    kind: Kind | None = None
    parameters: Sequence[Parameter] = ()
    body: Body | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A path, the parameters that all of its operations take, and the operations."""

    path: str
    operations: Sequence[Operation]
    parameters: Sequence[Parameter] = ()


def document_path(path: str, *, schema: str, operation_id: str, tag: str) -> Path:
    """A path that answers GET with a document about the server."""
    read = Operation(method="get", id=operation_id, description=f"Read {path}", tag=tag, answers={200: (schema,)})
    return Path(path=path, operations=[read])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verb:
    """What a kind of operation is called: by clients (``action``) and in its id (``name`` and ``infix``)."""

    method: Method
    action: str
    name: str
    what: str
    infix: str = ""


_LIST = _Verb(method="get", action="list", name="list", what="objects of kind {}")
_CREATE = _Verb(method="post", action="post", name="create", what="a {}")
_DELETE_COLLECTION = _Verb(
    method="delete",
    action="deletecollection",
    name="delete",
    what="all selected objects of kind {}",
    infix="Collection",
)
_READ = _Verb(method="get", action="get", name="read", what="the {}")
_REPLACE = _Verb(method="put", action="put", name="replace", what="the {}")
_DELETE = _Verb(method="delete", action="delete", name="delete", what="the {}")
_PATCH = _Verb(method="patch", action="patch", name="patch", what="the {}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceOperations:
    """The paths of one resource in one version."""

    resource: Definition
    version: Version
    enable_watch: bool = True
    patch_types: Sequence[str] = PATCH_TYPES

    @property
    def kind(self) -> Kind:
        return kind_of(self.resource, self.version)

    def paths(self) -> list[Path]:
        collection = f"/apis/{self.resource.group}/{self.version.name}/{self.resource.plural}"
        pretty = [parameters.PRETTY]
        if not self.resource.is_stored:
            return [Path(path=collection, operations=[self._create()], parameters=pretty)]
        named = [self._name_parameter(), *pretty]
        found = [
            Path(
                path=collection, operations=[self._list(), self._create(), self._delete_collection()], parameters=pretty
            ),
            Path(
                path=collection + "/{name}",
                operations=[self._read(), self._replace(), self._delete(), self._patch()],
                parameters=named,
            ),
        ]
        if self.resource.has_status:
            operations = [self._read("Status"), self._replace("Status"), self._patch("Status")]
            found.append(Path(path=collection + "/{name}/status", operations=operations, parameters=named))
        return found

    def _name_parameter(self) -> Parameter:
        schema = String(description=f"The name of the {self.resource.kind}.", max_length=parameters.LONGEST_NAME)
        return Parameter(name="name", schema=schema, location="path")

    def _list(self) -> Operation:
        taken = parameters.LIST + (parameters.WATCH if self.enable_watch else ())
        return self._operation(_LIST, answers={200: self._list_schemas()}, taken=taken)

    def _create(self) -> Operation:
        answers = dict.fromkeys((200, 201, 202), self._schemas())
        return self._operation(_CREATE, answers=answers, taken=parameters.WRITE, body=self._object_body())

    def _delete_collection(self) -> Operation:
        # the list of what was there, as kube-apiserver answers though its own document says Status
        answers = {200: self._list_schemas()}
        taken = parameters.LIST + parameters.DELETE
        return self._operation(_DELETE_COLLECTION, answers=answers, taken=taken, body=_DELETE_BODY)

    def _read(self, subresource: str = "") -> Operation:
        answers = {200: self._schemas()}
        return self._operation(_READ, subresource=subresource, answers=answers, taken=parameters.READ)

    def _replace(self, subresource: str = "") -> Operation:
        answers = dict.fromkeys((200, 201), self._schemas())
        body = self._object_body()
        return self._operation(_REPLACE, subresource=subresource, answers=answers, taken=parameters.WRITE, body=body)

    def _patch(self, subresource: str = "") -> Operation:
        answers = dict.fromkeys((200, 201), self._schemas())
        taken = (*parameters.WRITE, parameters.FORCE)
        body = Body(schema=META_PREFIX + "Patch", media_types=self.patch_types)
        return self._operation(_PATCH, subresource=subresource, answers=answers, taken=taken, body=body)

    def _delete(self) -> Operation:
        # the object itself while a finalizer holds it
        answers = dict.fromkeys((200, 202), (STATUS, *self._schemas()))
        return self._operation(_DELETE, answers=answers, taken=parameters.DELETE, body=_DELETE_BODY)

    def _operation(
        self,
        verb: _Verb,
        *,
        answers: Answers,
        taken: Sequence[Parameter],
        body: Body | None = None,
        subresource: str = "",
    ) -> Operation:
        group, version, kind = self.resource.group, self.version.name, self.resource.kind
        what = f"the {subresource.lower()} of {verb.what}" if subresource else verb.what
        return Operation(
            method=verb.method,
            id=f"{verb.name}{group_camel_case(group)}{version.capitalize()}{verb.infix}{kind}{subresource}",
            description=f"{verb.name.capitalize()} {what.format(kind)}",
            tag=tag(group, version),
            answers=answers,
            action=verb.action,
            kind=self.kind,
            parameters=taken,
            body=body,
        )

    def _schemas(self) -> tuple[str]:
        return (schema_name(self.resource, self.version, self.resource.kind),)

    def _list_schemas(self) -> tuple[str]:
        return (schema_name(self.resource, self.version, self.resource.list_kind),)

    def _object_body(self) -> Body:
        return Body(schema=self._schemas()[0], media_types=OBJECT_TYPES)


def group_camel_case(group: str) -> str:
    """``example.com`` as it stands in the id of an operation: ``ExampleCom``."""
    words = group.replace("-", ".").split(".")
    return "".join(word[:1].upper() + word[1:] for word in words)


def tag(group: str, version: str = "") -> str:
    """Under which heading an operation is listed."""
    camel = group_camel_case(group)
    name = camel[:1].lower() + camel[1:]
    return f"{name}_{version}" if version else name
