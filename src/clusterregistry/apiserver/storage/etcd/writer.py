"""Writes to etcd: each is one transaction on the revision of its key, and of the guards that it has.

A guard is an internal key. The transaction sets it beside the object, at the same revision, on condition that its last
change is not newer than the revision that the guard names.

A transaction is sent once, unless it failed on the condition of the writer lease. If its response is lost, it may have
been executed or may still be: even when the key holds the value, another writer may have written the same. The caller
gets StorageUnavailable with these words and decides.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from clusterregistry.apiserver.storage.errors import (
    GuardConflict,
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    StorageUnavailable,
    ValueTooLarge,
)
from clusterregistry.apiserver.storage.etcd import errors, messages
from clusterregistry.apiserver.storage.etcd.client import ATTEMPT_SECONDS, Client
from clusterregistry.apiserver.storage.etcd.key_range import INTERNAL, TOUCHED, KeyRange
from clusterregistry.apiserver.storage.etcd.writer_lease import WriterLease
from clusterregistry.apiserver.storage.interface import Guard

_WRITE_SECONDS = 6.0
"""How long a member may take for a write. It is not sent to another member, so it is better to wait for a busy disk."""

_PROBE_SECONDS = 1.0
_TOO_LARGE_REMEDY = "raise etcd's --max-request-bytes, or write smaller values"

_NEVER = -1
"""No key is at this revision."""

_GUARDS = INTERNAL + "guards/"
"""The prefix of the keys of guards."""


class Writer:
    """Writes the keys of a range. Every method may raise StorageUnavailable."""

    def __init__(self, client: Client, key_range: KeyRange, lease: WriterLease) -> None:
        self._client, self._range, self._lease = client, key_range, lease
        self._probe: asyncio.Task[None] | None = None
        self._closed = False
        self.problem = ""
        """Why writes fail now, for an operator; empty when they succeed."""
        self.in_flight = 0
        """Writes of objects without a response yet."""
        self._idle = asyncio.Event()
        self._unknown_until = 0.0
        """Until this loop time a write with a lost response may still be executed."""
        self.acknowledged = 0
        """The revision of the last write of an object that succeeded."""

    def reset(self) -> None:
        """Forgets the last revision, since etcd was restored to an earlier one."""
        self.acknowledged = 0

    def may_be_own(self, revision: int) -> bool:
        """True if the event at a revision can be a write of this process: acknowledged, in flight, or lost."""
        if revision <= self.acknowledged or self.in_flight:
            return True
        return asyncio.get_running_loop().time() < self._unknown_until

    async def create(self, key: str, value: bytes, *, guards: Sequence[Guard] = ()) -> int:
        key.encode()  # a key without a UTF-8 form can be read, but not written
        response = await self._write(key, value, expected=0, guards=guards)
        if response.succeeded:
            return int(response.header.revision)
        if guards and not response.responses[0].response_range.kvs:
            raise _guard_conflict(guards, response)
        raise KeyExists(key)

    async def update(self, key: str, value: bytes, *, expected: int, guards: Sequence[Guard] = ()) -> int:
        return await self._change(key, value, expected=expected, guards=guards)

    async def delete(self, key: str, *, expected: int) -> int:
        return await self._change(key, None, expected=expected)

    async def touch(self) -> int:
        """Makes a new revision by writing an internal key, and returns it."""
        # A random value: after a restore it shows which history the revision belongs to.
        put = {"request_put": {"key": self._range.key(TOUCHED), "value": os.urandom(8)}}
        return int((await self._transact(messages.TxnRequest(success=[put]), repeatable=True)).header.revision)

    async def close(self) -> None:
        """Waits for the writes of objects in flight and stops probing."""
        self._closed = True
        if self._probe is not None:
            self._probe.cancel()
        if self.in_flight:
            self._idle.clear()
            await self._idle.wait()

    async def _change(self, key: str, value: bytes | None, *, expected: int, guards: Sequence[Guard] = ()) -> int:
        # In etcd a key that does not exist is at revision 0; in the interface it is at none.
        wanted = expected if 0 < expected < 1 << 63 else _NEVER
        response = await self._write(key, value, expected=wanted, guards=guards)
        if response.succeeded:
            return int(response.header.revision)
        found = response.responses[0].response_range.kvs
        if not found:
            raise KeyNotFound(key)
        if guards and found[0].mod_revision == expected:
            raise _guard_conflict(guards, response)
        raise RevisionConflict(key, expected=expected, actual=found[0].mod_revision)

    async def _write(self, key: str, value: bytes | None, *, expected: int, guards: Sequence[Guard] = ()) -> Any:
        """Returns the response of a transaction that sets the key (None: deletes it), or reads it if it has changed."""
        name = self._range.key(key)
        change = messages.encode_delete(name) if value is None else messages.encode_put(name, value)
        request = messages.encode_write(name, change, expected=expected)
        if key.startswith(INTERNAL):
            return await self._transact(request, repeatable=False)
        guarded = self._encode_guards(guards) if guards else b""
        self.in_flight += 1
        try:
            while True:
                condition = self._lease.condition
                response = await self._write_object(request + condition.encoded + guarded)
                if response.succeeded:
                    self.acknowledged = max(self.acknowledged, response.header.revision)
                    return response
                if not await self._lease.failed_on(condition, response.responses[1].response_range.kvs):
                    return response
        except errors.RequestTooLargeError:
            raise ValueTooLarge(key, size=len(value or b""), remedy=_TOO_LARGE_REMEDY) from None
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self._idle.set()

    def _encode_guards(self, guards: Sequence[Guard]) -> bytes:
        """Appended to a transaction, which then also sets the keys of the guards, or reads them if it fails."""
        keys = [self._range.key(_GUARDS + guard.name) for guard in guards]
        return bytes(
            messages.TxnRequest(
                compare=[
                    messages.not_modified_after(key, guard.revision) for key, guard in zip(keys, guards, strict=True)
                ],
                success=[{"request_put": {"key": key}} for key in keys],
                failure=[{"request_range": {"key": key}} for key in keys],
            ).SerializeToString()
        )

    async def _write_object(self, request: bytes) -> Any:
        """Sends a transaction once. An error that leaves its outcome unknown ends the writer lease."""
        try:
            return await self._transact(request, repeatable=False)
        except errors.RequestTooLargeError:
            raise
        except BaseException:
            self._lease.abandon()
            self._unknown_until = asyncio.get_running_loop().time() + _WRITE_SECONDS
            raise

    async def _transact(self, request: Any, *, repeatable: bool) -> Any:
        try:
            seconds = ATTEMPT_SECONDS if repeatable else _WRITE_SECONDS
            response = await self._client.call("txn", request, repeatable=repeatable, seconds=seconds)
        except StorageUnavailable as error:
            self._note_problem(f"{error}; {error.remedy}" if error.remedy else str(error))
            raise
        self.problem = ""
        return response

    def _note_problem(self, problem: str) -> None:
        self.problem = problem
        if not self._closed and (self._probe is None or self._probe.done()):
            self._probe = asyncio.create_task(self._probe_until_writable())

    async def _probe_until_writable(self) -> None:
        """Clients may send no writes to a server that is not ready, so the end of a problem has to be probed for."""
        while self.problem:
            await asyncio.sleep(_PROBE_SECONDS)
            with suppress(StorageUnavailable):
                await self.touch()


def _guard_conflict(guards: Sequence[Guard], response: Any) -> GuardConflict:
    """The error of a transaction that failed on its guards, whose responses follow those of the key and the lease."""
    found = [each.response_range.kvs for each in response.responses[2:]]
    newest = {guard.name: kvs[0].mod_revision for guard, kvs in zip(guards, found, strict=True) if kvs}
    name = max(newest, key=newest.__getitem__)
    return GuardConflict(name, revision=newest[name])
