"""The operations of the API, independent of the OpenAPI version that describes them.

``Served`` is all that is served; its ``Contents`` are the paths of one document and the schemas that they need. OpenAPI
version 2 has one document for the whole server, version 3 one for each group version and for each document above them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from clusterregistry.apimachinery.schema.schemas import Boolean, Integer, Schema, String
from clusterregistry.apiserver.discovery import definitions
from clusterregistry.apiserver.discovery.definitions import (
    META_PREFIX,
    VERSION_INFO,
    Kind,
    NamedSchemas,
    kind_of,
    meta_types,
    schema_name,
)
from clusterregistry.apiserver.discovery.groups import group_versions, served_in
from clusterregistry.apiserver.registry.resource import Definition, Version, View

OBJECT_TYPES = ("application/json", "application/yaml")
"""The media types of objects."""

JSON_PATCH = "application/json-patch+json"

PATCH_TYPES = (JSON_PATCH, "application/merge-patch+json", "application/apply-patch+yaml")
"""The kinds of patch that are announced, which may be fewer than are accepted.

Where strategic merge is announced, kubectl 1.26 and later computes its patches for ``apply`` that way and
warns of every field that it does not find in the schema. It is left out here, as kube-apiserver leaves it
out for custom resources: kubectl then sends plain merge patches, and the server alone validates fields.
"""

STATUS = META_PREFIX + "Status"

SUCCESSES = {200: "OK", 201: "Created", 202: "Accepted"}

Method = Literal["get", "put", "post", "delete", "patch"]
Answers = Mapping[int, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The paths of one document and all schemas they refer to, directly or not."""

    paths: Sequence[Path]
    schemas: NamedSchemas


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The resources that the server serves."""

    resources: Sequence[Definition]
    enable_watch: bool = True
    patch_types: Sequence[str] = PATCH_TYPES

    def all_in_one(self) -> Contents:
        return self._contents([path for paths in self._paths().values() for path in paths])

    def by_document(self) -> dict[str, Contents]:
        """Keyed by path without the leading slash, as the index of version 3 names them."""
        return {name: self._contents(paths) for name, paths in self._paths().items()}

    def _contents(self, paths: Sequence[Path]) -> Contents:
        roots = [name for path in paths for operation in path.operations for name in _needed(operation)]
        return Contents(paths=paths, schemas=definitions.reachable(roots, self._schemas()))

    def _paths(self) -> Mapping[str, list[Path]]:
        found = {"api": [_about("api", "core", "APIVersions")], "apis": [_about("apis", "apis", "APIGroupList")]}
        for group, versions in group_versions(self.resources).items():
            if group and self._is_native(group):
                found[f"apis/{group}"] = [_about(f"apis/{group}", tag(group), "APIGroup")]
            for version in versions:
                found[_root(group, version)] = self._group_version(group, version)
        found["version"] = [document_path("/version/", schema=VERSION_INFO, operation_id="getVersion", tag="version")]
        return found

    def _is_native(self, group: str) -> bool:
        """Whether discovery of the group is described. kube-apiserver does not describe that of custom resources."""
        return any(group in map(each.group_of, each.versions) for each in self.resources if each.native)

    def _group_version(self, group: str, version: str) -> list[Path]:
        paths = []
        if self._is_native(group):
            paths.append(_about(_root(group, version), tag(group, version), "APIResourceList"))
        for resource, definition in served_in(self.resources, group=group, version=version):
            its_operations = ResourceOperations(
                resource=resource, version=definition, enable_watch=self.enable_watch, patch_types=self.patch_types
            )
            paths.extend(its_operations.paths())
        return paths

    def _schemas(self) -> NamedSchemas:
        pairs = [(group, version) for group, versions in group_versions(self.resources).items() for version in versions]
        schemas = meta_types(pairs)
        for resource in self.resources:
            for version in resource.versions:
                schemas |= definitions.of_resource(resource, version)
        return schemas


def _root(group: str, version: str) -> str:
    """The path of a group version, without the leading slash."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _about(path: str, tag: str, schema: str) -> Path:
    operation_id = f"get{tag[:1].upper()}{tag[1:].replace('_', '')}{schema}"
    return document_path(f"/{path}/", schema=META_PREFIX + schema, operation_id=operation_id, tag=tag)


def _needed(operation: Operation) -> Iterator[str]:
    yield STATUS
    for names in operation.answers.values():
        yield from names
    if operation.body is not None:
        yield operation.body.schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter. Its schema has a single value and the description."""

    name: str
    schema: Schema
    location: Literal["query", "path"] = "query"

    @property
    def required(self) -> bool:
        return self.location == "path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The body of a request: the name of its schema and the media types."""

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
    """A path that serves a document about the server."""
    read = Operation(method="get", id=operation_id, description=f"Read {path}", tag=tag, answers={200: (schema,)})
    return Path(path=path, operations=[read])


_LONGEST_NAME = 253


def _text(name: str, description: str, *values: str) -> Parameter:
    return Parameter(name=name, schema=String(description=description, enum=values))


def _number(name: str, description: str, *, minimum: int | None = None) -> Parameter:
    return Parameter(name=name, schema=Integer(description=description, minimum=minimum))


def _flag(name: str, description: str) -> Parameter:
    return Parameter(name=name, schema=Boolean(description=description))


_PRETTY = _text("pretty", "true: the answer is indented.")

_NAMESPACE = Parameter(
    name="namespace", schema=String(description="The namespace of the objects.", max_length=63), location="path"
)

_FORCE = _flag("force", "Apply only: take fields over from other managers.")

_DRY_RUN = _text("dryRun", "All: do everything but store the outcome.", "All")

_READ_PARAMETERS = (_text("resourceVersion", "How recent the answer must be; empty means the latest."),)

_WRITE_PARAMETERS = (
    _DRY_RUN,
    Parameter(
        name="fieldManager",
        schema=String(description="Who makes the change; by default the first part of the User-Agent.", max_length=128),
    ),
    _text(
        "fieldValidation",
        "What happens to unknown or duplicate fields: dropped silently, dropped with a warning, or the request fails.",
        "Ignore",
        "Warn",
        "Strict",
    ),
)

_LIST_PARAMETERS = (
    _text("labelSelector", "Only objects whose labels match."),
    _text("fieldSelector", "Only objects whose fields match."),
    _number("limit", "At most so many items in one answer; more follow through continue."),
    _text("continue", "The value of metadata.continue in the page before."),
    _text("resourceVersion", "Which state to show, together with resourceVersionMatch."),
    _text("resourceVersionMatch", "How resourceVersion is meant.", "Exact", "NotOlderThan"),
    _number("timeoutSeconds", "After so many seconds the request ends."),
)

_WATCH_PARAMETERS = (
    _flag("watch", "Follow changes as a stream of events instead of an answer with a list."),
    _flag("allowWatchBookmarks", "Send BOOKMARK events too, which tell how far the stream has come."),
    _flag("sendInitialEvents", "Start with an ADDED event for each object there is, then a bookmark that says so."),
)

_DELETE_PARAMETERS = (
    _DRY_RUN,
    _number("gracePeriodSeconds", "Seconds for a graceful end; 0 means at once.", minimum=0),
    _flag("orphanDependents", "Deprecated: use propagationPolicy."),
    _text("propagationPolicy", "What becomes of dependents.", "Orphan", "Background", "Foreground"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verb:
    """The names of an operation: for clients (``action``) and in its id (``name`` and ``infix``)."""

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
_WATCH = _Verb(method="get", action="watch", name="watch", what="changes of the {}")
_WATCH_LIST = _Verb(method="get", action="watchlist", name="watch", what="changes of objects of kind {}")
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
        resource, everywhere = self.resource, f"/{_root(self._group, self.version.name)}/{self.resource.plural}"
        collection, shared = everywhere, [_PRETTY]
        if resource.namespaced:
            collection = f"/{_root(self._group, self.version.name)}/namespaces/{{namespace}}/{resource.plural}"
            shared = [_NAMESPACE, _PRETTY]
        if not resource.is_stored:
            return [Path(path=collection, operations=[self._create()], parameters=shared)]
        named = [self._name_parameter(), *shared]
        on_all = {"list": self._list, "create": self._create, "deletecollection": self._delete_collection}
        on_one = {"get": self._read, "update": self._replace, "delete": self._delete, "patch": self._patch}
        found = [
            Path(path=collection, operations=_made(on_all, resource.verbs), parameters=shared),
            Path(path=collection + "/{name}", operations=_made(on_one, resource.verbs), parameters=named),
        ]
        for name, each in resource.subresources.items():
            suffix = name.capitalize()
            on_part = {
                "get": partial(self._read, suffix),
                "update": partial(self._replace, suffix),
                "patch": partial(self._patch, suffix),
            }
            operations = _made(on_part, each.verbs)
            found.append(Path(path=f"{collection}/{{name}}/{name}", operations=operations, parameters=named))
        for name, view in resource.views.items():
            found.append(
                Path(path=f"{collection}/{{name}}/{name}", operations=[self._view(name, view)], parameters=named)
            )
        if resource.namespaced:
            found.append(Path(path=everywhere, operations=[self._list_everywhere()], parameters=[_PRETTY]))
        if resource.native and self.enable_watch and "watch" in resource.verbs:
            found += self._watch_paths()
        return found

    def _watch_paths(self) -> Iterator[Path]:
        """The older paths of watches, which kube-apiserver lists for native kinds."""
        root, plural, kind = f"/{_root(self._group, self.version.name)}/watch", self.resource.plural, self.resource.kind
        shared = [*_LIST_PARAMETERS, *_WATCH_PARAMETERS, _PRETTY]
        collection = f"{root}/{plural}"
        if self.resource.namespaced:
            watched = self._watch(_WATCH_LIST)
            everywhere = replace(watched, id=self._everywhere(watched.id, f"{kind}List"))
            yield Path(path=collection, operations=[everywhere], parameters=shared)
            collection, shared = f"{root}/namespaces/{{namespace}}/{plural}", [_NAMESPACE, *shared]
        yield Path(path=collection, operations=[self._watch(_WATCH_LIST)], parameters=shared)
        named = [self._name_parameter(), *shared]
        yield Path(path=f"{collection}/{{name}}", operations=[self._watch(_WATCH)], parameters=named)

    def _watch(self, verb: _Verb) -> Operation:
        suffix = "List" if verb is _WATCH_LIST else ""
        made = self._operation(verb, answers={200: (META_PREFIX + "WatchEvent",)}, taken=())
        return replace(made, id=made.id + suffix)

    @staticmethod
    def _everywhere(operation_id: str, kind: str) -> str:
        """The id of an operation on all namespaces, from that on one."""
        return f"{operation_id.removesuffix(f'Namespaced{kind}')}{kind}ForAllNamespaces"

    @property
    def _group(self) -> str:
        return self.resource.group_of(self.version)

    def _name_parameter(self) -> Parameter:
        schema = String(description=f"The name of the {self.resource.kind}.", max_length=_LONGEST_NAME)
        return Parameter(name="name", schema=schema, location="path")

    def _list(self) -> Operation:
        taken = _LIST_PARAMETERS + (_WATCH_PARAMETERS if self.enable_watch else ())
        return self._operation(_LIST, answers={200: self._list_schemas()}, taken=taken)

    def _list_everywhere(self) -> Operation:
        listed = self._list()
        return replace(listed, id=self._everywhere(listed.id, self.resource.kind))

    def _create(self) -> Operation:
        answers = dict.fromkeys((200, 201, 202), self._schemas())
        return self._operation(_CREATE, answers=answers, taken=_WRITE_PARAMETERS, body=self._object_body())

    def _delete_collection(self) -> Operation:
        # the list of what was there, as kube-apiserver answers though its own document says Status
        answers = {200: self._list_schemas()}
        taken = _LIST_PARAMETERS + _DELETE_PARAMETERS
        return self._operation(_DELETE_COLLECTION, answers=answers, taken=taken, body=_DELETE_BODY)

    def _read(self, subresource: str = "") -> Operation:
        answers = {200: self._schemas()}
        return self._operation(_READ, subresource=subresource, answers=answers, taken=_READ_PARAMETERS)

    def _view(self, name: str, view: View) -> Operation:
        answers = {200: (definitions.view_schema_name(self.resource, self.version, name),)}
        made = self._operation(_READ, subresource=name.capitalize(), answers=answers, taken=_READ_PARAMETERS)
        return replace(made, kind=Kind(group=view.group, version=view.version, kind=view.kind))

    def _replace(self, subresource: str = "") -> Operation:
        answers = dict.fromkeys((200, 201), self._schemas())
        body = self._object_body()
        return self._operation(_REPLACE, subresource=subresource, answers=answers, taken=_WRITE_PARAMETERS, body=body)

    def _patch(self, subresource: str = "") -> Operation:
        answers = dict.fromkeys((200, 201), self._schemas())
        taken = (*_WRITE_PARAMETERS, _FORCE)
        body = Body(schema=META_PREFIX + "Patch", media_types=self.patch_types)
        return self._operation(_PATCH, subresource=subresource, answers=answers, taken=taken, body=body)

    def _delete(self) -> Operation:
        # the object itself while a finalizer holds it
        answers = dict.fromkeys((200, 202), (STATUS, *self._schemas()))
        return self._operation(_DELETE, answers=answers, taken=_DELETE_PARAMETERS, body=_DELETE_BODY)

    def _operation(
        self,
        verb: _Verb,
        *,
        answers: Answers,
        taken: Sequence[Parameter],
        body: Body | None = None,
        subresource: str = "",
    ) -> Operation:
        group, version, kind = self._group, self.version.name, self.resource.kind
        scope = "Namespaced" if self.resource.namespaced else ""
        camel = native_camel_case(group) if self.resource.native else group_camel_case(group)
        what = f"the {subresource.lower()} of {verb.what}" if subresource else verb.what
        return Operation(
            method=verb.method,
            id=f"{verb.name}{camel}{version.capitalize()}{verb.infix}{scope}{kind}{subresource}",
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


def _made(operations: Mapping[str, Callable[[], Operation]], verbs: Sequence[str]) -> list[Operation]:
    """The operations of the verbs that are served."""
    return [make() for verb, make in operations.items() if verb in verbs]


def native_camel_case(group: str) -> str:
    """``coordination.k8s.io`` as in the id of an operation on a native kind: ``Coordination``."""
    return group_camel_case(group.removesuffix(".k8s.io") or "core")


def group_camel_case(group: str) -> str:
    """``example.com`` as in the id of an operation: ``ExampleCom``."""
    words = group.replace("-", ".").split(".")
    return "".join(word[:1].upper() + word[1:] for word in words)


def tag(group: str, version: str = "") -> str:
    """The tag under which an operation is listed."""
    camel = group_camel_case(group)
    name = camel[:1].lower() + camel[1:]
    return f"{name}_{version}" if version else name
