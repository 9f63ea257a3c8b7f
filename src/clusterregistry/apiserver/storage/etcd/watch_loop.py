"""Following all changes under a prefix, whatever becomes of the member that tells them.

A watch that breaks off goes on at the next member, from the revision after the last one that was heard of: nothing is
missed and nothing comes twice. Only a history that etcd has compacted meanwhile cannot be made up for, or one that an
etcd restored from a snapshot does not have; the listener hears of that gap.
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
from clusterregistry.apiserver.storage.etcd.client import ATTEMPT_SECONDS, PATIENCE_SECONDS, Endpoints
from clusterregistry.apiserver.storage.etcd.http2.frames import Metadata
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, StatusCode, Stream, unavailable
from clusterregistry.apiserver.storage.etcd.lineage import Restored
from clusterregistry.apiserver.storage.etcd.member import Member

Answer = tuple[list[Any], int]
"""Events, and the revision that etcd has come to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The events behind a revision of the keys from one to another."""

    after: int
    keys: tuple[bytes, bytes]
    from_next: bool = False
    """Begin with the next revision: etcd then has it open at once. But if that is just what history was compacted to,
    it does not say that it has forgotten a deletion there; hence else it is asked for the revision itself."""

    def request(self) -> Any:
        start = self.after + 1 if self.from_next else max(self.after, 1)
        keys = {"key": self.keys[0], "range_end": self.keys[1]}
        asked = {"start_revision": start, "prev_kv": True, "fragment": True, "progress_notify": True}
        return messages.WatchRequest(create_request={**keys, **asked})


class EventAssembler:
    """Makes whole revisions of what etcd answers to one watch."""

    def __init__(self, wanted: Wanted) -> None:
        self._after = wanted.after
        self._events: list[Any] = []

    def take(self, message: bytes) -> Answer | None:
        """The events that an answer completes; None when it completes nothing.

        The first answer is empty, with revision 0, and says that the watch is open; another empty one tells how far
        etcd has come. Raises RevisionCompacted, and RpcError when the watch is over.
        """
        answer = _read(message)
        if answer.compact_revision:
            raise RevisionCompacted(self._after, compacted=answer.compact_revision)
        if answer.canceled:
            raise unavailable(answer.cancel_reason or "the watch was ended")
        after = self._after
        self._events += (event for event in answer.events if event.kv.mod_revision > after)
        whole, self._events = _split(self._events) if answer.fragment else (self._events, [])
        if whole or not answer.events:
            return whole, 0 if answer.created else answer.header.revision
        return None


async def answers(stream: Stream, wanted: Wanted, *, quiet: float) -> AsyncGenerator[Answer, None]:
    """Yields the events of a watch that was asked for on a stream, never a part of a revision.

    When nothing is heard for ``quiet`` seconds, or the watch ends, that is an RpcError. Raises RevisionCompacted. Ends
    the stream when it is closed itself.
    """
    telling = EventAssembler(wanted)
    try:
        while True:
            try:
                async with asyncio.timeout(quiet):
                    message = await stream.read()
            except TimeoutError:
                raise nothing_heard(quiet) from None
            answer = telling.take(message)
            if answer is not None:
                yield answer
    finally:
        stream.cancel()


def nothing_heard(seconds: float) -> RpcError:
    """For a watch that says nothing, though it was asked."""
    return RpcError(StatusCode.DEADLINE_EXCEEDED, f"nothing was heard for {seconds:g} s")


def _split(events: list[Any]) -> tuple[list[Any], list[Any]]:
    """What is complete, and the last revision, of which there may be more to come."""
    last = events[-1].kv.mod_revision if events else 0
    whole = [event for event in events if event.kv.mod_revision < last]
    return whole, events[len(whole) :]


def _read(message: bytes) -> Any:
    try:
        return messages.WatchResponse.FromString(message)
    except DecodeError as error:
        raise unavailable(f"what a watch tells cannot be read: {error}") from None


_ASK_SECONDS = 1.0
_QUIET_SECONDS = 3.0
"""A member that is asked each second and says nothing for that long is not waited for any longer."""

_BETWEEN_ASKING = 0.01
_PAUSE_SECONDS = 0.2

_TRUE_PROGRESS = {(3, 4): 31, (3, 5): 13}
"""The releases from which progress is told after the events and not before."""

_PROGRESS = messages.WatchRequest(progress_request={}).SerializeToString()

_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Who wants to hear of the changes."""

    def happened(self, events: Sequence[Any]) -> None:
        """Events, as etcd tells them, in the order of their revisions; no more of the last one will follow."""

    def progressed(self, revision: int) -> None:
        """There is nothing more up to this revision."""

    async def interrupted(self) -> int:
        """What happened in the meantime is forgotten. Returns the revision after which to go on."""

    async def verify(self, last: Any) -> None:
        """Raises Restored if etcd's past is not the one that was told; ``last`` is the last event of it, if any."""


class WatchLoop:
    """One watch on all keys of a range, for as long as the process lives."""

    def __init__(self, endpoints: Endpoints, keys: tuple[bytes, bytes], *, listener: Listener) -> None:
        self._endpoints, self._keys, self._listener = endpoints, keys, listener
        self._after = 0
        self._from_next = False
        self._last: Any = None
        self._stream: Stream | None = None
        self._opened = asyncio.Event()
        self._wanted = asyncio.Event()
        self._heard = 0.0
        self.progress_is_true = False
        """Whether the member that tells of changes can be asked if there are more to come."""
        self.problem = ""
        """Why changes are not heard of now, for a person; empty when they are."""

    async def run(self, *, after: int, from_next: bool = True) -> None:
        """Follows what happens behind a revision, until it is cancelled.

        ``from_next`` says that there will be a next revision soon: until then such a watch does not answer.
        """
        self._after, self._from_next = after, from_next
        while True:
            member, token = self._endpoints.member, self._endpoints.session.token
            try:
                await self._follow(member)
            except RevisionCompacted as error:
                _log.warning("the watch on etcd was away for too long: %s", error)
                await self._start_anew()
            except Restored as error:
                self.problem = str(error)
                await self._start_anew()
            except RpcError as error:
                self._broke_off(member, token, error)
            except StorageError as error:
                self.problem = str(error)
            except Exception as error:  # noqa: BLE001 - the next watch may do better, and none at all is worse
                _log.exception("the watch on etcd failed")
                self.problem = f"the watch on etcd failed: {error!r}"
            await asyncio.sleep(_PAUSE_SECONDS)

    async def wait_until_open(self) -> None:
        """Returns once the first watch is open. Raises StorageUnavailable when that takes long."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._opened.wait()
        except TimeoutError:
            raise StorageUnavailable(self.problem or "etcd does not answer to a watch") from None

    def ask_for_progress(self) -> None:
        """Has etcd say how far it has come, though nothing of ours may have changed."""
        self._wanted.set()

    def start_anew(self, error: Restored) -> None:
        """Has the watch end, and begin with what etcd has now."""
        if self._stream is not None:
            self._stream.cancel(error)

    async def _follow(self, member: Member) -> None:
        metadata = await self._endpoints.session.metadata(member)
        self.progress_is_true = await _can_be_asked(member, metadata)
        if self._opened.is_set():
            await self._listener.verify(self._last)
        wanted = Wanted(after=self._after, keys=self._keys, from_next=self._from_next and not self._opened.is_set())
        stream = self._stream = await member.watch(metadata, wanted.request())
        self._listen(stream, EventAssembler(wanted), member)
        asking = asyncio.create_task(self._keep_asking(stream))
        try:
            raise await stream.wait_for_end()
        finally:
            self._stream = None
            asking.cancel()
            stream.cancel()

    def _listen(self, stream: Stream, telling: EventAssembler, member: Member) -> None:
        """Has each answer dealt with as it comes. Nobody waits for it: that would cost more than what is done then."""
        loop = asyncio.get_running_loop()
        self._heard = loop.time()

        def heard(message: bytes) -> None:
            self._heard = loop.time()
            try:
                answer = telling.take(message)
                if answer is not None:
                    self.problem = ""
                    self._endpoints.stay(member)
                    self._opened.set()
                    self._hear(*answer)
            except Exception as error:  # noqa: BLE001 - for who waits for the end
                stream.cancel(error)

        stream.sink = heard

    async def _keep_asking(self, stream: Stream) -> None:
        """Once a second, and when somebody wants to know. The answers show too that the member is there."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ASK_SECONDS):
                    await self._wanted.wait()
            self._wanted.clear()
            if asyncio.get_running_loop().time() - self._heard > _QUIET_SECONDS:
                stream.cancel(nothing_heard(_QUIET_SECONDS))
            stream.write(_PROGRESS)
            await asyncio.sleep(_BETWEEN_ASKING)

    def _hear(self, events: list[Any], revision: int) -> None:
        if events:
            self._listener.happened(events)
            self._last = events[-1]
            self._after = self._last.kv.mod_revision
        elif self.progress_is_true and revision > self._after:
            self._listener.progressed(revision)
            self._after = revision

    def _broke_off(self, member: Member, token: str, error: RpcError) -> None:
        self.problem = f"the watch on etcd broke off: {error.details}"
        if errors.needs_new_token(error):
            self._endpoints.session.forget(token)
        self._endpoints.leave(member, error)

    async def _start_anew(self) -> None:
        try:
            self._after = await self._listener.interrupted()
            self._last = None
        except StorageError as error:
            self.problem = str(error)


async def _can_be_asked(member: Member, metadata: Metadata) -> bool:
    try:
        answer = await member.call("status", messages.StatusRequest(), metadata=metadata, seconds=ATTEMPT_SECONDS)
    except RpcError as error:
        if error.code is not StatusCode.PERMISSION_DENIED:
            raise
        return True  # only newer releases (3.4.42, 3.5.28, 3.6) keep their version from users who are not root
    return tells_true_progress(answer.version)


def tells_true_progress(version: str) -> bool:
    """Whether a release of etcd tells of progress only after the events up to there."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if not found:
        return False
    major, minor, patch = map(int, found.groups())
    return (major, minor) > (3, 5) or patch >= _TRUE_PROGRESS.get((major, minor), math.inf)
