"""Writer lease: while one replica holds it, etcd refuses the objects that other replicas write.

Every write of an object is a transaction on the condition that the lease key belongs to its writer or to no replica.
So the holder has seen every committed write of an object, and may answer reads from memory without asking etcd. The
key is attached to an etcd lease: the holder trusts it by its own clock, and it expires when the process dies.

- ``_EtcdLease``: grants, renews and revokes the lease in etcd, and tracks how long it may be trusted.
- ``WriterLease``: acquires the lease key, releases it, and provides the condition of each write.
- Handover: a replica that wants to write while another one holds the lease writes the handover key. The holder sees
  that event in its watch and yields the lease at once.

A replica without the lease, or with one that it may not trust any more, reads from etcd as before.
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
from clusterregistry.apiserver.storage.etcd.client import ATTEMPT_SECONDS, Client
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError
from clusterregistry.apiserver.storage.etcd.key_range import INTERNAL, KeyRange

_LEASE_KEY, _HANDOVER_KEY = INTERNAL + "writer-lease", INTERNAL + "handover-request"
"""All replicas must use the same names: with others they would not exclude each other's writes."""

_LEASE_SECONDS = 3
"""How long the lease outlives its process, and how long other replicas may then have to wait. etcd may extend it."""

_TRUSTED_PART = 1 / 3
"""The part of the lease in which the holder trusts it. A leader that is cut off does not know for a while that there is
another one, and renews leases all the same: the rest is longer than two members can lead at the same time."""

_RENEW_SECONDS = 0.4

_FIRST_DELAY = 5.0
"""Seconds from the start to the first attempt: by then the lease of a predecessor has expired, and other writers have
been seen."""

_RETRY_DELAY = 1.0
"""Seconds to the next attempt after an error."""

_YIELD_DELAY = 60.0
"""Seconds to the next attempt after another replica wrote, wanted to write or held the lease. It will probably write
again, and should not have to wait for the lease to expire if this process dies."""

_HANDOVER_SECONDS = 0.5
"""How long to wait for a holder that runs: it takes milliseconds."""

_PATIENCE_SECONDS = 10.0
"""How long to wait for a holder that does not run any more: its lease expires before, if etcd is healthy."""

_NOT_RELEASED = "another replica holds the writer lease and has not released it"
_REMEDY = "try again: the lease expires some seconds after its process has ended"

# This clock continues while a machine is suspended, where the system has one.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_log = logging.getLogger(__name__)


class Condition(NamedTuple):
    """The condition of a write: the lease key is as this replica knows it."""

    revision: int
    """The revision of the lease key if this replica holds it, otherwise 0."""
    encoded: bytes
    """Appended to a transaction, which then also reads the lease key if it fails: for ``failed_on``."""


class _EtcdLease:
    """One lease in etcd. ``id`` is 0 if there is none, or if it is known to have ended."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.id = 0
        self.abandoned = asyncio.Event()
        self.trusted_until = 0.0
        """By ``_CLOCK``: the lease cannot have expired before."""

    def abandon(self) -> None:
        """Ends the trust in the lease and its renewal."""
        self.trusted_until = 0.0
        self.abandoned.set()

    def trust(self, *, since: float, seconds: int) -> None:
        """Trusts a lease of ``seconds`` that was granted or renewed after the time ``since``."""
        if not self.abandoned.is_set():
            self.trusted_until = since + seconds * _TRUSTED_PART

    async def grant(self) -> int:
        """Grants a new lease and returns its duration in seconds."""
        lease = await self._client.call("grant", messages.LeaseGrantRequest(ttl=_LEASE_SECONDS))
        self.id = lease.id
        return int(lease.ttl)

    async def keep_alive(self, *, until: Callable[[], bool]) -> None:
        """Renews the lease until it is abandoned, has expired, or ``until`` is true.

        Raises RpcError, TimeoutError and StorageError.
        """
        member = self._client.member
        request = messages.LeaseKeepAliveRequest(id=self.id).SerializeToString()
        sent = time.clock_gettime(_CLOCK)
        stream = await member.keep_alive(await self._client.session.metadata(member), request)
        try:
            while not self.abandoned.is_set() and not until():
                async with asyncio.timeout(ATTEMPT_SECONDS):
                    response = messages.LeaseKeepAliveResponse.FromString(await stream.read())
                if response.ttl <= 0:
                    return
                self.trust(since=sent, seconds=response.ttl)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_RENEW_SECONDS):
                        await self.abandoned.wait()
                sent = time.clock_gettime(_CLOCK)
                stream.write(request)
        finally:
            stream.cancel()

    async def revoke(self) -> bool:
        """Revokes the lease. False if etcd does not answer: then the lease may exist until it expires."""
        if self.id:
            try:
                async with asyncio.timeout(ATTEMPT_SECONDS):
                    await self._client.call("revoke", messages.LeaseRevokeRequest(id=self.id))
            except errors.LeaseNotFoundError:
                pass
            except (StorageError, TimeoutError):
                return False
            self.id = 0
        return True


class WriterLease:
    """The writer lease of this replica, acquired in a loop (``run``) and yielded to replicas that want to write.

    ``is_watching`` is true while ``observe`` receives all events. A replica that does not see handover requests must
    not hold the lease.
    """

    def __init__(self, client: Client, key_range: KeyRange, *, is_watching: Callable[[], bool]) -> None:
        self._client, self._is_watching = client, is_watching
        self._key, self._handover_key = key_range.key(_LEASE_KEY), key_range.key(_HANDOVER_KEY)
        # A key that is attached to no lease is a copy that was made by hand. It would never expire, so it is ignored.
        self._is_free = messages.without_lease(self._key)
        self._condition = Condition(0, self._encode_condition(self._is_free))
        self.revision = 0
        """The revision of the lease key if this replica holds it, otherwise 0. It may have expired without notice."""
        self._lease = _EtcdLease(client)
        self._not_before = 0.0
        self._handover: asyncio.Task[None] | None = None
        self._released = asyncio.Event()
        self._closed = False

    # Holding the lease

    @property
    def is_trusted(self) -> bool:
        """True if no other replica can have written an object since the lease was acquired."""
        return time.clock_gettime(_CLOCK) < self._lease.trusted_until

    async def run(self) -> None:
        """Acquires the lease and holds it for as long as possible, in a loop until it is cancelled.

        A cancelled loop does not release the lease, since the connections may be gone with it.
        """
        self._delay(_FIRST_DELAY)
        while True:
            await self._wait_until_due()
            self._lease.abandoned.clear()
            try:
                if await self.release():  # False if an earlier release failed and still does
                    await self._hold()
            except (StorageError, RpcError, DecodeError, TimeoutError) as error:
                _log.debug("the writer lease was lost or could not be acquired: %s", error)
            except Exception:  # noqa: BLE001 - the next attempt may succeed; without the lease every read asks etcd
                _log.exception("acquiring or renewing the writer lease failed")
            finally:
                self._lease.abandon()
            await self.release()
            self._delay(_RETRY_DELAY)

    async def _hold(self) -> None:
        begun = time.clock_gettime(_CLOCK)
        seconds = await self._lease.grant()
        if await self._acquire():
            self._lease.trust(since=begun, seconds=seconds)
            await self._lease.keep_alive(until=lambda: not self._is_watching())
        else:
            self._delay(_YIELD_DELAY)

    async def _acquire(self) -> bool:
        """Writes the lease key. False if another replica holds it."""
        change = {"request_put": {"key": self._key, "lease": self._lease.id}}
        request = messages.TxnRequest(compare=[self._is_free], success=[change])
        response = await self._client.call("txn", request, repeatable=False)
        if response.succeeded:
            self.revision = int(response.header.revision)
        return bool(response.succeeded)

    def abandon(self) -> None:
        """Stops trusting the lease and has it released."""
        self._lease.abandon()

    async def release(self) -> bool:
        """Revokes the lease, which deletes its key. True if the key is known to be gone.

        Until then the writes of this replica stay on the condition that it holds the key, which would otherwise refuse
        them.
        """
        if not await self._lease.revoke():
            return False
        self.revision = 0
        return True

    def close(self) -> None:
        """Requests no handover any more. A held lease stays, for the writes in flight, until ``release``."""
        self._closed = True
        self._released.set()  # a handover request that waits tries once more, then fails

    async def _wait_until_due(self) -> None:
        loop = asyncio.get_running_loop()
        while (left := self._not_before - loop.time()) > 0 or not self._is_watching():  # noqa: ASYNC110 - it may be delayed
            await asyncio.sleep(max(left, _RENEW_SECONDS))

    def _delay(self, seconds: float) -> None:
        self._not_before = max(self._not_before, asyncio.get_running_loop().time() + seconds)

    # The condition of writes

    @property
    def condition(self) -> Condition:
        """The condition of a write: this replica holds the lease, or no replica does."""
        revision = self.revision
        if self._condition.revision != revision:
            compare = messages.modified_at(self._key, revision) if revision else self._is_free
            self._condition = Condition(revision, self._encode_condition(compare))
        return self._condition

    def _encode_condition(self, compare: dict[str, Any]) -> bytes:
        read = {"request_range": {"key": self._key}}
        return bytes(messages.TxnRequest(compare=[compare], failure=[read]).SerializeToString())

    async def failed_on(self, condition: Condition, found: Any) -> bool:
        """True if the transaction failed on the lease condition (retry); False if on the key's own revision.

        ``found`` is the lease key as the transaction read it. Raises StorageUnavailable if another replica does not
        release the lease.
        """
        lease = found[0].lease if found else 0
        revision, expected = found[0].mod_revision if lease else 0, condition.revision
        if revision == expected:
            return False
        if revision and lease == self._lease.id:  # it was just acquired, and the response is still on its way
            self.revision = revision
            return True
        if expected and expected == self.revision:  # it has expired early
            self.abandon()
            self.revision = 0
        if revision:
            await self._request_handover()
        return True

    # Handover

    async def _request_handover(self) -> None:
        """Returns once the other replica has released the lease. Concurrent writes share one request."""
        if self._handover is None or self._handover.done():
            self._handover = asyncio.create_task(self._request_until_released())
            self._handover.add_done_callback(_consume_exception)
        await asyncio.shield(self._handover)

    async def _request_until_released(self) -> None:
        self._delay(_YIELD_DELAY)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE_SECONDS
        while loop.time() < deadline and not self._closed:
            self._released.clear()
            handover = {"request_put": {"key": self._handover_key}}
            request = messages.TxnRequest(compare=[self._is_free], failure=[handover])
            if (await self._client.call("txn", request)).succeeded:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_HANDOVER_SECONDS):
                    await self._released.wait()
                    return
        raise StorageUnavailable(_NOT_RELEASED, remedy=_REMEDY)

    def yield_lease(self) -> None:
        """Releases the lease for another replica that writes or wants to write."""
        self._delay(_YIELD_DELAY)
        self.abandon()

    def observe(self, events: Iterable[Any]) -> None:
        """Handles the events of etcd that concern the lease key and the handover key."""
        for event in events:
            if event.kv.key == self._handover_key:
                self.yield_lease()
            elif event.kv.key == self._key:
                if event.type == messages.DELETE:
                    self._released.set()
                if 0 < self.revision < event.kv.mod_revision:
                    self.abandon()


def _consume_exception(task: asyncio.Task[None]) -> None:
    """Marks the exception as retrieved: no caller may be waiting for the task any more."""
    if not task.cancelled():
        task.exception()
