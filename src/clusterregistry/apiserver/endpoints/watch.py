"""GET with ``watch=true``, and the older ``/watch/`` paths: a stream of changes.

A watch begins with the existing objects (no resource version, or 0) or with the changes since a revision. It goes on
with every change until its timeout, or until the client disconnects or the server stops.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.endpoints import encoding, negotiation, websocket
from clusterregistry.apiserver.endpoints.encoding import JSON_TYPE as JSON
from clusterregistry.apiserver.endpoints.encoding import PROTOBUF_STREAM_TYPE
from clusterregistry.apiserver.endpoints.negotiation import Representation
from clusterregistry.apiserver.endpoints.options import list_options
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.http.response import Answer, Outlet, Response, StreamResponse
from clusterregistry.apiserver.registry.broadcaster import ADDED, UnfilteredFeed
from clusterregistry.apiserver.registry.errors import api_error, watch_error
from clusterregistry.apiserver.registry.filtered import FilteredFeed
from clusterregistry.apiserver.registry.list import ListOptions, parse_revision, wait_until_fresh
from clusterregistry.apiserver.registry.watcher import Feed, Frame, Watcher
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import Event

_BOOKMARK_INTERVAL = 60.0
_BEFORE_THE_END = 2.0
_HISTORY_PAGE = 100
_INTERRUPTED = "The resourceVersion for the provided watch is too old."
"""The message of kube-apiserver when its own watch has missed events."""
_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """The minimum timeout of a watch that requests none (at most twice that), and the callback for slow clients."""

    min_timeout: float
    on_terminated: Callable[[], None]


async def watch(scope: RequestScope, request: Request, settings: WatchSettings) -> Answer:
    """Starts a watch. Raises 400, 406 and 422 before the stream begins; later errors are ERROR events in the stream."""
    representation = negotiation.negotiate_watch(request, native=scope.resource.native)
    include = request.query.first("includeObject")
    options = list_options(request.query, watch=True, fields=scope.fields)
    options.namespace, options.visible = request.info.path_namespace, request.visible
    if len(request.info.parts) > 1:  # the older path of one object's watch: .../watch/RESOURCE/NAME
        if not options.fields.empty:
            raise errors.bad_request("both a name and a field selector provided; please provide one or the other.")
        options.fields = options.fields.with_name(request.info.name)
    revision = parse_revision(options.resource_version)
    session = _Session(
        scope,
        request,
        options=options,
        representation=representation,
        include=include,
        revision=revision,
        settings=settings,
    )
    content_type = PROTOBUF_STREAM_TYPE if representation.media_type == negotiation.PROTOBUF else JSON
    if request.method == "HEAD":  # it has no body
        return Response(200, content_type, ())
    if websocket.is_requested(request):
        return websocket.switch(request, session.run, is_binary=content_type is PROTOBUF_STREAM_TYPE)
    return StreamResponse(200, content_type, session.run)


def _next_bookmark(now: float, deadline: float) -> float:
    """As in kube-apiserver: every minute, and shortly before the end, so that the client can resume close to now."""
    last = deadline - _BEFORE_THE_END
    return min(now + _BOOKMARK_INTERVAL, last if last > now else math.inf)


class _Session:
    """One watch, from its first frame to its last."""

    def __init__(  # noqa: PLR0913 - what a watch was asked for, all by keyword
        self,
        scope: RequestScope,
        request: Request,
        *,
        options: ListOptions,
        representation: Representation,
        include: str,
        revision: int,
        settings: WatchSettings,
    ) -> None:
        self._scope = scope
        self._request = request
        self._options = options
        self._representation = representation
        self._revision = revision
        self._settings = settings
        self._encode = encoding.event_encoder(scope, representation, include=include)
        self._key = (scope.group_version, representation, include)
        self._first = representation.kind == negotiation.TABLE

    async def run(self, outlet: Outlet) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout()
        feed = self._feed()
        leaving = loop.create_task(self._end_when_disconnected(feed.watcher))
        try:
            await self._stream(outlet, feed, deadline)
        finally:
            leaving.cancel()
            feed.leave()

    def _feed(self) -> Feed:
        scope, options, encode = self._scope, self._options, self._encode
        if options.visible.view() is not None:
            return FilteredFeed(scope.broadcaster, options=options, encode=encode, on_overflow=self._give_up)
        return UnfilteredFeed(
            scope.broadcaster, options=options, encode=encode, representation=self._key, on_overflow=self._give_up
        )

    def _timeout(self) -> float:
        given = self._options.timeout_seconds
        if given is not None and given > 0:
            return float(given)
        # As kube-apiserver does: spread, so that watches that began together do not end together.
        return self._settings.min_timeout * (1 + random.random())  # noqa: S311 - no secret depends on it

    async def _end_when_disconnected(self, watcher: Watcher[Any]) -> None:
        await self._request.disconnected()
        watcher.end()

    async def _stream(self, outlet: Outlet, feed: Feed, deadline: float) -> None:
        try:
            seen = await self._send_initial(outlet, feed)
            feed.begun(seen)
            await self._send_changes(outlet, feed, seen=seen, deadline=deadline)
        except errors.APIError as error:
            await outlet.send(encoding.event_framer(self._representation)("ERROR", orjson.dumps(error.status)))

    async def _send_changes(self, outlet: Outlet, feed: Feed, *, seen: int, deadline: float) -> None:
        loop, watcher = asyncio.get_running_loop(), feed.watcher
        bookmark_at = _next_bookmark(loop.time(), deadline)
        while not watcher.ended and loop.time() < deadline:
            # What the client will have seen once these frames are sent; while they are, more may happen.
            waited = await watcher.next(min(deadline, bookmark_at) - loop.time(), None if self._first else outlet)
            coming = await feed.next_delivery(waited)
            await self._send_frames(outlet, coming.frames)
            due = loop.time() >= bookmark_at
            if due:
                bookmark_at = _next_bookmark(loop.time(), deadline)
            # A client who comes from another replica may know a newer revision than this one.
            known = coming.revision >= seen and not watcher.ended
            if known and (due or coming.unmarked) and self._options.allow_watch_bookmarks:
                await self._send_bookmark(outlet, coming.revision)
        if watcher.interrupted:
            raise errors.gone(_INTERRUPTED)

    def _give_up(self) -> None:
        """Ends the connection of a client that does not keep up, and drops unsent bytes."""
        self._settings.on_terminated()
        if self._request.abort:
            self._request.abort()

    async def _send_initial(self, outlet: Outlet, feed: Feed) -> int:
        """Sends what precedes the live events; returns the revision up to which the client is informed."""
        initial = self._options.send_initial_events
        if initial or (initial is None and not self._revision):
            if self._revision:
                await wait_until_fresh(self._scope.store, self._revision)
            return await self._send_existing(outlet, feed)
        if self._revision:
            return await self._send_history(outlet, feed)
        now = self._scope.store.storage.revision
        await feed.resume(now)
        return now

    async def _send_existing(self, outlet: Outlet, feed: Feed) -> int:
        store, options = self._scope.store, self._options
        try:
            # 0 is any version, such as the cached one, even if the storage is unavailable.
            known = store.storage.revision if options.resource_version == "0" else 0
            page = await store.storage.list(options.prefix_in(store), revision=known)
        except StorageError as error:
            raise api_error(error) from error
        selected = await feed.existing(page)
        await self._send_frames(outlet, ((kv.revision, self._encode(ADDED, kv)) for kv in selected))
        if options.allow_watch_bookmarks and not feed.watcher.ended:
            await self._send_bookmark(outlet, page.revision, initial_events_end=True)
        return page.revision

    async def _send_history(self, outlet: Outlet, feed: Feed) -> int:
        seen, more = self._revision, True
        await feed.resume(seen)
        while more:
            # Page by page: for a client that was away for long, all events at once would take too much memory.
            events = await self._history(after=seen)
            await self._send_frames(outlet, await feed.history(events))
            seen = events[-1].revision if events else seen
            more = len(events) >= _HISTORY_PAGE  # more than that when others changed many keys in one revision
        return seen

    async def _history(self, *, after: int) -> Sequence[Event]:
        store = self._scope.store
        try:
            return await store.storage.history(self._options.prefix_in(store), after=after, limit=_HISTORY_PAGE)
        except StorageError as error:
            raise watch_error(error) from error

    async def _send_frames(self, outlet: Outlet, frames: Iterable[Frame]) -> None:
        """Joins frames into larger pieces: each piece is one TLS record and one system call."""
        waiting: list[bytes] = []
        size = 0
        for _, frame in frames:
            data = self._with_columns(frame)
            waiting.append(data)
            size += len(data)
            if size >= _PIECE:
                await outlet.send(b"".join(waiting))
                await asyncio.sleep(0)
                waiting, size = [], 0
        if waiting:
            await outlet.send(b"".join(waiting))

    async def _send_bookmark(self, outlet: Outlet, revision: int, *, initial_events_end: bool = False) -> None:
        frame = encoding.bookmark_bytes(
            self._scope, revision, self._representation, initial_events_end=initial_events_end
        )
        await outlet.send(self._with_columns(frame))

    def _with_columns(self, frame: bytes) -> bytes:
        if not self._first:
            return frame
        self._first = False
        return encoding.with_columns(self._scope, frame, self._representation)
