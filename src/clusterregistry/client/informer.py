"""An informer: a cache of the objects of a resource, kept current by a list and a watch, with handlers for changes.

The first state comes as a stream of events (``sendInitialEvents``) where the server can do so, else as pages of a list.
Afterwards a watch goes on from the last resource version, over ends of connections and restarts of the server, until
the server has forgotten that version (410): then everything is listed anew, and handlers see what changed meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clusterregistry.client import errors
from clusterregistry.client.rest import PAGE_SIZE, ListOptions, Object, ResourceClient, items, metadata
from clusterregistry.client.retry import Backoff
from clusterregistry.client.store import IndexFunc, Store, key_of
from clusterregistry.client.watch import BOOKMARK, DELETED, WATCH_SECONDS, Event, WatchOptions, watch

_log = logging.getLogger(__name__)

_STEADY_SECONDS = 5.0
"""A watch that lasted so long has worked: the next failure is the first again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """Functions for changes, called one at a time in the order of the events, on the loop of the informer.

    They must be short: usually they add a key to a work queue. An exception is logged and the informer goes on.
    ``on_update`` is also called by a resync, with the same object twice.
    """

    on_add: Callable[[Object], None] = lambda _: None
    on_update: Callable[[Object, Object], None] = lambda _, __: None
    on_delete: Callable[[Object], None] = lambda _: None
    """With the last known state, which may not be the one before the deletion."""


_EVERYTHING = ListOptions()
_BACKOFF = Backoff(first=0.8, longest=30.0, jitter=1.0)
"""client-go's figures for a reflector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerOptions:
    """What is cached, and how."""

    selection: ListOptions = _EVERYTHING
    """Its selectors count."""
    resync_seconds: float = 0.0
    """Between calls of ``on_update`` for all objects; 0 is never."""
    page_size: int = PAGE_SIZE
    max_objects: int = 200_000
    """More than these are an error, and the cache stays as it was."""
    send_initial_events: bool = True
    """Ask for a stream instead of a list; servers that cannot do so get a list."""
    initial_events_seconds: float = 60.0
    """For the whole stream. Servers before 1.27 ignore the question, and would never end it."""
    watch_seconds: int = WATCH_SECONDS
    """The least that a watch lasts; up to twice as long, so that a fleet of clients does not reconnect at once."""
    transform: Callable[[Object], Object] = lambda obj: obj
    """What is kept of an object, such as one without managed fields."""
    backoff: Backoff = _BACKOFF


class Informer:
    """Keeps ``store`` current while ``run`` runs. Used on one loop."""

    def __init__(
        self,
        resource: ResourceClient,
        options: InformerOptions | None = None,
        *,
        indexers: Mapping[str, IndexFunc] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.store = Store(indexers)
        self.last_error: errors.ClientError | None = None
        """Why the cache is not current now; None while the watch works."""
        self.resource_version = ""
        """Up to which the cache is current; empty: a list is needed."""
        self._resource, self._options, self._sleep = resource, options or InformerOptions(), sleep
        self._streams = self._options.send_initial_events
        self._handlers: list[Handler] = []
        self._synced = asyncio.Event()
        self._failures, self._worked = 0, False

    @property
    def has_synced(self) -> bool:
        """Whether the cache has held a whole state at least once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Waits for the first whole state; see ``asyncio.timeout`` for a limit."""
        await self._synced.wait()

    def add_handler(self, handler: Handler) -> Callable[[], None]:
        """Adds a handler, which is called for the objects that are there already; returns a function to remove it."""
        self._handlers.append(handler)
        for obj in self.store.objects():
            _guarded(handler.on_add, obj)
        return lambda: self._handlers.remove(handler) if handler in self._handlers else None

    async def run(self) -> None:
        """Keeps the cache current until it is cancelled. Never raises an error of the server or of the network."""
        async with asyncio.TaskGroup() as tasks:
            if self._options.resync_seconds > 0:
                tasks.create_task(self._resync())
            while True:
                await self._follow()

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._options.resync_seconds)
            for obj in self.store.objects():
                self._notify_update(obj, obj)

    async def _follow(self) -> None:
        """One watch, with a list before it if one is needed, and a pause if that did not work."""
        self._worked = False
        begun = asyncio.get_running_loop().time()
        try:
            await self._list_and_watch()
            failure = None
        except errors.ClientError as error:
            self._note(error)
            failure = error
        if self._worked or asyncio.get_running_loop().time() - begun >= _STEADY_SECONDS:
            self._failures = 0
            if failure is None:
                return
        # Without a failure the server ended a watch at once: it is about to end itself.
        self._failures += 1
        await self._sleep(self._pause(failure))

    def _note(self, error: errors.ClientError) -> None:
        self.last_error = error
        if isinstance(error, errors.GoneError):
            self.resource_version = ""
            _log.info("%s: the server has forgotten the resource version, listing anew", self._resource.path())
        else:
            _log.warning("%s cannot be watched: %s", self._resource.path(), error)

    def _pause(self, error: errors.ClientError | None) -> float:
        named = error.retry_after if isinstance(error, errors.APIStatusError) else None
        pause = self._options.backoff.pause(self._failures)
        return pause if named is None else max(pause, min(named, 2 * self._options.backoff.longest))

    async def _list_and_watch(self) -> None:
        if not self.resource_version and self._streams:
            try:
                return await self._watch_list()
            except (errors.InvalidError, errors.BadRequestError):
                self._streams = False  # the server cannot send initial events
        if not self.resource_version:
            await self._list()
        return await self._watch()

    async def _list(self) -> None:
        listed = await self._resource.list_all(
            self._options.selection, page_size=self._options.page_size, max_items=self._options.max_objects
        )
        version = metadata(listed).get("resourceVersion")
        if not isinstance(version, str) or not version:
            raise errors.MalformedResponseError("the list has no resource version")
        kind, api_version = str(listed.get("kind") or ""), listed.get("apiVersion")
        described = {"apiVersion": api_version, "kind": kind.removesuffix("List")}  # items of a list lack both
        self._replace([{**described, **obj} for obj in items(listed)], version)

    async def _watch_list(self) -> None:
        """The first state as events, and the changes behind it, on one connection."""
        initial: dict[str, Object] = {}
        complete = False
        try:
            async with (
                asyncio.timeout(self._options.initial_events_seconds) as deadline,
                contextlib.aclosing(self._events(send_initial_events=True)) as events,
            ):
                async for event in events:
                    if complete:
                        self._apply(event)
                    elif event.ends_initial_events:
                        complete = True
                        deadline.reschedule(None)
                        self._replace(list(initial.values()), event.resource_version)
                    else:
                        self._collect(initial, event)
        except TimeoutError:
            self._streams = False
            raise errors.RequestTimeoutError("the server does not end its initial events") from None
        if not complete:
            raise errors.DisconnectedError("the server ended the watch within the initial events")

    def _collect(self, initial: dict[str, Object], event: Event) -> None:
        if event.type == BOOKMARK:
            return
        if event.type == DELETED:
            initial.pop(key_of(event.object), None)
        else:
            initial[key_of(event.object)] = event.object
        self._check_count(len(initial))

    async def _watch(self) -> None:
        async with contextlib.aclosing(self._events(send_initial_events=False)) as events:
            async for event in events:
                self._apply(event)

    def _events(self, *, send_initial_events: bool) -> AsyncGenerator[Event, None]:
        seconds = self._options.watch_seconds * (1 + random.random())  # noqa: S311 - no secret
        options = WatchOptions(
            selection=self._options.selection,
            resource_version=self.resource_version,
            send_initial_events=send_initial_events,
            seconds=int(seconds),
        )
        return watch(self._resource, options)

    def _replace(self, objects: list[Object], version: str) -> None:
        """A whole new state. Objects of the same version as before are no change."""
        self._check_count(len(objects))
        gone = set(self.store.keys())
        for obj in objects:
            gone.discard(key_of(obj))
            self._put(obj)
        for key in gone:
            self._remove(key, None)
        self.resource_version, self.last_error = version, None
        self._synced.set()

    def _apply(self, event: Event) -> None:
        if event.type == DELETED:
            self._remove(key_of(event.object), event.object)
        elif event.type != BOOKMARK:
            self._put(event.object)
            self._check_count(len(self.store))
        self.resource_version = event.resource_version or self.resource_version
        self.last_error, self._worked = None, True

    def _put(self, obj: Object) -> None:
        key, kept = key_of(obj), self._options.transform(obj)
        before = self.store.put(key, kept)
        if before is None:
            self._notify(lambda handler: handler.on_add(kept))
        elif _version(before) != _version(kept) or not _version(kept):
            self._notify_update(before, kept)

    def _remove(self, key: str, last: Object | None) -> None:
        before = self.store.remove(key)
        if before is not None:
            obj = before if last is None else self._options.transform(last)
            self._notify(lambda handler: handler.on_delete(obj))

    def _check_count(self, count: int) -> None:
        if count > self._options.max_objects:
            raise errors.LimitError(f"there are more than {self._options.max_objects} objects")

    def _notify_update(self, before: Object, after: Object) -> None:
        self._notify(lambda handler: handler.on_update(before, after))

    def _notify(self, call: Callable[[Handler], None]) -> None:
        for handler in list(self._handlers):
            _guarded(call, handler)


def _version(obj: Mapping[str, Any]) -> Any:
    return metadata(obj).get("resourceVersion")


def _guarded(function: Callable[[Any], None], argument: Any) -> None:
    try:
        function(argument)
    except Exception:  # noqa: BLE001 - whatever it is: the cache must stay current
        _log.exception("a handler of an informer failed")
