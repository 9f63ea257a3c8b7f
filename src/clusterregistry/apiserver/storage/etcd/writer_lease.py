"""The claim: while one replica has it, nobody else writes, and what it remembers is all that there is.

Every write of an object is on condition that the claim is its writer's or nobody's, so etcd itself refuses the writes
of others. The claim hangs on a lease: who has it can go by its own clock, and when its process dies the claim does too.
Who meets another's claim wishes for it to go, and the other lets it go at once.

Nothing here is about reading. A replica without the claim reads as ever, and so does one that is not certain of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from clusterregistry.apiserver.storage.errors import StorageError, StorageUnavailable
from clusterregistry.apiserver.storage.etcd import errors, messages
from clusterregistry.apiserver.storage.etcd.client import ATTEMPT_SECONDS, Endpoints
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError
from clusterregistry.apiserver.storage.etcd.key_range import INTERNAL, Range

_LEASE_SECONDS = 3
"""How long a claim outlives its process, and others may have to wait for that. etcd may make it more."""

_CERTAIN = 1 / 3
"""The part of that in which the holder relies on it. A leader that is cut off does not know for a while that there is
another one, and prolongs leases all the same: the rest is more than the time in which two can lead."""

_PROLONG_SECONDS = 0.4

_FIRST = 5.0
"""Seconds until the claim is made at the start: that of a predecessor has ended by then, and others were heard of."""

_SOON = 1.0
"""The same after something went wrong."""

_NOT_SOON = 60.0
"""The same after another replica wrote, wanted to, or had the claim: it will want to again, and should not have to wait
for our lease to end if something becomes of us meanwhile."""

_GIVE_WAY_SECONDS = 0.5
"""How long to wait for a holder that is there: it takes milliseconds."""

_PATIENCE_SECONDS = 10.0
"""How long to wait for one that is not there any more; its lease ends before, if etcd is well."""

_IN_THE_WAY = "another replica, the only one to write so far, has not given way yet"
_REMEDY = "try again: its claim ends with its process, some seconds later"

# Goes on while a machine is suspended, where there is such a clock.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_log = logging.getLogger(__name__)


class Condition(NamedTuple):
    """That the claim is as we know it."""

    revision: int
    """That of our claim, 0: nobody has one."""
    encoded: bytes
    """To be put behind a transaction, which then reads the claim too if it is refused: for ``refuses``."""


class WriterLease:
    """Made again and again as long as ``run`` does, and let go for whoever wants to write.

    ``listens`` tells whether ``heard`` is told of all events: who does not hear wishes must not have the claim.
    """

    def __init__(self, endpoints: Endpoints, range_: Range, *, listens: Callable[[], bool]) -> None:
        self._endpoints, self._listens = endpoints, listens
        self._key, self._wish = range_.key(INTERNAL + "claim"), range_.key(INTERNAL + "wish")
        # What hangs on no lease is no claim, but the copy of one that somebody has made by hand: it would never end.
        self._nobodys = messages.without_lease(self._key)
        self._condition = Condition(0, self._along(self._nobodys))
        self.revision = 0
        """That of our claim, as far as we know; 0 without one. It may have ended, which etcd then says."""
        self._lease = 0
        self._certain_until = 0.0
        self._over = asyncio.Event()
        self._not_before = 0.0
        self._wishing: asyncio.Task[None] | None = None
        self._freed = asyncio.Event()
        self._closed = False

    # Having it

    @property
    def is_certain(self) -> bool:
        """Whether nobody else can have written since the claim was made."""
        return time.clock_gettime(_CLOCK) < self._certain_until

    def give_up(self) -> None:
        """Relies on it no longer, and has it let go."""
        self._certain_until = 0.0
        self._over.set()

    async def run(self) -> None:
        """Makes the claim, keeps it for as long as it can, and begins anew; until it is cancelled.

        Then nothing is let go: where a loop comes to its end there are no connections left for that.
        """
        self._put_off(_FIRST)
        while True:
            await self._wait_until_due()
            self._over.clear()
            try:
                if await self.let_go():  # else it could not be let go before, and still cannot
                    await self._hold()
            except (StorageError, RpcError, DecodeError, TimeoutError) as error:
                _log.debug("the claim was lost, or could not be made: %s", error)
            except Exception:  # noqa: BLE001 - the next one may do better; without any, reads ask for ever and nobody knows why
                _log.exception("making or keeping the claim failed")
            finally:
                self._certain_until = 0.0
            await self.let_go()
            self._put_off(_SOON)

    async def _hold(self) -> None:
        begun = time.clock_gettime(_CLOCK)
        lease = await self._endpoints.call("grant", messages.LeaseGrantRequest(ttl=_LEASE_SECONDS))
        self._lease = lease.id
        if await self._make():
            self._rely_on_it(begun, lease.ttl)
            await self._keep()
        else:
            self._put_off(_NOT_SOON)

    async def _make(self) -> bool:
        """Whether nobody had it."""
        change = {"request_put": {"key": self._key, "lease": self._lease}}
        request = messages.TxnRequest(compare=[self._nobodys], success=[change])
        answer = await self._endpoints.call("txn", request, again=False)
        if answer.succeeded:
            self.revision = int(answer.header.revision)
        return bool(answer.succeeded)

    async def _keep(self) -> None:
        """Prolongs it, until it is to be given up or has ended. Raises RpcError, TimeoutError, StorageError."""
        member = self._endpoints.member
        request = messages.LeaseKeepAliveRequest(id=self._lease).SerializeToString()
        sent = time.clock_gettime(_CLOCK)
        stream = await member.prolong(await self._endpoints.session.metadata(member), request)
        try:
            while self._listens() and not self._over.is_set():
                async with asyncio.timeout(ATTEMPT_SECONDS):
                    answer = messages.LeaseKeepAliveResponse.FromString(await stream.read())
                if answer.ttl <= 0:
                    return
                self._rely_on_it(sent, answer.ttl)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_PROLONG_SECONDS):
                        await self._over.wait()
                sent = time.clock_gettime(_CLOCK)
                stream.write(request)
        finally:
            stream.cancel()

    def _rely_on_it(self, since: float, seconds: int) -> None:
        """The lease was prolonged after the time ``since``."""
        if not self._over.is_set():
            self._certain_until = since + seconds * _CERTAIN

    async def let_go(self) -> bool:
        """Ends the lease, and the claim with it. If that cannot be done it ends by itself.

        Whether it is gone: until that is known our writes are on condition of it, or it would be in their way.
        """
        if self._lease:
            try:
                async with asyncio.timeout(ATTEMPT_SECONDS):
                    await self._endpoints.call("revoke", messages.LeaseRevokeRequest(id=self._lease))
            except errors.LeaseEndedError:
                pass
            except (StorageError, TimeoutError):
                return False
            self._lease = self.revision = 0
        return True

    async def _wait_until_due(self) -> None:
        loop = asyncio.get_running_loop()
        while (left := self._not_before - loop.time()) > 0 or not self._listens():  # noqa: ASYNC110 - it may be put off
            await asyncio.sleep(max(left, _PROLONG_SECONDS))

    def _put_off(self, seconds: float) -> None:
        self._not_before = max(self._not_before, asyncio.get_running_loop().time() + seconds)

    # Writing

    @property
    def condition(self) -> Condition:
        """Of a transaction that writes: the claim is ours, or nobody's."""
        revision = self.revision
        if self._condition.revision != revision:
            unchanged = messages.modified_at(self._key, revision) if revision else self._nobodys
            self._condition = Condition(revision, self._along(unchanged))
        return self._condition

    def _along(self, unchanged: dict[str, Any]) -> bytes:
        reading = {"request_range": {"key": self._key}}
        return bytes(messages.TxnRequest(compare=[unchanged], failure=[reading]).SerializeToString())

    async def refuses(self, condition: Condition, found: Any) -> bool:
        """Whether it was for its condition that a write was not done; then the way is clear to try again.

        ``found`` is what was read of the claim. Raises StorageUnavailable when another's claim stays in the way.
        """
        lease = found[0].lease if found else 0
        revision, expected = found[0].mod_revision if lease else 0, condition.revision
        if revision == expected:
            return False
        if revision and lease == self._lease:  # it has just been made, and we are yet to hear of it
            self.revision = revision
            return True
        if expected and expected == self.revision:  # it has ended before its time
            self.give_up()
            self.revision = 0
        if revision:
            await self._clear_the_way()
        return True

    async def _clear_the_way(self) -> None:
        """Has the claim of another go. Those who want that at the same time wish for it together."""
        if self._wishing is None or self._wishing.done():
            self._wishing = asyncio.create_task(self._wish_until_it_is_gone())
            self._wishing.add_done_callback(_forget)
        await asyncio.shield(self._wishing)

    async def _wish_until_it_is_gone(self) -> None:
        self._put_off(_NOT_SOON)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE_SECONDS
        while loop.time() < deadline and not self._closed:
            self._freed.clear()
            wish = {"request_put": {"key": self._wish}}
            request = messages.TxnRequest(compare=[self._nobodys], failure=[wish])
            if (await self._endpoints.call("txn", request)).succeeded:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_GIVE_WAY_SECONDS):
                    await self._freed.wait()
                    return
        raise StorageUnavailable(_IN_THE_WAY, remedy=_REMEDY)

    def close(self) -> None:
        """Wishes for nothing any more. A claim of ours stays, for the writes under way, until it is let go."""
        self._closed = True
        self._freed.set()  # whoever waits for another to give way tries once more, and is told that it is in the way

    # Hearing of others

    def give_way(self) -> None:
        """Somebody else writes, or wants to."""
        self._put_off(_NOT_SOON)
        self.give_up()

    def heard(self, events: Iterable[Any]) -> None:
        """Events of etcd, whatever they are about."""
        for event in events:
            if event.kv.key == self._wish:
                self.give_way()
            elif event.kv.key == self._key:
                if event.type == messages.DELETE:
                    self._freed.set()
                if 0 < self.revision < event.kv.mod_revision:
                    self.give_up()


def _forget(task: asyncio.Task[None]) -> None:
    """It may be that nobody waits for it any longer."""
    if not task.cancelled():
        task.exception()
