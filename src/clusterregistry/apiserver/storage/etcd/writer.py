"""Writes: each is one transaction on the revision of its key, and is sent once, unless the claim of another refused it.

A transaction whose answer is lost may have happened, or may still happen. That cannot be found out: even the very value
that was to be written can be another's. So the caller is told that it is not known, and decides for itself.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from functools import lru_cache
from typing import Any

from clusterregistry.apiserver.storage.errors import (
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    StorageUnavailable,
    ValueTooLarge,
)
from clusterregistry.apiserver.storage.etcd import errors, messages
from clusterregistry.apiserver.storage.etcd.client import ATTEMPT_SECONDS, Endpoints
from clusterregistry.apiserver.storage.etcd.key_range import INTERNAL, TOUCHED, Range
from clusterregistry.apiserver.storage.etcd.writer_lease import WriterLease

_UNSIGNED = (1 << 64) - 1
"""Numbers below zero are written as those that are as much below this one."""


def put(key: bytes, value: bytes) -> bytes:
    """A RequestOp that sets a key."""
    # PutRequest: key 1, value 2
    content = b"".join((b"\x0a", _length(len(key)), key, b"\x12", _length(len(value)), value))
    return b"".join((b"\x12", _length(len(content)), content))  # request_put 2


def delete(key: bytes) -> bytes:
    """A RequestOp that removes a key."""
    content = b"".join((b"\x0a", _length(len(key)), key))  # DeleteRangeRequest: key 1
    return b"".join((b"\x1a", _length(len(content)), content))  # request_delete_range 3


def write(key: bytes, change: bytes, *, at: int) -> bytes:
    """A TxnRequest that makes a change, a RequestOp, if the key's last one was at a revision, and else reads the key.

    Revision 0 is that of a key which is not there.
    """
    named = _length(len(key)) + key
    # Compare: target 2 is MOD, key 3, mod_revision 6
    compare = b"".join((b"\x10\x02\x1a", named, b"\x30", _number(at & _UNSIGNED)))
    # RequestOp: request_range 1, of that RangeRequest: key 1
    read = b"".join((b"\x0a", _length(len(named) + 1), b"\x0a", named))
    # TxnRequest: compare 1, success 2, failure 3
    parts = (b"\x0a", _length(len(compare)), compare, b"\x12", _length(len(change)), change)
    return b"".join((*parts, b"\x1a", _length(len(read)), read))


def _number(value: int) -> bytes:
    """As protobuf writes it: seven bits a byte, the lowest first."""
    made = bytearray()
    while value >= 0x80:  # noqa: PLR2004 - seven bits a byte
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


_length = lru_cache(maxsize=4096)(_number)
"""The same for what is seldom new."""


_LARGER = "raise etcd's --max-request-bytes, or have what is written there made smaller"
_TRY_SECONDS = 1.0
_WRITE_SECONDS = 6.0
"""How long a member may take for a write. It is not sent to another one, so a busy disk is better waited for."""
_NEVER = -1
"""No key is at this revision."""


class Writer:
    """Writes the keys of a range. Every method may raise StorageUnavailable."""

    def __init__(self, endpoints: Endpoints, range_: Range, claim: WriterLease) -> None:
        self._endpoints, self._range, self._claim = endpoints, range_, claim
        self._trying: asyncio.Task[None] | None = None
        self._closed = False
        self.problem = ""
        """Why writes cannot be taken now, for a person; empty when they can."""
        self.under_way = 0
        """Writes of objects that are not answered."""
        self._idle = asyncio.Event()
        self._unclear_until = 0.0
        self.answered = 0
        """The revision of the last write of an object that was."""

    def begin_anew(self) -> None:
        """What was answered before says nothing any longer: revisions begin anew."""
        self.answered = 0

    def may_be_ours(self, revision: int) -> bool:
        """Whether a change that is heard of can be a write of ours: answered, on its way, or without an answer."""
        if revision <= self.answered or self.under_way:
            return True
        return asyncio.get_running_loop().time() < self._unclear_until

    async def create(self, key: str, value: bytes) -> int:
        key.encode()  # a name without UTF-8 form can be asked for, but not written
        answer = await self._write(key, value, at=0)
        if not answer.succeeded:
            raise KeyExists(key)
        return int(answer.header.revision)

    async def update(self, key: str, value: bytes, *, expected: int) -> int:
        return await self._change(key, value, expected)

    async def delete(self, key: str, *, expected: int) -> int:
        return await self._change(key, None, expected)

    async def touch(self) -> int:
        """Makes a new revision, with an event that is ours and no object's."""
        # A value that no other has, so that one can tell which of several pasts the revision belongs to.
        put = {"request_put": {"key": self._range.key(TOUCHED), "value": os.urandom(8)}}
        return int((await self._transact(messages.TxnRequest(success=[put]), again=True)).header.revision)

    async def close(self) -> None:
        """Lets the writes of objects that are under way come to an end; nothing is tried any longer."""
        self._closed = True
        if self._trying is not None:
            self._trying.cancel()
        if self.under_way:
            self._idle.clear()
            await self._idle.wait()

    async def _change(self, key: str, value: bytes | None, expected: int) -> int:
        # For etcd a key that is not there is at revision 0; for us it is at none.
        answer = await self._write(key, value, at=expected if 0 < expected < 1 << 63 else _NEVER)
        if answer.succeeded:
            return int(answer.header.revision)
        found = answer.responses[0].response_range.kvs
        if not found:
            raise KeyNotFound(key)
        raise RevisionConflict(key, expected=expected, actual=found[0].mod_revision)

    async def _write(self, key: str, value: bytes | None, *, at: int) -> Any:
        """The answer to a transaction that sets the key (None: removes it) if it is at a revision, else reads it."""
        name = self._range.key(key)
        change = delete(name) if value is None else put(name, value)
        request = write(name, change, at=at)
        if key.startswith(INTERNAL):
            return await self._transact(request, again=False)
        self.under_way += 1
        try:
            while True:
                condition = self._claim.condition
                answer = await self._write_object(request + condition.encoded)
                if answer.succeeded:
                    self.answered = max(self.answered, answer.header.revision)
                    return answer
                if not await self._claim.refuses(condition, answer.responses[1].response_range.kvs):
                    return answer
        except errors.TooLargeError:
            raise ValueTooLarge(key, size=len(value or b""), remedy=_LARGER) from None
        finally:
            self.under_way -= 1
            if not self.under_way:
                self._idle.set()

    async def _write_object(self, request: bytes) -> Any:
        """Sends a transaction once. Whatever leaves open whether it was done puts an end to our claim."""
        try:
            return await self._transact(request, again=False)
        except errors.TooLargeError:
            raise
        except BaseException:
            self._claim.give_up()
            self._unclear_until = asyncio.get_running_loop().time() + _WRITE_SECONDS
            raise

    async def _transact(self, request: Any, *, again: bool) -> Any:
        try:
            seconds = ATTEMPT_SECONDS if again else _WRITE_SECONDS
            answer = await self._endpoints.call("txn", request, again=again, seconds=seconds)
        except StorageUnavailable as error:
            self._note(f"{error}; {error.remedy}" if error.remedy else str(error))
            raise
        self.problem = ""
        return answer

    def _note(self, problem: str) -> None:
        self.problem = problem
        if not self._closed and (self._trying is None or self._trying.done()):
            self._trying = asyncio.create_task(self._try_until_it_works())

    async def _try_until_it_works(self) -> None:
        """Who is told of a problem may send no more writes: so we have to find out when it is over."""
        while self.problem:
            await asyncio.sleep(_TRY_SECONDS)
            with suppress(StorageUnavailable):
                await self.touch()
