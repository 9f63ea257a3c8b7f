"""Writes the status of clusters: at once when it changes, else as a heartbeat.

Of each cluster only the newest observation is kept, so that a registry that is away costs nothing but time. Each write
is a server-side apply of the whole status (0.36 ms in the registry; a merge patch of the time alone takes 0.30 ms), and
names the version of the cluster that it was made from: a writer that is late, such as a leader that was stopped for a
while, changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from clusterregistry.apimachinery.meta import times
from clusterregistry.client import errors
from clusterregistry.client.rest import Object, metadata
from clusterregistry.client.retry import Backoff
from clusterregistry.client.workqueue import ItemBackoff, WorkQueue, run_workers
from clusterregistry.controllers.cluster_client import ClusterClient
from clusterregistry.controllers.observer.observation import Observation
from clusterregistry.controllers.status import STALE, StatusSettings, is_change, next_status

_log = logging.getLogger(__name__)

MAX_SKEW = 300.0
"""Seconds by which the clock of another observer may be ahead. A time beyond that is a mistake, and is replaced."""

_WORKERS = 8
_REFUSED_PAUSE = 60.0
_LOG_PAUSE = 30.0
_AGAIN = 0.01

Written = Callable[[Mapping[str, Any], Mapping[str, Any]], None]
"""Called with a cluster before and after a status was written."""


_BACKOFF = Backoff(first=0.5, longest=15.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """How often a status is written. In seconds."""

    heartbeat: float = 30.0
    """Between two writes of a status that does not change."""
    timeout: float = 5.0
    """Of a write."""
    backoff: Backoff = _BACKOFF
    """While the registry does not take writes."""


@dataclass(slots=True)
class _Entry:
    """The newest that is known of one cluster."""

    observation: Observation
    written_at: float | None = None
    """By the loop's clock; None: not by this writer."""
    latest: Object | None = None
    """As the registry answered; the cache of the caller may be older."""


@dataclass(slots=True)
class WriteCounts:
    """What became of writes, for metrics."""

    results: Counter[str] = field(default_factory=Counter)
    """``changed``, ``heartbeat``, ``conflict``, ``refused``, ``failed``."""
    seconds: float = 0.0
    """Of all writes together."""


class StatusWriter:
    """Writes the status that follows from the newest observation of each cluster. Used on one loop.

    ``find`` returns a cluster as the caller knows it, from a cache. ``may_write`` is asked before each write.
    """

    def __init__(  # noqa: PLR0913 - all but one by keyword
        self,
        clusters: ClusterClient,
        *,
        find: Callable[[str], Object | None],
        status: StatusSettings | None = None,
        settings: WriterSettings | None = None,
        may_write: Callable[[], bool] = lambda: True,
        written: Written = lambda _, __: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clusters, self._find, self._clock = clusters, find, clock
        self._status = status or StatusSettings()
        self._settings = settings or WriterSettings()
        self._may_write, self._written = may_write, written
        self._entries: dict[str, _Entry] = {}
        self._queue: WorkQueue[str] = WorkQueue(ItemBackoff(first=1.0, longest=60.0))
        self.counts = WriteCounts()
        self.problem = ""
        """Why the registry takes no writes now; empty while it does."""
        self._failures, self._resume_at, self._logged_at = 0, 0.0, -_LOG_PAUSE

    def note(self, name: str, observation: Observation) -> None:
        """Has the status of a cluster follow an observation. It replaces one that was not written yet."""
        entry = self._entries.get(name)
        if entry is None:
            self._entries[name] = _Entry(observation)
        else:
            entry.observation = observation
        self._queue.add(name)

    def look(self, name: str) -> None:
        """Looks at the caller's cache, which has changed: what is as new there need not be kept twice."""
        entry = self._entries.get(name)
        if entry is not None:
            self._newest(name, entry)

    def forget(self, name: str) -> None:
        """Drops what is known of a cluster: it is deleted, or another one has its name."""
        self._entries.pop(name, None)

    async def run(self) -> None:
        """Writes until it is cancelled."""
        await run_workers(self._queue, self._reconcile, workers=_WORKERS)

    @property
    def waiting(self) -> int:
        """How many clusters wait to be written now."""
        return len(self._queue)

    async def _reconcile(self, name: str) -> float | None:
        """Writes the status of one cluster, if that is due. Returns the seconds until it is to be looked at again."""
        entry = self._entries.get(name)
        cluster = self._newest(name, entry)
        if entry is None or cluster is None:
            return None
        if (pause := self._resume_at - _now()) > 0:
            return pause + random.random()  # noqa: S311 - no secret
        status = next_status(entry.observation, cluster, now=self._clock(), settings=self._status)
        before = cluster.get("status") or {}
        changed = is_change(status, before)
        if not changed and (until := self._until_heartbeat(entry, status, before)) is not None:
            return until or None
        if self._is_older(status, before) or not self._may_write():
            return None
        try:
            await self._write(entry, cluster, status, result="changed" if changed else "heartbeat")
        except errors.ClientError as error:
            return await self._note_failure(name, entry, error)
        return None

    def _newest(self, name: str, entry: _Entry | None) -> Object | None:
        """The cluster as it was last seen: in an answer, until the cache is as new."""
        found = self._find(name)
        if entry is None or entry.latest is None or found is None:
            return found
        if _uid(found) != _uid(entry.latest) or _version(found) >= _version(entry.latest):
            entry.latest = None
            return found
        return entry.latest

    def _until_heartbeat(self, entry: _Entry, status: Object, before: Mapping[str, Any]) -> float | None:
        """Seconds until a heartbeat is due; 0: there is nothing new to tell, None: it is due."""
        if status.get("observedAt") == before.get("observedAt"):
            return 0.0
        if entry.written_at is None:
            elapsed = self._clock() - (_time(before) or 0.0)
            entry.written_at = _now() - max(elapsed, 0.0)
        pause = entry.written_at + self._settings.heartbeat - _now()
        return pause if pause > 0 else None

    def _is_older(self, status: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """Whether the registry has a newer observation, of another observer that is alive."""
        theirs, ours = _time(before), _time(status)
        if theirs is None or ours is None or before.get("state") == STALE:
            return False
        return ours < theirs <= self._clock() + MAX_SKEW

    async def _write(self, entry: _Entry, cluster: Object, status: Object, *, result: str) -> None:
        begun = _now()
        try:
            after = await self._clusters.apply_status(cluster, status, seconds=self._settings.timeout)
        finally:
            self.counts.seconds += _now() - begun
        entry.latest, entry.written_at = after, begun
        self.counts.results[result] += 1
        self._note_success()
        self._written(cluster, after)

    # Failures

    def _note_success(self) -> None:
        if self.problem:
            _log.info("the registry takes the status of clusters again")
        self._failures, self.problem = 0, ""

    async def _note_failure(self, name: str, entry: _Entry, error: errors.ClientError) -> float | None:
        """Returns the seconds until the cluster is looked at again."""
        if isinstance(error, errors.NotFoundError):
            return None  # it is deleted: the cache will say so
        if isinstance(error, errors.ConflictError):
            return await self._read_again(name, entry)
        if _is_about_one(error):
            self.counts.results["refused"] += 1
            self._log(f"the status of cluster {name} is refused: {error}")
            return _REFUSED_PAUSE
        self.counts.results["failed"] += 1
        return self._wait_for_registry(error)

    async def _read_again(self, name: str, entry: _Entry) -> float | None:
        """Another client was faster: the status is made again, from what it has written."""
        self.counts.results["conflict"] += 1
        try:
            entry.latest = await self._clusters.get(name)
        except errors.NotFoundError:
            return None
        except errors.ClientError as error:
            return self._wait_for_registry(error)
        return _AGAIN

    def _wait_for_registry(self, error: errors.ClientError) -> float:
        """A pause for all clusters: one of them finds out whether the registry is back."""
        if self._resume_at <= _now():
            self._failures += 1
            named = error.retry_after if isinstance(error, errors.APIStatusError) else None
            pause = self._settings.backoff.pause(self._failures)
            self._resume_at = _now() + max(pause, min(named or 0.0, self._settings.heartbeat))
        self.problem = str(error)
        self._log(f"the registry does not take the status of clusters, which is tried again: {error}{_remedy(error)}")
        return self._resume_at - _now()

    def _log(self, message: str) -> None:
        """At most one line in half a minute: thousands of clusters fail for one reason."""
        if _now() - self._logged_at >= _LOG_PAUSE:
            self._logged_at = _now()
            _log.warning("%s", message)


def _is_about_one(error: errors.ClientError) -> bool:
    """Whether a write is refused for what it says: others may succeed."""
    if not isinstance(error, errors.APIStatusError):
        return False
    passing = isinstance(error, errors.UnauthorizedError | errors.ForbiddenError | errors.TooManyRequestsError)
    return error.code < HTTPStatus.INTERNAL_SERVER_ERROR and not passing


def _remedy(error: errors.ClientError) -> str:
    if isinstance(error, errors.ForbiddenError):
        return ". What to do: let this user patch clusters/status, as the role system:clusterregistry:controller does"
    if isinstance(error, errors.UnauthorizedError):
        return ". What to do: renew the credential in the kubeconfig"
    return ""


def _version(cluster: Mapping[str, Any]) -> int:
    """Versions of one object grow, in etcd as in SQLite."""
    found = metadata(cluster).get("resourceVersion")
    return int(found) if isinstance(found, str) and found.isdecimal() else 0


def _uid(cluster: Mapping[str, Any]) -> Any:
    return metadata(cluster).get("uid")


def _time(status: Mapping[str, Any]) -> float | None:
    found = status.get("observedAt")
    try:
        return times.parse(found).timestamp() if isinstance(found, str) else None
    except ValueError:
        return None


def _now() -> float:
    return asyncio.get_running_loop().time()
