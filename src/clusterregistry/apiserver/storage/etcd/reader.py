"""Reads from etcd: keys now and at a revision, and history. All reads are linearizable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from itertools import chain, pairwise
from typing import Any

from clusterregistry.apiserver.storage.errors import RevisionCompacted, RevisionInFuture
from clusterregistry.apiserver.storage.etcd import errors, messages
from clusterregistry.apiserver.storage.etcd.client import ATTEMPT_SECONDS, Client, Member
from clusterregistry.apiserver.storage.etcd.key_range import INTERNAL, TOUCHED, KeyRange
from clusterregistry.apiserver.storage.etcd.watch_loop import Batch, WatchStart, read_batches
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page

_PAGE = 2000
"""Keys of one response: a large list is read in several, all at one revision."""

_CONCURRENT_PAGES = 2
"""Parts of a whole list that are requested at a time: etcd prepares one while the other is decoded."""

_NAMES_PAGE = 10_000
"""Keys of one response without values."""

_PAGE_SECONDS = 5.0
"""How long a member may take for a page."""

_MISSING_KEY = INTERNAL + "nowhere"
"""A key that never exists: reading it returns the current revision and nothing else."""

_MAX_REVISION = (1 << 63) - 1


class Reader:
    """Reads the keys of a range. Every method may raise StorageUnavailable."""

    def __init__(self, client: Client, key_range: KeyRange) -> None:
        self._client, self._range = client, key_range
        self._waiting: list[asyncio.Future[int]] = []
        self._requesting: asyncio.Task[None] | None = None

    # The current revision

    def revision(self) -> asyncio.Future[int]:
        """The current revision. Concurrent callers share one request, which is sent after each of their calls."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        if self._requesting is None:
            self._requesting = asyncio.create_task(self._request_revisions())
        return future

    async def _request_revisions(self) -> None:
        """Sends one request after the other, each for all callers that wait when it is sent."""
        while waiting := self._waiting:
            self._waiting = []
            outcome: int | Exception
            try:
                outcome = await self._request_revision()
            except Exception as error:  # noqa: BLE001 - the callers get it
                outcome = error
            for future in waiting:
                _settle(future, outcome)
        self._requesting = None

    async def _request_revision(self) -> int:
        request = messages.RangeRequest(key=self._range.key(_MISSING_KEY), limit=1)
        return int((await self._client.call("range", request)).header.revision)

    # Keys

    async def get(self, key: str) -> KeyValue | None:
        response = await self._client.call("range", messages.RangeRequest(key=self._range.key(key)))
        return KeyValue(key, response.kvs[0].value, response.kvs[0].mod_revision) if response.kvs else None

    async def list(self, prefix: str, *, revision: int, after: str, limit: int) -> Page:
        """Lists keys as the interface says."""
        first, end = self._range.bounds(prefix, after)
        items: list[KeyValue] = []
        while True:
            wanted = min(limit - len(items), _PAGE) if limit > 0 else _PAGE
            response = await self._read((first, end), revision=revision, limit=wanted)
            revision = revision or response.header.revision
            items += self._range.key_values(response.kvs)
            first = _next_key(response, end)
            if not response.more or len(items) == limit:
                internal = await self._count_internal((first, end), revision) if response.more else 0
                return Page(items, revision, response.count - len(response.kvs) - internal)

    async def list_all(self, prefix: str, *, revision: int, known: Iterable[str]) -> Page:
        """Lists all keys with a prefix. The ``known`` keys are used only to divide the range into pages of equal size.

        In pages one after the other, etcd would count all remaining keys for each of them.
        """
        first, end = self._range.bounds(prefix)
        splits = [self._range.key(name) for name in sorted(known)[_PAGE::_PAGE] if name.startswith(prefix)]
        begin, *others = pairwise([first, *(key for key in splits if first < key), end])
        items, revision = await self._read_range(begin, revision)
        semaphore = asyncio.Semaphore(_CONCURRENT_PAGES)

        async def read(keys: tuple[bytes, bytes]) -> Sequence[KeyValue]:
            async with semaphore:
                return (await self._read_range(keys, revision))[0]

        parts = [asyncio.create_task(read(each)) for each in others]
        try:
            found = await asyncio.gather(*parts)
        finally:
            for each in parts:
                each.cancel()
        return Page([*items, *chain.from_iterable(found)], revision, 0)

    async def _read_range(self, keys: tuple[bytes, bytes], revision: int) -> tuple[Sequence[KeyValue], int]:
        """All key-values of a range, and their revision."""
        first, end = keys
        items: list[KeyValue] = []
        more = True
        while more:
            response = await self._read((first, end), revision=revision, limit=_PAGE)
            revision, more = revision or response.header.revision, response.more
            items += self._range.key_values(response.kvs)
            first = _next_key(response, end)
        return items, revision

    async def names(self, revision: int) -> set[str]:
        """All keys at a revision."""
        first, end = self._range.bounds("")
        names: set[str] = set()
        more = True
        while more:
            response = await self._read((first, end), revision=revision, limit=_NAMES_PAGE, keys_only=True)
            names.update(self._range.name(kv.key) for kv in response.kvs)
            more, first = response.more, _next_key(response, end)
        return names - {""}

    async def _read(self, keys: tuple[bytes, bytes], *, revision: int, limit: int, keys_only: bool = False) -> Any:
        if revision < 0:  # which etcd would take for the current one
            raise RevisionCompacted(revision, compacted=await self.oldest_revision())
        first, end = keys
        request = messages.RangeRequest(
            key=first, range_end=end, limit=limit, revision=min(revision, _MAX_REVISION), keys_only=keys_only
        )
        try:
            return await self._client.call("range", request, seconds=_PAGE_SECONDS)
        except errors.CompactedError:
            raise RevisionCompacted(revision, compacted=await self.oldest_revision()) from None
        except errors.FutureRevisionError:
            raise RevisionInFuture(revision, current=await self.revision()) from None

    async def _count_internal(self, keys: tuple[bytes, bytes], revision: int) -> int:
        """How many keys of a range are internal."""
        internal = self._range.bounds(INTERNAL)
        first, end = max(keys[0], internal[0]), min(keys[1], internal[1])
        if first >= end:
            return 0
        request = messages.RangeRequest(key=first, range_end=end, revision=revision, count_only=True)
        return int((await self._client.call("range", request)).count)

    # History

    async def history(self, prefix: str, *, after: int, until: int, limit: int) -> Sequence[Event]:
        """The events after a revision, at most ``limit`` (0: all), in whole revisions.

        There must be an event at ``until``: etcd does not report that no more events follow.
        """

        async def attempt(member: Member) -> Sequence[Event]:
            found: list[Event] = []
            start = WatchStart(after=after, keys=self._range.bounds(""))
            async with aclosing(await self._watch(member, start)) as batches:
                async for batch, _ in batches:
                    found += [event for event in self._range.events(batch) if event.key.startswith(prefix)]
                    if 0 < limit <= len(found):
                        return [event for event in found if event.revision <= found[limit - 1].revision]
                    if batch and batch[-1].kv.mod_revision >= until:
                        break
            return found

        try:
            return await self._client.with_failover(attempt)
        except RevisionCompacted as error:
            raise RevisionCompacted(after, compacted=error.compacted) from None

    async def has_event(self, event: Any) -> bool:
        """True if etcd's history holds exactly this event, or has compacted it."""
        kv = event.kv
        try:
            response = await self._client.call("range", messages.RangeRequest(key=kv.key, revision=kv.mod_revision))
        except errors.CompactedError:
            return True
        except errors.FutureRevisionError:
            return False
        if event.type == messages.DELETE:
            return not response.kvs
        return bool(response.kvs) and response.kvs[0] == kv

    async def oldest_revision(self) -> int:
        """The oldest revision that can be read. etcd returns it only to a watch on an older one."""

        async def attempt(member: Member) -> None:
            start = WatchStart(after=0, keys=(self._range.key(TOUCHED), b""))
            async with aclosing(await self._watch(member, start)) as batches:
                async for batch, _ in batches:
                    if batch:
                        return

        try:
            await self._client.with_failover(attempt)
        except RevisionCompacted as error:
            return error.compacted
        return 1

    async def _watch(self, member: Member, start: WatchStart) -> AsyncGenerator[Batch, None]:
        stream = await member.watch(await self._client.session.metadata(member), start.request())
        return read_batches(stream, start, silence=ATTEMPT_SECONDS)


def _next_key(response: Any, end: bytes) -> bytes:
    """The first key after those of a response."""
    return bytes(response.kvs[-1].key + b"\0") if response.kvs else end


def _settle(future: asyncio.Future[int], outcome: int | Exception) -> None:
    if future.done():  # its caller was cancelled
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
