"""Events about clusters, of ``events.k8s.io/v1``: one for what happens, and a series when it happens again.

An event that is like one of the last minutes, of the same cluster and reason, adds to the series of that one instead: a
cluster that goes up and down has one event for each of its states. Each series has a rate of its own, and what is
beyond it is counted by its next write. Events are lost rather than waited for: the status is what counts.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.api.clusterregistry.agents import EVENT_NAMESPACE as NAMESPACE
from clusterregistry.api.clusterregistry.agents import event_prefix
from clusterregistry.api.events import GROUP as EVENTS_GROUP
from clusterregistry.api.events import v1
from clusterregistry.apimachinery.meta import times
from clusterregistry.client import errors
from clusterregistry.client.rest import Client, GroupVersionResource, Object, metadata
from clusterregistry.controllers.cluster_client import KIND

EVENTS = GroupVersionResource(EVENTS_GROUP, v1.VERSION, "events")
NORMAL, WARNING = "Normal", "Warning"

SERIES_SECONDS = 360.0
"""Within which an event continues a series, as in Kubernetes."""
BURST, REFILL_SECONDS = 5, 60.0
"""Writes about one cluster for one reason at once, and the seconds after which there may be another one."""
MAX_WAITING = 10_000
MAX_REMEMBERED = 20_000
"""Series and clusters in memory: more than a fleet has."""
_MAX_NOTE = 1000
_MAX_INSTANCE = 128
_TIMEOUT = 5.0
_LOG_PAUSE = 30.0
_ACTION = "Observe"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something to tell people about a cluster. ``reason`` is one word, ``type`` is NORMAL or WARNING."""

    reason: str
    note: str
    type: str = NORMAL


@dataclass(slots=True)
class _Series:
    """What an event in the registry stands for."""

    name: str
    count: int
    last: float


@dataclass(slots=True)
class _Allowance:
    """How many writes about one cluster and reason there may be: some at once, then one after each pause."""

    left: float
    last: float

    def take(self, now: float) -> bool:
        self.left = min(self.left + max(now - self.last, 0.0) / REFILL_SECONDS, BURST)
        self.last = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class EventRecorder:
    """Writes events about clusters, one after the other. Used on one loop."""

    def __init__(
        self,
        client: Client,
        *,
        controller: str,
        instance: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``controller`` and ``instance`` name the program and the process, as events have them."""
        self._events = client.resource(EVENTS, namespace=NAMESPACE)
        self._controller, self._instance, self._clock = controller, instance[:_MAX_INSTANCE], clock
        self._series: OrderedDict[tuple[str, str, str], _Series] = OrderedDict()
        self._allowances: OrderedDict[tuple[str, str, str], _Allowance] = OrderedDict()
        self._waiting: deque[tuple[Mapping[str, Any], Happening]] = deque()
        self._wake = asyncio.Event()
        self._logged_at = -_LOG_PAUSE
        self.results: Counter[str] = Counter()
        """``created``, ``continued``, ``held`` (beyond the rate), ``failed`` and ``dropped`` (too many wait)."""

    def record(self, cluster: Mapping[str, Any], happening: Happening) -> None:
        """Has an event written about a cluster. Never waits, and never fails."""
        _log.debug("cluster %s: %s: %s", metadata(cluster).get("name"), happening.reason, happening.note)
        if len(self._waiting) >= MAX_WAITING:
            self.results["dropped"] += 1
            return
        self._waiting.append((_regarding(cluster), happening))
        self._wake.set()

    async def run(self) -> None:
        """Writes events until it is cancelled."""
        while True:
            while self._waiting:
                await self._write(*self._waiting.popleft())
            self._wake.clear()
            await self._wake.wait()

    async def _write(self, regarding: Mapping[str, Any], happening: Happening) -> None:
        key = (str(regarding.get("uid")), happening.type, happening.reason)
        series = self._continued(key)
        if not self._may_write(key):
            self.results["held"] += 1
            return
        try:
            async with asyncio.timeout(_TIMEOUT):
                await self._store(key, series, regarding, happening)
        except (errors.ClientError, TimeoutError) as error:
            self.results["failed"] += 1
            self._log(error)

    def _continued(self, key: tuple[str, str, str]) -> _Series | None:
        """The series that goes on, with one more occurrence; None: a new event begins."""
        now, series = self._clock(), self._series.get(key)
        if series is None or now - series.last > SERIES_SECONDS:
            self._series.pop(key, None)
            return None
        series.count, series.last = series.count + 1, now
        self._series.move_to_end(key)
        return series

    def _may_write(self, key: tuple[str, str, str]) -> bool:
        now, allowance = self._clock(), self._allowances.get(key)
        if allowance is None:
            allowance = self._allowances[key] = _Allowance(BURST, now)
            if len(self._allowances) > MAX_REMEMBERED:
                self._allowances.popitem(last=False)
        return allowance.take(now)

    async def _store(
        self, key: tuple[str, str, str], series: _Series | None, regarding: Mapping[str, Any], happening: Happening
    ) -> None:
        if series is not None:
            try:
                await self._events.patch(series.name, {"series": self._series_of(series)})
            except errors.NotFoundError:
                self._series.pop(key, None)  # the registry keeps events for a while only
            else:
                self.results["continued"] += 1
                return
        await self._create(key, regarding, happening)

    async def _create(self, key: tuple[str, str, str], regarding: Mapping[str, Any], happening: Happening) -> None:
        event = self._event(regarding, happening)
        await self._events.create(event)
        self.results["created"] += 1
        self._series[key] = _Series(name=event["metadata"]["name"], count=1, last=self._clock())
        if len(self._series) > MAX_REMEMBERED:
            self._series.popitem(last=False)

    def _event(self, regarding: Mapping[str, Any], happening: Happening) -> Object:
        prefix = event_prefix(str(regarding.get("name")))
        return {
            "apiVersion": f"{EVENTS_GROUP}/{v1.VERSION}",
            "kind": "Event",
            "metadata": {"name": prefix + secrets.token_hex(8), "namespace": NAMESPACE},
            "eventTime": self._micro_time(self._clock()),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": _ACTION,
            "reason": happening.reason,
            "regarding": dict(regarding),
            "note": happening.note[:_MAX_NOTE],
            "type": happening.type,
        }

    def _series_of(self, series: _Series) -> Object:
        return {"count": series.count, "lastObservedTime": self._micro_time(series.last)}

    def _micro_time(self, seconds: float) -> str:
        return times.render_micro(datetime.fromtimestamp(seconds, UTC))

    def _log(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._logged_at >= _LOG_PAUSE:
            self._logged_at = now
            _log.warning("events about clusters cannot be written, and are lost: %s", error or "no answer in time")


def _regarding(cluster: Mapping[str, Any]) -> Object:
    described = metadata(cluster)
    return {
        "apiVersion": cluster.get("apiVersion") or f"{GROUP}/v1beta1",
        "kind": KIND,
        **{name: described[name] for name in ("name", "uid", "resourceVersion") if name in described},
    }
