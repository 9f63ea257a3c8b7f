"""An asynchronous client of any kind that a Kubernetes-style API serves, without discovery and without types.

``Client`` makes calls of any path, ``ResourceClient`` has the verbs of one resource: client-go's dynamic client. Wire
objects are dicts as the server sends them. All calls raise ClientError, and nothing else from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import quote, urlencode

import orjson

from clusterregistry.client import errors
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.retry import RetryPolicy, parse_retry_after
from clusterregistry.client.transport import Request, Response, Stream, Transport, TransportParts

JSON = "application/json"
PAGE_SIZE = 500
MAX_ITEMS = 1_000_000
"""Objects of all pages of a list together."""

MAX_ERROR_BYTES = 1 << 20
_MAX_OPENINGS = 200
_READS = frozenset({"GET", "HEAD"})
_REDIRECTS = range(300, 400)
_NONE: frozenset[str] = frozenset()

Object = dict[str, Any]


class PatchType(StrEnum):
    """The media types of patches."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC_MERGE = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class GroupVersionResource:
    """Names a resource. The group is empty for the core group; ``resource`` is the plural."""

    group: str
    version: str
    resource: str

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of the collection, of an object, or of a subresource of it. Raises ValueError for odd names."""
        root = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace:
            root += ["namespaces", namespace]
        parts = [*root, self.resource, *([name] if name else []), *subresource.split("/")]
        return "".join(f"/{_segment(part)}" for part in parts if part)


def _segment(part: str) -> str:
    if part in {".", ".."} or "/" in part:
        raise ValueError(f"{part!r} cannot be a part of a path")
    return quote(part, safe=":")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a path below the server's URL. ``query`` values of None are left out."""

    method: str
    path: str
    query: Mapping[str, str | int | bool | None] = field(default_factory=dict, kw_only=True)
    body: Any = field(default=None, kw_only=True, repr=False)
    """What JSON can hold, or bytes, which are sent as they are; None is no body."""
    content_type: str = field(default=JSON, kw_only=True)
    accept: str = field(default=JSON, kw_only=True)
    fields: Sequence[tuple[str, str | None]] = field(default=(), kw_only=True, repr=False)
    """More header fields, also several of one name. They replace what the client sends by itself; None removes that."""
    timeout: float | None = field(default=None, kw_only=True)
    """Seconds for all attempts; None is that of the configuration."""
    limit: int | None = field(default=None, kw_only=True)
    """Bytes of the response; None is that of the configuration."""
    repeatable: bool | None = field(default=None, kw_only=True)
    """Whether it does no harm if the server carries it out twice. None: only if the method reads."""

    @property
    def may_be_repeated(self) -> bool:
        return self.method in _READS if self.repeatable is None else self.repeatable

    def target(self) -> str:
        given = {name: _query_value(value) for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(given, quote_via=quote)}" if given else self.path


def _query_value(value: str | int | bool) -> str:  # noqa: FBT001 - a value, not a switch
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """What to list or watch. An empty resource version is the most recent one."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout: float | None = None

    def query(self) -> dict[str, str | int | bool | None]:
        return {
            "labelSelector": self.label_selector or None,
            "fieldSelector": self.field_selector or None,
            "limit": self.limit or None,
            "continue": self.continue_token or None,
            "resourceVersion": self.resource_version or None,
            "resourceVersionMatch": self.resource_version_match or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How to write. ``force`` is for apply alone."""

    field_manager: str = ""
    dry_run: bool = False
    field_validation: str = ""
    force: bool = False
    timeout: float | None = None

    def query(self) -> dict[str, str | int | bool | None]:
        return {
            "fieldManager": self.field_manager or None,
            "dryRun": "All" if self.dry_run else None,
            "fieldValidation": self.field_validation or None,
            "force": True if self.force else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How to delete. The preconditions make the server refuse with a ConflictError when they do not hold."""

    propagation_policy: str = ""
    grace_period_seconds: int | None = None
    dry_run: bool = False
    uid: str = ""
    resource_version: str = ""
    timeout: float | None = None

    def body(self) -> Object | None:
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        given = {
            "propagationPolicy": self.propagation_policy or None,
            "gracePeriodSeconds": self.grace_period_seconds,
            "dryRun": ["All"] if self.dry_run else None,
            "preconditions": {name: value for name, value in preconditions.items() if value} or None,
        }
        options = {name: value for name, value in given.items() if value is not None}
        return {"apiVersion": "v1", "kind": "DeleteOptions", **options} if options else None


class Client:
    """Calls of one server as one user. Used on one loop; close it, or use it as an asynchronous context."""

    def __init__(
        self,
        config: RestConfig,
        *,
        retry: RetryPolicy | None = None,
        parts: TransportParts | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Raises ConfigError for credentials that cannot be used."""
        self.config = config
        self._retry, self._sleep = retry or RetryPolicy(), sleep
        self._transport = Transport(config, parts)

    def resource(self, resource: GroupVersionResource, *, namespace: str = "") -> ResourceClient:
        """The verbs of a resource; without a namespace those of a cluster-scoped one, or of all namespaces."""
        return ResourceClient(self, resource, namespace=namespace)

    async def call(self, call: Call) -> Object:
        """The JSON object that the server answers with."""
        return decode_object(await self.raw(call))

    async def text(self, call: Call) -> str:
        """A response that is text, such as that of /readyz, or a log."""
        return (await self.raw(replace(call, accept="*/*"))).body.decode("utf-8", "replace")

    async def raw(self, call: Call) -> Response:
        """The response as it is, if its status is a success; see ``retry`` for when a call is sent again."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout(call)
        failures = 0
        while True:
            try:
                return await self._once(replace(call, timeout=deadline - loop.time()))
            except errors.ClientError as error:
                failures += 1
                pause = self._retry.pause(error, failures=failures, repeatable=call.may_be_repeated)
                if pause is None or loop.time() + pause >= deadline:
                    raise
            await self._sleep(pause)

    async def exchange(self, call: Call) -> Response:
        """The response as it is, whatever its status, redirects included. Sent once: not even a 401 repeats it.

        For programs that look at a server itself, such as tests. Raises TransportError and ConfigError.
        """
        return await self._transport.exchange(self._request(call))

    def exchange_stream(self, call: Call, *, silence: float) -> contextlib.AbstractAsyncContextManager[Stream]:
        """``exchange`` for a response that is read piece by piece; for the times see ``stream``."""
        return self._transport.stream(self._request(call), silence=silence)

    async def _once(self, call: Call) -> Response:
        request = self._request(call)
        response = await self._transport.exchange(request)
        if self._may_try_another_credential(response):
            response = await self._transport.exchange(request)
        raise_for_status(response)
        return response

    @contextlib.asynccontextmanager
    async def stream(self, call: Call, *, silence: float) -> AsyncIterator[Stream]:
        """A response to be read piece by piece, if its status is a success. Sent once.

        The call's timeout is for the head of the response; ``silence`` is in seconds, for each piece.
        """
        request = self._request(call)
        async with contextlib.AsyncExitStack() as stack:
            opened = await stack.enter_async_context(self._transport.stream(request, silence=silence))
            if self._may_try_another_credential(opened):
                opened = await stack.enter_async_context(self._transport.stream(request, silence=silence))
            if opened.status >= HTTPStatus.MULTIPLE_CHOICES:
                body = await opened.body(MAX_ERROR_BYTES)
                raise_for_status(
                    Response(status=opened.status, fields=opened.fields, body=body, credential=opened.credential)
                )
            yield opened

    def _may_try_another_credential(self, response: Response | Stream) -> bool:
        """A 401 is answered before a request is carried out, so that a write may be repeated too."""
        return response.status == HTTPStatus.UNAUTHORIZED and self._transport.credentials.reject(response.credential)

    def _request(self, call: Call) -> Request:
        fields, body, omitted = [("accept", call.accept)], None, _NONE
        if call.body is not None:
            fields.append(("content-type", call.content_type))
            body = call.body if isinstance(call.body, bytes) else orjson.dumps(call.body)
        if call.fields:
            # In lower case: of names that differ only in case the library would keep the last alone.
            given = [(name.lower(), value) for name, value in call.fields]
            omitted = frozenset(name for name, _ in given)
            fields = [each for each in fields if each[0] not in omitted]
            fields += [(name, value) for name, value in given if value is not None]
        limit = self.config.max_response_bytes if call.limit is None else call.limit
        return Request(
            method=call.method,
            target=call.target(),
            fields=fields,
            omitted=omitted,
            body=body,
            timeout=self._timeout(call),
            limit=limit,
        )

    def _timeout(self, call: Call) -> float:
        return self.config.timeout if call.timeout is None else call.timeout

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class ResourceClient:
    """The verbs of one resource, in one namespace or in none."""

    def __init__(self, client: Client, resource: GroupVersionResource, *, namespace: str = "") -> None:
        self.client, self.gvr, self.namespace = client, resource, namespace

    def in_namespace(self, namespace: str) -> ResourceClient:
        return ResourceClient(self.client, self.gvr, namespace=namespace)

    def path(self, name: str = "", *, subresource: str = "") -> str:
        return self.gvr.path(namespace=self.namespace, name=name, subresource=subresource)

    async def get(self, name: str, *, subresource: str = "", resource_version: str = "") -> Object:
        query = {"resourceVersion": resource_version or None}
        return await self.client.call(Call("GET", self._object(name, subresource), query=query))

    async def list(self, options: ListOptions | None = None) -> Object:
        """One page: all of the list unless the options have a limit."""
        chosen = options or ListOptions()
        return await self.client.call(Call("GET", self.path(), query=chosen.query(), timeout=chosen.timeout))

    async def pages(
        self, options: ListOptions | None = None, *, page_size: int = PAGE_SIZE
    ) -> AsyncGenerator[Object, None]:
        """A list page by page. Raises ExpiredError when the pages take longer than the server keeps their version."""
        chosen = replace(options or ListOptions(), limit=page_size)
        while True:
            page = await self.list(chosen)
            yield page
            token = metadata(page).get("continue")
            if not isinstance(token, str) or not token:
                return
            # The token holds the resource version; a server refuses both.
            chosen = replace(chosen, continue_token=token, resource_version="", resource_version_match="")

    async def list_all(
        self, options: ListOptions | None = None, *, page_size: int = PAGE_SIZE, max_items: int = MAX_ITEMS
    ) -> Object:
        """All pages as one list, of one version: again in one page when the pages expire. Raises LimitError."""
        try:
            return await self._all_pages(options, page_size=page_size, max_items=max_items)
        except errors.GoneError:
            whole = await self.list(options)
            _check_count(items(whole), max_items)
            return whole

    async def _all_pages(self, options: ListOptions | None, *, page_size: int, max_items: int) -> Object:
        whole: Object | None = None
        async with contextlib.aclosing(self.pages(options, page_size=page_size)) as pages:
            async for page in pages:
                if whole is None:
                    whole = {**page, "items": items(page)}
                else:
                    whole["items"] += items(page)
                    whole["metadata"] = metadata(page)
                _check_count(whole["items"], max_items)
        return whole or {}

    async def create(self, obj: Mapping[str, Any], options: WriteOptions | None = None) -> Object:
        return await self._write(Call("POST", self.path(), body=obj), options)

    async def update(
        self, obj: Mapping[str, Any], options: WriteOptions | None = None, *, subresource: str = ""
    ) -> Object:
        """Replaces an object; with its resourceVersion, only if it is still of that version."""
        path = self._object(_name_of(obj), subresource)
        return await self._write(Call("PUT", path, body=obj), options)

    async def patch(
        self,
        name: str,
        patch: Any,
        options: WriteOptions | None = None,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Object:
        path = self._object(name, subresource)
        return await self._write(Call("PATCH", path, body=patch, content_type=patch_type), options)

    async def apply(self, obj: Mapping[str, Any], options: WriteOptions, *, subresource: str = "") -> Object:
        """Server-side apply. The options must name a field manager."""
        return await self.patch(_name_of(obj), obj, options, patch_type=PatchType.APPLY, subresource=subresource)

    async def _write(self, call: Call, options: WriteOptions | None) -> Object:
        chosen = options or WriteOptions()
        return await self.client.call(replace(call, query=chosen.query(), timeout=chosen.timeout))

    async def delete(self, name: str, options: DeleteOptions | None = None) -> Object:
        """The deleted object, or a Status. Raises NotFoundError."""
        chosen = options or DeleteOptions()
        path = self._object(name, "")
        return await self.client.call(Call("DELETE", path, body=chosen.body(), timeout=chosen.timeout))

    async def delete_collection(
        self, selection: ListOptions | None = None, options: DeleteOptions | None = None
    ) -> Object:
        chosen, query = options or DeleteOptions(), (selection or ListOptions()).query()
        return await self.client.call(
            Call("DELETE", self.path(), query=query, body=chosen.body(), timeout=chosen.timeout)
        )

    async def log(self, name: str, **query: str | int | bool | None) -> str:
        """The log of a pod; keywords are the parameters of the API, such as ``container`` and ``tailLines``."""
        return await self.client.text(Call("GET", self._object(name, "log"), query=query))

    def _object(self, name: str, subresource: str) -> str:
        if not name:
            raise ValueError("the object must have a name")  # else the call would be one of the collection
        return self.path(name, subresource=subresource)


def decode_object(response: Response) -> Object:
    """The JSON object of a response. Raises MalformedResponseError."""
    document = parse_object(response.body)
    if document is not None:
        return document
    kind = errors.printable(response.headers.get("content-type", ""), 100) or "no content type"
    error = errors.MalformedResponseError(
        f"the server answers with status {response.status} and no JSON object of a usual depth ({kind})",
        status=response.status,
    )
    error.excerpt = _excerpt(response)
    raise error


def _excerpt(response: Response) -> errors.Excerpt:
    return errors.Excerpt(response.headers.get("content-type", ""), response.body[: errors.MAX_EXCERPT])


def parse_object(body: bytes) -> Object | None:
    """The JSON object that the bytes are; None for anything else, and for one that is nested too deep."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) and not _is_too_deep(body, document) else None


def _is_too_deep(body: bytes, document: Object) -> bool:
    """Whether lists and maps are nested deeper than what orjson can write: 254 levels. It reads 1,024."""
    if body.count(b"{") + body.count(b"[") <= _MAX_OPENINGS:
        return False
    try:
        orjson.dumps(document)
    except orjson.JSONEncodeError:
        return True
    return False


def raise_for_status(response: Response) -> None:
    """Raises the APIStatusError of a response that is a failure, or RedirectError."""
    if response.status in _REDIRECTS:
        location = errors.printable(response.headers.get("location", ""), 500)
        raise errors.RedirectError(
            f"the server answers with a redirect ({response.status}) to {location or 'nowhere'}, which is not followed",
            status=response.status,
            location=location,
        )
    if response.status >= HTTPStatus.BAD_REQUEST:
        error = _status_error(response)
        error.excerpt = _excerpt(response)
        raise error


def _status_error(response: Response) -> errors.APIStatusError:
    retry_after = parse_retry_after(response.headers.get("retry-after"))
    status = parse_object(response.body) or {}
    if status.get("kind") == "Status" and isinstance(status.get("message", ""), str):
        return errors.from_status({**status, "code": response.status}, retry_after=retry_after)
    said = errors.printable(response.body[:8192].decode("utf-8", "replace"))
    return errors.from_code(
        response.status, said or f"the server answers with status {response.status}", retry_after=retry_after
    )


def metadata(obj: Mapping[str, Any]) -> Object:
    """The metadata of an object or a list; empty if it has none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def items(page: Mapping[str, Any]) -> list[Object]:
    """The objects of a list. Raises MalformedResponseError for what is no list."""
    found = page.get("items")
    if found is None:
        found = []  # as Go writes an empty list in some places
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise errors.MalformedResponseError("the server answers with no list of objects", status=HTTPStatus.OK)
    return found


def _check_count(found: list[Object], max_items: int) -> None:
    if len(found) > max_items:
        raise errors.LimitError(f"the list has more than {max_items} objects")


def _name_of(obj: Mapping[str, Any]) -> str:
    return str(metadata(obj).get("name") or "")
