"""What etcd answers to a watch, in whole revisions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from grpc import StatusCode
from grpc.aio import EOF

from clusterregistry.storage.errors import RevisionCompacted
from clusterregistry.storage.etcd import failures, messages

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


async def answers(stream: Any, wanted: Wanted, *, quiet: float) -> AsyncGenerator[Answer, None]:
    """Opens a watch on a stream and yields its events, never a part of a revision.

    The first answer is empty, with revision 0, and says that it is open; another empty one tells how far etcd has come.
    When nothing is heard for ``quiet`` seconds, or the watch ends, that is an AioRpcError. Raises RevisionCompacted.
    Ends the stream when it is closed itself.
    """
    events: list[Any] = []
    try:
        await stream.write(wanted.request())
        while True:
            answer = await _next(stream, after=wanted.after, quiet=quiet)
            events += (event for event in answer.events if event.kv.mod_revision > wanted.after)
            whole, events = _split(events) if answer.fragment else (events, [])
            if whole or not answer.events:
                yield whole, 0 if answer.created else answer.header.revision
    finally:
        stream.cancel()


def _split(events: list[Any]) -> tuple[list[Any], list[Any]]:
    """What is complete, and the last revision, of which there may be more to come."""
    last = events[-1].kv.mod_revision if events else 0
    whole = [event for event in events if event.kv.mod_revision < last]
    return whole, events[len(whole) :]


async def _next(stream: Any, *, after: int, quiet: float) -> Any:
    try:
        async with asyncio.timeout(quiet):
            answer = await stream.read()
    except TimeoutError:
        raise failures.error_of(StatusCode.DEADLINE_EXCEEDED, f"nothing was heard for {quiet:g} s") from None
    if answer is EOF:
        raise failures.error_of(StatusCode.UNAVAILABLE, "the connection was closed")
    if answer.compact_revision:
        raise RevisionCompacted(after, compacted=answer.compact_revision)
    if answer.canceled:
        raise failures.error_of(StatusCode.UNAVAILABLE, answer.cancel_reason or "the watch was ended")
    return answer
