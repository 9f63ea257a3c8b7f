"""RequestInfo: the verb and the resource of a request, from its method, path and query as in kube-apiserver."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apimachinery.meta.field_selectors import parse_field_selector
from clusterregistry.apimachinery.meta.selectors import SelectorError
from clusterregistry.apiserver.http.request import Query

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
_PREFIXES = {"api", "apis"}
_FALSE = {"false", "0"}
_CACHED_CHARACTERS = 512
_MUTATING = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
"""What may follow the name of a Namespace in a path without being a resource within it."""

_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""Groups of reviews, which are never stored."""


class RequestInfo(Struct, kw_only=True):
    """The attributes of a request. Immutable, except for the memo. ``is_resource`` is False for all other paths.

    ``parts`` is the path from the resource on; more than resource/name/subresource does not exist.
    """

    path: str
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    """The namespace for authorization; for a request of a Namespace itself, its name."""
    path_namespace: str = ""
    """The namespace that the path is within: that of its objects, but not of a Namespace itself."""
    resource: str = ""
    name: str = ""
    key: str = ""
    """The key of the object in its store: the name, with the namespace before it in a path with a namespace."""
    subresource: str = ""
    parts: tuple[str, ...] = ()
    is_mutating: bool = False
    memo: dict[object, Any] = field(default_factory=dict)
    """What others derive from the attributes, with themselves as the key. It lives as long as this object, which is
    cached for paths that are requested again."""


def parse(method: str, path: str, query_string: bytes) -> RequestInfo:
    """Never fails: any other path than that of a resource is a request for the bare path."""
    # Long ones are not cached: any client can send them.
    short = len(path) + len(query_string) < _CACHED_CHARACTERS
    return (_parse_cached if short else _parse)(method, path, query_string)


def _parse(method: str, path: str, query_string: bytes) -> RequestInfo:
    segments = path.strip("/").split("/")
    if len(segments) < 3 or segments[0] not in _PREFIXES:  # noqa: PLR2004 - prefix, version, resource
        return RequestInfo(path=path, verb=method.lower())
    group, rest = "", segments[1:]
    if segments[0] == "apis":
        group, rest = rest[0], rest[1:]
    version, rest = rest[0], rest[1:]
    if not rest or rest == ["watch"]:
        return RequestInfo(path=path, verb=method.lower())
    verb = _VERBS.get(method, "")
    if rest[0] == "watch":
        verb, rest = "watch", rest[1:]
    namespace = path_namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:  # noqa: PLR2004 - a resource within a namespace
            path_namespace, rest = namespace, rest[2:]
    name = key = rest[1] if len(rest) > 1 else ""
    if not name:
        verb, name = _collection_verb(verb, query_string)
    return RequestInfo(
        path=path,
        verb=verb,
        is_resource=True,
        group=group,
        version=version,
        namespace=namespace,
        path_namespace=path_namespace,
        resource=rest[0],
        name=name,
        key=f"{path_namespace}/{key}" if path_namespace else key,
        subresource=rest[2] if len(rest) > 2 else "",  # noqa: PLR2004 - resource, name, subresource
        parts=tuple(rest),
        is_mutating=verb in _MUTATING and group not in _REVIEWS,
    )


_parse_cached = lru_cache(maxsize=4096)(_parse)


def check_path_name(name: str) -> None:
    """Checks that a name can be a segment of a path. Raises 400."""
    if name in {".", ".."}:
        raise errors.bad_request(f"Name parameter invalid: {quoted(name)}: may not be '{name}'")
    for character in "/%":
        if character in name:
            raise errors.bad_request(f"Name parameter invalid: {quoted(name)}: may not contain '{character}'")


def _collection_verb(verb: str, query_string: bytes) -> tuple[str, str]:
    """The verb on a collection, and the one name that a field selector selects."""
    if verb not in ("get", "delete", "watch"):
        return verb, ""
    query = Query(query_string)
    if verb == "get":
        verb = "watch" if "watch" in query and parse_bool(query.first("watch")) else "list"
    elif verb == "delete":
        verb = "deletecollection"
    return verb, _selected_name(query.first("fieldSelector"))


def _selected_name(text: str) -> str:
    if not text:
        return ""
    try:
        return parse_field_selector(text, supported=None).name or ""
    except SelectorError:
        return ""


def parse_bool(value: str | None) -> bool:
    """A boolean parameter as Kubernetes reads it: given, and neither false nor 0."""
    return value is not None and value.lower() not in _FALSE
