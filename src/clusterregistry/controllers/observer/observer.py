"""The observer: rounds of probes over many clusters, each by its own schedule and breaker."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clusterregistry.controllers.observer.breaker import Breaker
from clusterregistry.controllers.observer.credentials import MemberAccess
from clusterregistry.controllers.observer.endpoint import Endpoint
from clusterregistry.controllers.observer.observation import Failure, Observation, Reason
from clusterregistry.controllers.observer.probe import Probe, default_probes
from clusterregistry.controllers.observer.round import Round, RoundParts, Subject
from clusterregistry.controllers.observer.schedule import Schedule
from clusterregistry.controllers.observer.settings import ObserverSettings

_log = logging.getLogger(__name__)

Report = Callable[[str, Observation], None]
_NEVER = Observation(at=0.0, failure=Failure(reason=Reason.NEVER_OBSERVED, message="the cluster was not asked yet"))


@dataclass(slots=True)
class _Observed:
    """One cluster. A changed spec makes another one of these."""

    subject: Subject
    breaker: Breaker
    has_last: bool = False
    rounds: int = 0


class Observer:
    """Asks clusters in turns, and reports an observation after each round. Used on one loop.

    ``report`` is called with the name of the cluster and must not block; ``clock`` is Unix time. ``probes`` are read in
    addition to the usual ones. ``endpoint`` replaces the choice of an address from the spec, for an agent.
    """

    def __init__(  # noqa: PLR0913 - all but one by keyword
        self,
        access: MemberAccess,
        *,
        settings: ObserverSettings,
        report: Report,
        clock: Callable[[], float] = time.time,
        probes: Sequence[Probe[Any]] = (),
        endpoint: Callable[[Mapping[str, Any]], Endpoint] | None = None,
    ) -> None:
        self._settings, self._report, self._clock = settings, report, clock
        self._parts = RoundParts(
            access=access,
            settings=settings,
            probes=(*default_probes(settings), *probes),
            clock=clock,
            endpoint=endpoint,
        )
        self._observed: dict[str, _Observed] = {}
        self._schedule = Schedule(self._run_round, settings=settings)
        self._disconnecting: set[asyncio.Task[None]] = set()
        self._kept: set[str] = set()
        """The clusters that keep their connections between rounds."""

    def put(self, cluster: Mapping[str, Any]) -> None:
        """Adds or replaces a cluster (a wire object of v1beta1).

        Another spec resets breaker and connection, and is asked at once; another UID is another cluster, of which
        nothing is known. Other changes are used by the next round.
        """
        name = _metadata(cluster)["name"]
        before = self._observed.get(name)
        if before is not None and _identity(before.subject.cluster) == _identity(cluster):
            before.subject.cluster = cluster
            return
        observed = _Observed(Subject(cluster, self._parts), Breaker(self._settings))
        if before is not None:
            self._forget(before)
            if _uid(before.subject.cluster) == _uid(cluster):
                observed.subject.last = replace(before.subject.last, breaker_open_until=0.0, failed_rounds=0)
                observed.has_last = before.has_last
        self._observed[name] = observed
        self._schedule.add(name)

    def remove(self, name: str) -> None:
        """Forgets a cluster. Its round is cancelled, and not reported."""
        observed = self._observed.pop(name, None)
        if observed is not None:
            self._kept.discard(name)
            self._schedule.remove(name)
            self._forget(observed)

    def last(self, name: str) -> Observation | None:
        """The newest observation of a cluster; None: it was not observed yet."""
        observed = self._observed.get(name)
        return observed.subject.last if observed is not None and observed.has_last else None

    async def observe_now(self, name: str, *, deadline: float) -> Observation:
        """The observation after a round that starts now, or of the one that runs, whatever the breaker says.

        All probes are read. After ``deadline`` seconds, what is known by then. Raises KeyError for an unknown cluster.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(deadline):
                while True:
                    try:
                        await self._schedule.run_now(name)
                        break
                    except KeyError:
                        if name not in self._observed:  # else it was changed meanwhile
                            raise
        return self.last(name) or _NEVER

    async def run(self) -> None:
        """Observes until it is cancelled."""
        await self._schedule.run()

    async def close(self) -> None:
        """Ends all rounds and connections, and forgets all clusters. May be called again."""
        await self._schedule.close()
        for name in list(self._observed):
            self.remove(name)
        if self._disconnecting:
            await asyncio.wait(self._disconnecting)

    @property
    def running(self) -> int:
        """Rounds that run now."""
        return self._schedule.running

    async def _run_round(self, name: str, is_forced: bool) -> float:  # noqa: FBT001 - the port of Schedule
        """Runs a round, or skips it while the breaker is open. Returns the seconds until the next one is to start."""
        observed = self._observed[name]
        start = _now()
        if observed.breaker.is_open(start) and not is_forced:
            self._publish(name, observed, replace(observed.subject.last, at=self._clock()))
        else:
            pause = await self._observe(name, observed, everything=is_forced)
            if pause:
                return pause
        until_half_open = observed.breaker.open_until - _now()
        return min(self._pause(observed), until_half_open) if until_half_open > 0 else self._pause(observed)

    async def _observe(self, name: str, observed: _Observed, *, everything: bool) -> float:
        """Asks the cluster, and returns the seconds for which it asked to be left alone."""
        asked = Round(observed.subject, everything=everything)
        observation = await asked.run()
        observed.rounds += 1
        if asked.is_useless:
            observed.breaker.fail(_now())
        else:
            observed.breaker.succeed()
        self._publish(name, observed, observation)
        if not self._may_keep(name, is_useless=asked.is_useless):
            await observed.subject.disconnect()
        if asked.retry_after <= self._settings.interval:
            return 0.0
        return min(asked.retry_after, self._settings.breaker_longest_pause)

    def _may_keep(self, name: str, *, is_useless: bool) -> bool:
        """Whether a cluster keeps its connection until the next round. Those that had one come before others."""
        if is_useless or self._observed.get(name) is None:
            self._kept.discard(name)
        elif len(self._kept) < self._settings.kept_connections:
            self._kept.add(name)
        return name in self._kept

    def _publish(self, name: str, observed: _Observed, observation: Observation) -> None:
        breaker = observed.breaker
        until = self._clock() + breaker.open_until - _now() if breaker.is_open(_now()) else 0.0
        observed.subject.last = replace(observation, breaker_open_until=until, failed_rounds=breaker.failures)
        observed.has_last = True
        try:
            self._report(name, observed.subject.last)
        except Exception:  # noqa: BLE001 - whatever it is: other clusters must be observed
            _log.exception("the observation of cluster %s could not be reported", name)

    def _pause(self, observed: _Observed) -> float:
        """Less than an interval by chance. After the first round much less: clusters that were added at once part."""
        jitter = self._settings.jitter if observed.rounds > 1 else 0.5
        return self._settings.interval * (1.0 - jitter * random.random())  # noqa: S311 - no secret

    def _forget(self, observed: _Observed) -> None:
        """Ends the connection in the background: callers of ``put`` and ``remove`` cannot wait."""
        task = asyncio.create_task(observed.subject.disconnect())
        self._disconnecting.add(task)
        task.add_done_callback(self._disconnecting.discard)


async def observe_once(
    cluster: Mapping[str, Any],
    access: MemberAccess,
    *,
    settings: ObserverSettings | None = None,
    clock: Callable[[], float] = time.time,
    endpoint: Callable[[Mapping[str, Any]], Endpoint] | None = None,
) -> Observation:
    """One round over one cluster, for commands that try out an access."""
    chosen = settings or ObserverSettings()
    parts = RoundParts(access=access, settings=chosen, probes=default_probes(chosen), clock=clock, endpoint=endpoint)
    subject = Subject(cluster, parts)
    try:
        return await Round(subject, everything=True).run()
    finally:
        await subject.disconnect()


def _metadata(cluster: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata: Mapping[str, Any] = cluster["metadata"]
    return metadata


def _uid(cluster: Mapping[str, Any]) -> Any:
    return _metadata(cluster).get("uid")


def _identity(cluster: Mapping[str, Any]) -> tuple[Any, Any]:
    return _uid(cluster), cluster.get("spec")


def _now() -> float:
    return asyncio.get_running_loop().time()
