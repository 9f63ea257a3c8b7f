"""Finds the handler of a request."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

import orjson

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints.create import create
from clusterregistry.apiserver.endpoints.delete import delete, delete_collection
from clusterregistry.apiserver.endpoints.encoding import JSON_TYPE as JSON
from clusterregistry.apiserver.endpoints.encoding import json_response, page_not_found
from clusterregistry.apiserver.endpoints.get import get
from clusterregistry.apiserver.endpoints.list import list_collection
from clusterregistry.apiserver.endpoints.patch import patch
from clusterregistry.apiserver.endpoints.request import Handler, Request
from clusterregistry.apiserver.endpoints.request_info import RequestInfo, check_path_name
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.endpoints.review import ReviewScope, review
from clusterregistry.apiserver.endpoints.update import update, without_name
from clusterregistry.apiserver.endpoints.view import view
from clusterregistry.apiserver.endpoints.watch import WatchSettings, watch
from clusterregistry.apiserver.filters.metrics import Measures
from clusterregistry.apiserver.health import Health
from clusterregistry.apiserver.http.response import Answer, Reply, Response

if TYPE_CHECKING:
    from clusterregistry.apiserver.discovery.endpoints import Discovery
    from clusterregistry.apiserver.profiling import Profiling

Verb = Callable[[RequestScope, Request], Reply]

_COLLECTION: Mapping[str, Verb] = {
    "list": list_collection,
    "create": create,
    "deletecollection": delete_collection,
    "update": without_name,
    "patch": without_name,
}
"""PUT and PATCH of a collection are 400 for a custom resource and 405 for a native kind."""

_OBJECT: Mapping[str, Verb] = {"get": get, "create": create, "update": update, "patch": patch, "delete": delete}
"""As in kube-apiserver, POST to a name is POST to the collection."""

_NATIVE_COLLECTION = {name: verb for name, verb in _COLLECTION.items() if verb is not without_name}
_NATIVE_OBJECT = {name: verb for name, verb in _OBJECT.items() if name != "create"}
_SUBRESOURCE: Mapping[str, Verb] = {"get": get, "update": update, "patch": patch}
_VIEW: Mapping[str, Verb] = {"get": view}
_CUSTOM_RESOURCE_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Routes:
    """The innermost handler: resources by group, version and name; everything else by path."""

    def __init__(  # noqa: PLR0913 - all that is served, all by keyword
        self,
        *,
        scopes: Mapping[tuple[str, str, str], RequestScope],
        reviews: Mapping[tuple[str, str, str], ReviewScope],
        discovery: Callable[[], Discovery],
        health: Health,
        measures: Measures,
        version: Mapping[str, str],
        watch_settings: WatchSettings | None,
        profiling: bool,
    ) -> None:
        self._scopes = scopes
        self._reviews = reviews
        self._groups_of_reviews = {(group, version) for group, version, _ in reviews}
        self._native_groups = {group for (group, _, _), scope in scopes.items() if scope.resource.native}
        self._make_discovery = discovery
        self._health = health
        self._measures = measures
        self._version = version
        self._watch_settings = watch_settings
        self._enable_profiling = profiling
        self._profiling: Profiling | None = None

    @cached_property
    def _discovery(self) -> Discovery:
        return self._make_discovery()

    def __call__(self, request: Request) -> Reply:
        info = request.info
        handler: Handler | None = info.memo.get(self)
        if handler is None:
            handler = info.memo[self] = self._found(info)
        return handler(request)

    def _found(self, info: RequestInfo) -> Handler:
        """Finds the handler. Raises 400 for a name that cannot exist, 404 and 405 where there is no handler."""
        if not info.is_resource:
            is_profile = self._enable_profiling and f"{info.path}/".startswith("/debug/pprof/")
            return self._profile if is_profile else self._path
        scope = self._scopes.get((info.group, info.version, info.resource))
        if scope is None and (info.group, info.version) in self._groups_of_reviews:
            return self._review(info)
        if scope is None or not _is_in_scope(scope, info):
            if info.path == _CUSTOM_RESOURCE_DEFINITIONS and info.verb == "list" and self._native_groups:
                return _no_definitions
            if info.group in self._native_groups:
                raise errors.no_such_resource()
            return self._unknown
        handler = self._watch(scope) if info.verb == "watch" else partial(_verb(scope, info), scope)
        return _without_head(handler) if scope.resource.native else handler

    def _review(self, info: RequestInfo) -> Handler:
        """Reviews can only be created."""
        scope = self._reviews.get((info.group, info.version, info.resource))
        if scope is None or len(info.parts) > 1 or bool(info.path_namespace) != scope.resource.namespaced:
            raise errors.no_such_resource()
        if info.verb != "create":
            raise errors.method_not_allowed()
        return partial(review, scope)

    def _watch(self, scope: RequestScope) -> Handler:
        settings = self._watch_settings
        if settings is None:
            raise scope.not_supported("watch")

        def answer(request: Request) -> Reply:
            info = request.info  # not that of ``_found``, which holds this function: they would keep each other
            if request.method not in ("GET", "HEAD"):
                raise scope.not_supported("watch")
            if len(info.parts) > 2:  # noqa: PLR2004 - /watch/RESOURCE/NAME
                raise scope.store.not_found(info.name)
            return watch(scope, request, settings)

        return answer

    def _path(self, request: Request) -> Response:
        """Answers paths that are no resources, which can only be read. Raises 405 and 406."""
        answer = self._health.answer(request) or self._own(request) or self._discovered(request)
        if answer is None:
            return self._unknown(request)
        if request.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        return answer

    async def _profile(self, request: Request) -> Answer:
        """Answers the pages of profiles. Raises 405."""
        if request.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        if self._profiling is None:
            # In a thread, since it loads protobuf, and other requests do not wait for it.
            module = await asyncio.to_thread(importlib.import_module, "clusterregistry.apiserver.profiling")
            self._profiling = self._profiling or module.Profiling()
        return await self._profiling.answer(request)

    @staticmethod
    def _unknown(request: Request) -> Response:
        """As in kube-apiserver: 404 is a Status below ``/api``, and plain text elsewhere."""
        if request.path.startswith("/api/"):
            raise errors.no_such_resource()
        return page_not_found()

    def _own(self, request: Request) -> Response | None:
        match request.path.rstrip("/"):
            case "":
                return json_response({"paths": self._paths()})
            case "/version":
                # Indented and without a newline at the end, as kube-apiserver writes this one.
                return Response(200, JSON, (orjson.dumps(self._version, option=orjson.OPT_INDENT_2),))
            case "/metrics":
                return Response(200, _METRICS_TYPE, (self._measures.rendered(),))
        return None

    def _paths(self) -> list[str]:
        """The index of the server."""
        return sorted(
            [*self._discovery.objects, *self._health.paths, "/metrics", "/openapi/v2", "/openapi/v3", "/version"]
        )

    def _discovered(self, request: Request) -> Response | None:
        found = self._discovery.answer(
            request.path,
            now=datetime.now(UTC),
            accept=request.header("accept"),
            if_none_match=request.header("if-none-match"),
            wanted_hash=request.query.first("hash"),
        )
        if found is None:
            return None
        headers = {name.lower().encode(): value.encode() for name, value in found.headers.items()}
        content_type = headers.pop(b"content-type", b"")
        return Response(found.status, content_type, (found.body,), list(headers.items()))


def _is_in_scope(scope: RequestScope, info: RequestInfo) -> bool:
    """Whether a path with a namespace is one of a namespaced resource, and one without is a root-scoped one's.

    All namespaces together can be listed and watched. Raises 405 for other verbs of a native kind on them.
    """
    if not scope.resource.namespaced or info.path_namespace:
        return scope.resource.namespaced or not info.path_namespace
    if len(info.parts) > 1 or info.verb in ("list", "watch"):
        return len(info.parts) == 1
    if scope.resource.native:
        raise errors.method_not_allowed()
    return False


def _no_definitions(_request: Request) -> Response:
    """The custom resource definitions: there are none.

    Where Namespaces are served, kubectl lists the definitions before it says that a kind is not known.
    """
    return json_response(
        {
            "kind": "CustomResourceDefinitionList",
            "apiVersion": "apiextensions.k8s.io/v1",
            "metadata": {"resourceVersion": "1"},
            "items": [],
        }
    )


def _without_head(handler: Handler) -> Handler:
    """As in kube-apiserver, native kinds do not answer HEAD."""

    def handle(request: Request) -> Reply:
        if request.method == "HEAD":
            raise errors.method_not_allowed()
        return handler(request)

    return handle


def _verb(scope: RequestScope, info: RequestInfo) -> Verb:
    """Raises 400 for a name that cannot exist, 404 for an unknown subresource and 405 for a verb that is not served."""
    check_path_name(info.name)
    resource = scope.resource
    served = resource.verbs
    if len(info.parts) == 1:
        verbs = _NATIVE_COLLECTION if resource.native else _COLLECTION
    elif not info.subresource:
        verbs = _NATIVE_OBJECT if resource.native else _OBJECT
    elif (subresource := resource.subresources.get(info.subresource)) is not None:
        verbs, served = _SUBRESOURCE, subresource.verbs
    elif info.subresource in resource.views:
        verbs, served = _VIEW, resource.views[info.subresource].verbs
    elif resource.native:
        raise errors.no_such_resource()
    else:
        raise scope.store.not_found(info.name)
    verb = verbs.get(info.verb)
    if verb is None or (info.verb not in served and verb is not without_name):
        raise errors.method_not_allowed() if resource.native else scope.not_supported(info.verb)
    return verb
