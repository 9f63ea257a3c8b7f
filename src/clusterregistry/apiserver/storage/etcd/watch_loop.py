"""The watch on all keys of a registry, reopened on another member whenever it breaks off.

A watch resumes after the last revision that was received: no event is missed and none comes twice. There is a gap only
if etcd has compacted that revision, or was restored from a snapshot without it; the handler then reads everything
again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import DecodeError

from clusterregistry.apiserver.storage.errors import RevisionCompacted, StorageError, StorageUnavailable
from clusterregistry.apiserver.storage.etcd import errors, messages
from clusterregistry.apiserver.storage.etcd.client import (
    ATTEMPT_SECONDS,
    PATIENCE_SECONDS,
    Client,
    EtcdRestored,
    Member,
)
from clusterregistry.apiserver.storage.etcd.http2.frames import Metadata
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, StatusCode, Stream, unavailable

_PROGRESS_SECONDS = 1.0
_SILENCE_SECONDS = 3.0
"""A member that gets a progress request each second and sends nothing for so long is left."""

_PROGRESS_INTERVAL = 0.01
_PAUSE_SECONDS = 0.2

_RELIABLE_PROGRESS = {(3, 4): 31, (3, 5): 13}
"""The releases from which progress is reported after the events and not before."""

_PROGRESS_REQUEST = messages.WatchRequest(progress_request={}).SerializeToString()

_log = logging.getLogger(__name__)


class WatchHandler(Protocol):
    """Receives what the watch delivers."""

    def on_events(self, events: Sequence[Any]) -> None:
        """Handles etcd's events in the order of their revisions; the last revision is complete."""

    def on_progress(self, revision: int) -> None:
        """Handles that there are no more events up to a revision."""

    async def on_gap(self) -> int:
        """Reads everything again, since events are lost. Returns the revision after which to watch."""

    async def verify(self, last: Any) -> None:
        """Raises EtcdRestored if etcd's history does not hold ``last``, the last event received, if any."""


class WatchLoop:
    """One watch on all keys of a range, for the lifetime of the process."""

    def __init__(self, client: Client, keys: tuple[bytes, bytes], *, handler: WatchHandler) -> None:
        self._client, self._keys, self._handler = client, keys, handler
        self._after = 0
        self._from_next = False
        self._last: Any = None
        self._stream: Stream | None = None
        self._opened = asyncio.Event()
        self._progress_wanted = asyncio.Event()
        self._received = 0.0
        self.has_reliable_progress = False
        """True if the member can be asked whether more events follow."""
        self.problem = ""
        """Why no events are received now, for an operator; empty when they are."""

    async def run(self, *, after: int, from_next: bool = True) -> None:
        """Watches all changes after a revision until it is cancelled.

        ``from_next`` requires that there will be a next revision soon: until then such a watch does not respond.
        """
        self._after, self._from_next = after, from_next
        while True:
            member, token = self._client.member, self._client.session.token
            try:
                await self._watch(member)
            except RevisionCompacted as error:
                _log.warning("the watch on etcd was interrupted for too long: %s", error)
                await self._restart_after_gap()
            except EtcdRestored as error:
                self.problem = str(error)
                await self._restart_after_gap()
            except RpcError as error:
                self._note_failure(member, token, error)
            except StorageError as error:
                self.problem = str(error)
            except Exception as error:  # noqa: BLE001 - the next watch may succeed, and no watch at all is worse
                _log.exception("the watch on etcd failed")
                self.problem = f"the watch on etcd failed: {error!r}"
            await asyncio.sleep(_PAUSE_SECONDS)

    async def wait_until_open(self) -> None:
        """Returns once the first watch is open. Raises StorageUnavailable if that takes too long."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._opened.wait()
        except TimeoutError:
            raise StorageUnavailable(self.problem or "etcd does not answer to a watch") from None

    def request_progress(self) -> None:
        """Requests the revision up to which all events were sent, even if no key has changed."""
        self._progress_wanted.set()

    def restart(self, error: EtcdRestored) -> None:
        """Ends the watch and starts another one with the present state of etcd."""
        if self._stream is not None:
            self._stream.cancel(error)

    async def _watch(self, member: Member) -> None:
        metadata = await self._client.session.metadata(member)
        self.has_reliable_progress = await _member_has_reliable_progress(member, metadata)
        if self._opened.is_set():
            await self._handler.verify(self._last)
        start = WatchStart(after=self._after, keys=self._keys, from_next=self._from_next and not self._opened.is_set())
        stream = self._stream = await member.watch(metadata, start.request())
        self._receive_from(stream, EventAssembler(start), member)
        requesting = asyncio.create_task(self._keep_requesting_progress(stream))
        try:
            raise await stream.wait_for_end()
        finally:
            self._stream = None
            requesting.cancel()
            stream.cancel()

    def _receive_from(self, stream: Stream, assembler: EventAssembler, member: Member) -> None:
        """Handles each response in the callback that delivers it: waking a task costs more than handling it."""
        loop = asyncio.get_running_loop()
        self._received = loop.time()

        def receive(message: bytes) -> None:
            self._received = loop.time()
            try:
                batch = assembler.add(message)
                if batch is not None:
                    self.problem = ""
                    self._client.mark_healthy(member)
                    self._opened.set()
                    self._deliver(*batch)
            except Exception as error:  # noqa: BLE001 - raised in _watch
                stream.cancel(error)

        stream.sink = receive

    async def _keep_requesting_progress(self, stream: Stream) -> None:
        """Requests progress each second and on demand. The responses also show that the member is alive."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PROGRESS_SECONDS):
                    await self._progress_wanted.wait()
            self._progress_wanted.clear()
            if asyncio.get_running_loop().time() - self._received > _SILENCE_SECONDS:
                stream.cancel(silence_error(_SILENCE_SECONDS))
            stream.write(_PROGRESS_REQUEST)
            await asyncio.sleep(_PROGRESS_INTERVAL)

    def _deliver(self, events: list[Any], revision: int) -> None:
        if events:
            self._handler.on_events(events)
            self._last = events[-1]
            self._after = self._last.kv.mod_revision
        elif self.has_reliable_progress and revision > self._after:
            self._handler.on_progress(revision)
            self._after = revision

    def _note_failure(self, member: Member, token: str, error: RpcError) -> None:
        self.problem = f"the watch on etcd broke off: {error.details}"
        if errors.needs_new_token(error):
            self._client.session.forget(token)
        self._client.mark_failed(member, error)

    async def _restart_after_gap(self) -> None:
        try:
            self._after = await self._handler.on_gap()
            self._last = None
        except StorageError as error:
            self.problem = str(error)


async def _member_has_reliable_progress(member: Member, metadata: Metadata) -> bool:
    try:
        response = await member.call("status", messages.StatusRequest(), metadata=metadata, seconds=ATTEMPT_SECONDS)
    except RpcError as error:
        if error.code is not StatusCode.PERMISSION_DENIED:
            raise
        return True  # only newer releases (3.4.42, 3.5.28, 3.6) hide their version from users other than root
    return has_reliable_progress(response.version)


def has_reliable_progress(version: str) -> bool:
    """True if a release of etcd reports progress only after the events up to that revision."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if not found:
        return False
    major, minor, patch = map(int, found.groups())
    return (major, minor) > (3, 5) or patch >= _RELIABLE_PROGRESS.get((major, minor), math.inf)


# One watch stream: also used to read history


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStart:
    """Where a watch begins: the events after a revision of the keys in a range."""

    after: int
    keys: tuple[bytes, bytes]
    from_next: bool = False
    """Start at the next revision: etcd then opens the watch at once. But if history was compacted to just that
    revision, etcd does not report that it has lost a deletion there. So by default the watch starts at ``after``."""

    def request(self) -> Any:
        start = self.after + 1 if self.from_next else max(self.after, 1)
        keys = {"key": self.keys[0], "range_end": self.keys[1]}
        options = {"start_revision": start, "prev_kv": True, "fragment": True, "progress_notify": True}
        return messages.WatchRequest(create_request={**keys, **options})


Batch = tuple[list[Any], int]
"""The events of whole revisions, and the revision of the response."""


class EventAssembler:
    """Joins the responses to one watch into whole revisions."""

    def __init__(self, start: WatchStart) -> None:
        self._after = start.after
        self._events: list[Any] = []

    def add(self, message: bytes) -> Batch | None:
        """Returns the events that a response completes; None if it completes no revision.

        The first response is empty, with revision 0: the watch is open. Other empty responses report progress. Raises
        RevisionCompacted, and RpcError when the watch has ended.
        """
        response = _decode(message)
        if response.compact_revision:
            raise RevisionCompacted(self._after, compacted=response.compact_revision)
        if response.canceled:
            raise unavailable(response.cancel_reason or "the watch was cancelled")
        after = self._after
        self._events += (event for event in response.events if event.kv.mod_revision > after)
        whole, self._events = _split(self._events) if response.fragment else (self._events, [])
        if whole or not response.events:
            return whole, 0 if response.created else response.header.revision
        return None


async def read_batches(stream: Stream, start: WatchStart, *, silence: float) -> AsyncGenerator[Batch, None]:
    """Yields the events of the watch on a stream in whole revisions, and cancels the stream at the end.

    Raises RevisionCompacted, and RpcError if the watch ends or nothing is received for ``silence`` seconds.
    """
    assembler = EventAssembler(start)
    try:
        while True:
            try:
                async with asyncio.timeout(silence):
                    message = await stream.read()
            except TimeoutError:
                raise silence_error(silence) from None
            batch = assembler.add(message)
            if batch is not None:
                yield batch
    finally:
        stream.cancel()


def silence_error(seconds: float) -> RpcError:
    """The error of a watch without a response."""
    return RpcError(StatusCode.DEADLINE_EXCEEDED, f"nothing was received for {seconds:g} s")


def _split(events: list[Any]) -> tuple[list[Any], list[Any]]:
    """The events of complete revisions, and those of the last revision, which may continue."""
    last = events[-1].kv.mod_revision if events else 0
    whole = [event for event in events if event.kv.mod_revision < last]
    return whole, events[len(whole) :]


def _decode(message: bytes) -> Any:
    try:
        return messages.WatchResponse.FromString(message)
    except DecodeError as error:
        raise unavailable(f"a watch response cannot be decoded: {error}") from None
