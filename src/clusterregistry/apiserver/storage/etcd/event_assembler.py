"""What etcd answers to a watch, in whole revisions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from clusterregistry.apiserver.storage.errors import RevisionCompacted
from clusterregistry.apiserver.storage.etcd import messages
from clusterregistry.apiserver.storage.etcd.http2.status import RpcError, StatusCode, unavailable
from clusterregistry.apiserver.storage.etcd.http2.streams import Stream

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


class Telling:
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
    telling = Telling(wanted)
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
