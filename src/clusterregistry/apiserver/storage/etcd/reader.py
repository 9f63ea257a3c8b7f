"""Reads of keys, now and at a revision, and of the past. All are linearizable: no member answers from memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from itertools import chain, pairwise
from typing import Any

from clusterregistry.apiserver.storage.errors import RevisionCompacted, RevisionInFuture
from clusterregistry.apiserver.storage.etcd import errors, messages
from clusterregistry.apiserver.storage.etcd.client import ATTEMPT_SECONDS, Endpoints
from clusterregistry.apiserver.storage.etcd.key_range import INTERNAL, TOUCHED, Range
from clusterregistry.apiserver.storage.etcd.member import Member
from clusterregistry.apiserver.storage.etcd.watch_loop import Answer, Wanted, answers
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page

_PAGE = 2000
"""Keys that one answer of etcd may hold: a large list is read in several, all at one revision."""

_AT_ONCE = 2
"""Parts of a whole list that are asked for at a time: etcd prepares one while we take the other apart."""

_NAMES = 10_000
"""The same, without values."""

_PAGE_SECONDS = 5.0
"""How long a member may take for that many."""

_NOWHERE = INTERNAL + "nowhere"
"""A key that never exists: reading it tells the current revision and nothing else."""

_NEWEST = (1 << 63) - 1
"""The largest revision that can be written down."""


class Reader:
    """Reads the keys of a range. Every method may raise StorageUnavailable."""

    def __init__(self, endpoints: Endpoints, range_: Range) -> None:
        self._endpoints, self._range = endpoints, range_
        self._waiting: list[asyncio.Future[int]] = []
        self._asking: asyncio.Task[None] | None = None

    def revision(self) -> asyncio.Future[int]:
        """The current one. Those who ask at the same time share a request that begins after each of them asked."""
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_for_all())
        return answer

    async def _ask_for_all(self) -> None:
        """One question after the other, each for all who wait when it begins."""
        while waiting := self._waiting:
            self._waiting = []
            outcome: int | Exception
            try:
                outcome = await self._ask()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is for those who wait
                outcome = error
            for answer in waiting:
                _settle(answer, outcome)
        self._asking = None

    async def _ask(self) -> int:
        request = messages.RangeRequest(key=self._range.key(_NOWHERE), limit=1)
        return int((await self._endpoints.call("range", request)).header.revision)

    async def get(self, key: str) -> KeyValue | None:
        answer = await self._endpoints.call("range", messages.RangeRequest(key=self._range.key(key)))
        return KeyValue(key, answer.kvs[0].value, answer.kvs[0].mod_revision) if answer.kvs else None

    async def list(self, prefix: str, *, revision: int, after: str, limit: int) -> Page:
        """As the port says."""
        first, end = self._range.bounds(prefix, after)
        items: list[KeyValue] = []
        while True:
            wanted = min(limit - len(items), _PAGE) if limit > 0 else _PAGE
            answer = await self._read((first, end), revision=revision, limit=wanted)
            revision = revision or answer.header.revision
            items += self._range.key_values(answer.kvs)
            first = answer.kvs[-1].key + b"\0" if answer.kvs else end
            if not answer.more or len(items) == limit:
                hidden = await self._hidden((first, end), revision) if answer.more else 0
                return Page(items, revision, answer.count - len(answer.kvs) - hidden)

    async def list_all(self, prefix: str, *, revision: int, known: Iterable[str]) -> Page:
        """All keys with a prefix. Those that are ``known`` to be there tell where to divide them.

        In pages one after the other, etcd would count all that remain for each of them. Right it is in any case.
        """
        first, end = self._range.bounds(prefix)
        splits = [self._range.key(name) for name in sorted(known)[_PAGE::_PAGE] if name.startswith(prefix)]
        begin, *others = pairwise([first, *(key for key in splits if first < key), end])
        items, revision = await self._part(begin, revision)
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def part(keys: tuple[bytes, bytes]) -> Sequence[KeyValue]:
            async with at_once:
                return (await self._part(keys, revision))[0]

        parts = [asyncio.create_task(part(each)) for each in others]
        try:
            found = await asyncio.gather(*parts)
        finally:
            for each in parts:
                each.cancel()
        return Page([*items, *chain.from_iterable(found)], revision, 0)

    async def _part(self, keys: tuple[bytes, bytes], revision: int) -> tuple[Sequence[KeyValue], int]:
        """What is in a range, and at which revision."""
        first, end = keys
        items: list[KeyValue] = []
        more = True
        while more:
            answer = await self._read((first, end), revision=revision, limit=_PAGE)
            revision, more = revision or answer.header.revision, answer.more
            items += self._range.key_values(answer.kvs)
            first = answer.kvs[-1].key + b"\0" if answer.kvs else end
        return items, revision

    async def names(self, revision: int) -> set[str]:
        """All keys at a revision."""
        first, end = self._range.bounds("")
        names: set[str] = set()
        more = True
        while more:
            answer = await self._read((first, end), revision=revision, limit=_NAMES, keys_only=True)
            names.update(self._range.name(kv.key) for kv in answer.kvs)
            more = answer.more
            first = answer.kvs[-1].key + b"\0" if answer.kvs else end
        return names - {""}

    async def history(self, prefix: str, *, after: int, until: int, limit: int) -> Sequence[Event]:
        """The events behind a revision, at most ``limit`` (0: all), and not a part of a revision.

        At ``until`` there must be an event: etcd itself does not say that nothing more is to come.
        """

        async def attempt(member: Member) -> Sequence[Event]:
            found: list[Event] = []
            async with aclosing(await self._watch(member, Wanted(after=after, keys=self._range.bounds("")))) as batches:
                async for batch, _ in batches:
                    found += [event for event in self._range.events(batch) if event.key.startswith(prefix)]
                    if 0 < limit <= len(found):
                        return [event for event in found if event.revision <= found[limit - 1].revision]
                    if batch and batch[-1].kv.mod_revision >= until:
                        break
            return found

        try:
            return await self._endpoints.persist(attempt)
        except RevisionCompacted as error:
            raise RevisionCompacted(after, compacted=error.compacted) from None

    async def still_has(self, event: Any) -> bool:
        """Whether etcd's past has an event just as it was told, as far as it still knows."""
        kv = event.kv
        try:
            answer = await self._endpoints.call("range", messages.RangeRequest(key=kv.key, revision=kv.mod_revision))
        except errors.CompactedError:
            return True
        except errors.NotYetError:
            return False
        if event.type == messages.DELETE:
            return not answer.kvs
        return bool(answer.kvs) and answer.kvs[0] == kv

    async def oldest(self) -> int:
        """The oldest revision that can be read. etcd says so only to a watch that asks for an older one."""

        async def attempt(member: Member) -> None:
            async with aclosing(
                await self._watch(member, Wanted(after=0, keys=(self._range.key(TOUCHED), b"")))
            ) as batches:
                async for batch, _ in batches:
                    if batch:
                        return

        try:
            await self._endpoints.persist(attempt)
        except RevisionCompacted as error:
            return error.compacted
        return 1

    async def _watch(self, member: Member, wanted: Wanted) -> AsyncGenerator[Answer, None]:
        stream = await member.watch(await self._endpoints.session.metadata(member), wanted.request())
        return answers(stream, wanted, quiet=ATTEMPT_SECONDS)

    async def _read(self, keys: tuple[bytes, bytes], *, revision: int, limit: int, keys_only: bool = False) -> Any:
        if revision < 0:  # for etcd that is the current one
            raise RevisionCompacted(revision, compacted=await self.oldest())
        first, end = keys
        request = messages.RangeRequest(
            key=first, range_end=end, limit=limit, revision=min(revision, _NEWEST), keys_only=keys_only
        )
        try:
            return await self._endpoints.call("range", request, seconds=_PAGE_SECONDS)
        except errors.CompactedError:
            raise RevisionCompacted(revision, compacted=await self.oldest()) from None
        except errors.NotYetError:
            raise RevisionInFuture(revision, current=await self.revision()) from None

    async def _hidden(self, keys: tuple[bytes, bytes], revision: int) -> int:
        """How many of the keys in a range are no objects, but of our own making."""
        ours = self._range.bounds(INTERNAL)
        first, end = max(keys[0], ours[0]), min(keys[1], ours[1])
        if first >= end:
            return 0
        request = messages.RangeRequest(key=first, range_end=end, revision=revision, count_only=True)
        return int((await self._endpoints.call("range", request)).count)


def _settle(answer: asyncio.Future[int], outcome: int | Exception) -> None:
    if answer.done():  # who asked has given up
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
