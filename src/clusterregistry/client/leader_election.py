"""Leader election by a Lease of coordination.k8s.io/v1, which candidates of client-go can take part in.

A candidate holds the lease by renewing it. Others take it when it was not renewed for its duration, measured by their
own monotonic clock from when they saw the last renewal: clocks of machines need not agree, only run at about the same
speed. A leader stops before others may take over: when it could not renew within ``renew_deadline``, counted from the
moment before its last renewal was sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from clusterregistry.client import errors
from clusterregistry.client.rest import GroupVersionResource, Object, ResourceClient

LEASES = GroupVersionResource("coordination.k8s.io", "v1", "leases")
_JITTER = 1.2
_RELEASE_SECONDS = 5.0
_log = logging.getLogger(__name__)


class LeadershipLostError(errors.ClientError):
    """The lease could not be renewed in time, or another candidate holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionConfig:
    """One candidate. Seconds are client-go's defaults. Raises ValueError for those that exclude each other."""

    name: str
    identity: str
    """Of this candidate; no other may have it."""
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    release_on_cancel: bool = True
    """Lets the next leader begin at once when this one ends in order."""

    def __post_init__(self) -> None:
        if not self.name or not self.identity:
            raise ValueError("name and identity must not be empty")
        if self.lease_duration < 1 or self.lease_duration != int(self.lease_duration):
            raise ValueError("lease_duration must be a whole number of seconds")  # the wire has no fractions
        if not self.lease_duration > self.renew_deadline > self.retry_period * _JITTER > 0:
            raise ValueError(f"lease_duration must be above renew_deadline, and that above retry_period * {_JITTER}")


class LeaderElector:
    """One candidate for one lease. ``leases`` is a client of LEASES in a namespace. Used on one loop."""

    def __init__(
        self,
        leases: ResourceClient,
        config: LeaderElectionConfig,
        *,
        on_new_leader: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._leases, self._config, self._on_new_leader = leases, config, on_new_leader
        self._lease: Object | None = None
        """The lease as last seen, and when it last changed, in loop time."""
        self._seen_at = 0.0
        self._renewed_at: float | None = None
        """The loop time before the last renewal was sent; None while this is not the leader."""
        self._announced = ""

    @property
    def leader(self) -> str:
        """The holder as last seen; empty if there is none."""
        return _holder(self._lease)

    @property
    def is_leader(self) -> bool:
        """Whether this candidate may act as leader now: no other can have taken the lease yet.

        Check it before each step that two must not do, also within ``lead``.
        """
        if self._renewed_at is None:
            return False
        return self._now() < self._renewed_at + self._config.lease_duration

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Waits for the lease, runs ``lead`` while it is held, and releases it.

        Returns when ``lead`` returns, and raises what it raises. When the lease is lost ``lead`` is cancelled and
        LeadershipLostError raised: most programs then end. May be cancelled.
        """
        try:
            await self._acquire()
            await self._lead(lead)
        finally:
            if self._config.release_on_cancel and self._renewed_at is not None:
                await asyncio.shield(asyncio.ensure_future(self._release()))
            self._renewed_at = None

    async def _acquire(self) -> None:
        while not await self._attempt():
            jitter = 1 + (_JITTER - 1) * random.random()  # noqa: S311 - no secret
            await asyncio.sleep(self._config.retry_period * jitter)
        _log.info("%s is the leader of %s", self._config.identity, self._config.name)

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> None:
        leading = asyncio.ensure_future(lead())
        renewal = asyncio.create_task(self._renew())
        try:
            await asyncio.wait({leading, renewal}, return_when=asyncio.FIRST_COMPLETED)
            is_lost = not leading.done()
        finally:
            # Only what has ended makes room for the next leader.
            await _cancel(leading)
            await _cancel(renewal)
        if not is_lost:
            return leading.result()
        self._renewed_at = None
        raise LeadershipLostError(f"{self._config.identity} has lost the lease {self._config.name}")

    async def _renew(self) -> None:
        """Renews the lease until that fails for too long."""
        while self._renewed_at is not None:
            await asyncio.sleep(self._config.retry_period)
            try:
                async with asyncio.timeout_at(self._renewed_at + self._config.renew_deadline):
                    while not await self._attempt():
                        if _holder(self._lease) not in {"", self._config.identity}:
                            return
                        await asyncio.sleep(self._config.retry_period)
            except TimeoutError:
                return

    async def _attempt(self) -> bool:
        """One attempt to take or renew the lease; failures are logged."""
        try:
            return await self._take_or_renew()
        except errors.ConflictError:
            return False  # another candidate was faster; the next attempt reads the lease
        except errors.ClientError as error:
            _log.warning("the lease %s cannot be taken or renewed: %s", self._config.name, error)
            return False

    async def _take_or_renew(self) -> bool:
        begun = self._now()
        if self.is_leader and self._lease is not None:
            with contextlib.suppress(errors.ClientError):  # the lease is read then, and attempted again
                return await self._write(self._renewed(self._lease), begun)
        try:
            lease = await self._leases.get(self._config.name)
        except errors.NotFoundError:
            return await self._create(begun)
        self._observe(lease)
        if _holder(lease) not in {"", self._config.identity} and not self._has_expired(lease):
            return False
        return await self._write(self._renewed(lease), begun)

    async def _create(self, begun: float) -> bool:
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self._config.name}}
        try:
            created = await self._leases.create(self._renewed(lease))
        except errors.AlreadyExistsError:
            return False
        return self._hold(created, begun)

    async def _write(self, lease: Object, begun: float) -> bool:
        return self._hold(await self._leases.update(lease), begun)

    def _hold(self, lease: Object, begun: float) -> bool:
        self._observe(lease)
        self._renewed_at = begun
        return True

    def _observe(self, lease: Object) -> None:
        """Notes when a lease was seen to change: from then on its duration counts."""
        if self._lease is None or _spec(lease) != _spec(self._lease):
            self._seen_at = self._now()
        self._lease = lease
        if self.leader and self.leader != self._announced:
            self._announced = self.leader
            self._on_new_leader(self.leader)

    def _has_expired(self, lease: Mapping[str, Any]) -> bool:
        seconds = _spec(lease).get("leaseDurationSeconds")
        duration = float(seconds) if isinstance(seconds, int) else self._config.lease_duration
        return self._now() >= self._seen_at + duration

    def _renewed(self, lease: Mapping[str, Any]) -> Object:
        """The lease with this candidate as its holder."""
        spec, now = _spec(lease), _micro_time()
        changed = {
            **spec,
            "holderIdentity": self._config.identity,
            "leaseDurationSeconds": int(self._config.lease_duration),
            "renewTime": now,
        }
        if _holder(lease) != self._config.identity:
            transitions = spec.get("leaseTransitions")
            changed["acquireTime"] = now
            changed["leaseTransitions"] = (transitions + 1 if isinstance(transitions, int) else 1) if spec else 0
        return {**lease, "spec": changed}

    async def _release(self) -> None:
        """Gives the lease up, if it is still held: without a holder, and with the shortest duration."""
        lease, self._renewed_at = self._lease, None
        if lease is None or _holder(lease) != self._config.identity:
            return
        now = _micro_time()
        spec = {**_spec(lease), "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                self._lease = await self._leases.update({**lease, "spec": spec})
        except (errors.ClientError, TimeoutError) as error:
            _log.warning("the lease %s cannot be released: %s", self._config.name, error)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


async def _cancel(task: asyncio.Future[Any]) -> None:
    """Cancels a task and waits until it has ended."""
    task.cancel()
    while not task.done():
        await asyncio.wait({task})


def _spec(lease: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}


def _holder(lease: Mapping[str, Any] | None) -> str:
    holder = _spec(lease).get("holderIdentity") if lease else None
    return holder if isinstance(holder, str) else ""


def _micro_time() -> str:
    """MicroTime of the present, as the wire has it. For people: no candidate computes with it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
