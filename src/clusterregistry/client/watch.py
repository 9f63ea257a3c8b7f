"""Watches: the events of one connection, and a watch that resumes where the last one ended.

``watch`` is one connection until the server ends it. ``RetryWatcher`` goes on from the last resource version for as
long as the server has it, as client-go's does. A 410 is a GoneError: the caller lists anew. ``informer`` does all of
this.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from clusterregistry.client import errors
from clusterregistry.client.rest import Call, ListOptions, Object, ResourceClient, metadata, parse_object
from clusterregistry.client.retry import Backoff, may_repeat
from clusterregistry.client.transport import Stream

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the initial events."""

MAX_LINE = 16 << 20
"""Bytes of one event. etcd takes objects of 1.5 MiB; as JSON such an object is some times as large."""

WATCH_SECONDS = 300
"""For which a watch lasts; the server ends it then, and the next one finds whatever went wrong without notice."""

_GRACE = 15.0
"""Seconds beyond the end of a watch after which a silent server counts as gone."""

_CHANGES = frozenset({ADDED, MODIFIED, DELETED})


_EVERYTHING = ListOptions()


@dataclass(frozen=True, slots=True)
class Event:
    """One event. The object of a BOOKMARK has a resource version and no more."""

    type: str
    object: Object

    @property
    def resource_version(self) -> str:
        found = metadata(self.object).get("resourceVersion")
        return found if isinstance(found, str) else ""

    @property
    def ends_initial_events(self) -> bool:
        annotations = metadata(self.object).get("annotations")
        return self.type == BOOKMARK and isinstance(annotations, dict) and annotations.get(INITIAL_EVENTS_END) == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """What to watch, from where, for how long."""

    selection: ListOptions = _EVERYTHING
    """Its selectors count."""
    resource_version: str = ""
    """Empty: synthetic ADDED events for all objects, then changes; ``0`` the same, perhaps of an older state."""
    bookmarks: bool = True
    send_initial_events: bool = False
    """A list as ADDED events and a bookmark at their end, where the server can do so; else InvalidError."""
    seconds: int = WATCH_SECONDS
    max_line: int = MAX_LINE

    def query(self) -> dict[str, str | int | bool | None]:
        query = replace(self.selection, limit=0, continue_token="", resource_version_match="").query()
        query.update({
            "watch": True,
            "resourceVersion": self.resource_version or None,
            "allowWatchBookmarks": True if self.bookmarks else None,
            "timeoutSeconds": self.seconds,
        })  # fmt: skip
        if self.send_initial_events:
            query.update({"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"})
        return query


async def watch(resource: ResourceClient, options: WatchOptions | None = None) -> AsyncGenerator[Event, None]:
    """The events of one watch until the server ends it, bookmarks included.

    Raises GoneError when the resource version is too old, else the APIStatusError of an ERROR event or of the
    response, and TransportError. Close it when leaving early (``contextlib.aclosing``).
    """
    chosen = options or WatchOptions()
    call = Call("GET", resource.path(), query=chosen.query())
    async with (
        resource.client.stream(call, silence=chosen.seconds + _GRACE) as stream,
        contextlib.aclosing(_lines(stream, chosen.max_line)) as lines,
    ):
        async for line in lines:
            yield _decode_event(line)


async def _lines(stream: Stream, limit: int) -> AsyncGenerator[bytes, None]:
    """Whole lines. What stands behind the last line feed is an event that was cut: the stream has ended early."""
    begun: list[bytes] = []
    size = 0
    async with contextlib.aclosing(stream.pieces()) as pieces:
        async for piece in pieces:
            first, *others = piece.split(b"\n")
            begun.append(first)
            size += len(first)
            for other in others:
                if size > limit:
                    break
                if line := b"".join(begun):
                    yield line
                begun, size = [other], len(other)
            if size > limit:
                raise errors.ResponseTooLargeError(
                    f"an event of the watch has more than {limit} bytes", status=HTTPStatus.OK
                )
    if any(begun):
        raise errors.DisconnectedError("the watch ended within an event")


def _decode_event(line: bytes) -> Event:
    document = parse_object(line)
    if document is None:
        raise errors.MalformedResponseError("an event of the watch is no JSON object", status=HTTPStatus.OK)
    kind, obj = document.get("type"), document.get("object")
    if not isinstance(obj, dict):
        raise errors.MalformedResponseError("an event of the watch has no object", status=HTTPStatus.OK)
    if kind == ERROR:
        raise errors.from_status(obj)
    if kind not in _CHANGES and kind != BOOKMARK:
        shown = errors.printable(str(kind), 40)
        raise errors.MalformedResponseError(f"an event of the watch has the type {shown!r}", status=HTTPStatus.OK)
    return Event(kind, obj)


class RetryWatcher:
    """A watch without end: it resumes at the last resource version, after a pause when there was a failure.

    ``resource_version`` is where it would resume. Failures that do not pass by themselves are raised: GoneError,
    ForbiddenError, an untrusted certificate and the like.
    """

    def __init__(
        self,
        resource: ResourceClient,
        options: WatchOptions,
        *,
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if options.resource_version in {"", "0"}:
            raise ValueError("a watch that resumes must start at a resource version, as a list has it")
        self._resource, self._options, self._sleep = resource, options, sleep
        self._backoff = backoff or Backoff(first=1.0)
        self.resource_version = options.resource_version

    async def events(
        self, *, on_failure: Callable[[errors.ClientError], None] | None = None
    ) -> AsyncGenerator[Event, None]:
        """ADDED, MODIFIED, DELETED and BOOKMARK. ``on_failure`` is called with each failure that is passed over."""
        failures = 0
        while True:
            received = False
            try:
                async with contextlib.aclosing(self._once()) as events:
                    async for event in events:
                        received, failures = True, 0
                        yield event
            except errors.ClientError as error:
                if not is_passing(error):
                    raise
                if on_failure is not None:
                    on_failure(error)
                failures += 1
                await self._sleep(_pause(error, self._backoff, failures))
            else:
                if not received:
                    # The server ends watches at once: it is shutting down, or it is another program.
                    failures += 1
                    await self._sleep(self._backoff.pause(failures))

    async def _once(self) -> AsyncGenerator[Event, None]:
        options = replace(self._options, resource_version=self.resource_version, send_initial_events=False)
        async with contextlib.aclosing(watch(self._resource, options)) as events:
            async for event in events:
                self.resource_version = event.resource_version or self.resource_version
                yield event


def is_passing(error: errors.ClientError) -> bool:
    """Whether a watch or a list that failed so may succeed later."""
    if isinstance(error, errors.RequestTimeoutError | errors.ExecPluginError | errors.InternalError):
        return True
    return may_repeat(error, repeatable=True)


def _pause(error: errors.ClientError, backoff: Backoff, failures: int) -> float:
    named: Any = error.retry_after if isinstance(error, errors.APIStatusError) else None
    return backoff.pause(failures) if named is None else max(float(named), 0.1)
