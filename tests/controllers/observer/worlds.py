"""An observer in virtual time, with clusters that need no server: each answers as the test says."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest

from clusterregistry.controllers.observer import observer as observers
from clusterregistry.controllers.observer.failure import ProbeError, RoundError
from clusterregistry.controllers.observer.member import RoundClient
from clusterregistry.controllers.observer.observation import Failure, Observation, Reason
from clusterregistry.controllers.observer.observer import Observer
from clusterregistry.controllers.observer.probe import Probe
from clusterregistry.controllers.observer.settings import ObserverSettings
from tests.client.fake_clock import now
from tests.controllers.observer.subjects import Access, Object, cluster

UNIX = 1_800_000_000.0


def dead() -> RoundError:
    return RoundError(Failure(reason=Reason.CONNECTION_REFUSED, message="the server refuses the connection"))


def busy(retry_after: float) -> ProbeError:
    return ProbeError(Failure(reason=Reason.NOT_READY, message="429"), retry_after=retry_after)


class World:
    """Clusters by the tokens that they are asked with, which are their names."""

    def __init__(self, settings: ObserverSettings | None = None) -> None:
        self.settings = settings or ObserverSettings()
        self.access = Access()
        self.lengths: defaultdict[str, float] = defaultdict(float)
        self.errors: dict[str, ProbeError] = {}
        self.asked: list[tuple[str, float]] = []
        self.running: Counter[str] = Counter()
        self.most = self.most_of_one = 0
        self.reports: list[tuple[str, Observation]] = []
        self.observer: Observer

    def cluster(self, name: str = "alpha", *, uid: str = "u1", **spec: Any) -> Object:
        self.access.give(name, name)
        return cluster(name, uid=uid, **spec)

    def times(self, name: str = "alpha") -> list[float]:
        return [at for each, at in self.asked if each == name]

    def reported(self, name: str = "alpha") -> list[Observation]:
        return [observation for each, observation in self.reports if each == name]

    def report(self, name: str, observation: Observation) -> None:
        self.reports.append((name, observation))

    async def _read(self, client: RoundClient) -> str:
        name = client._credential.authorization.removeprefix("Bearer ")
        self.asked.append((name, now()))
        self.running[name] += 1
        self.most = max(self.most, self.running.total())
        self.most_of_one = max(self.most_of_one, self.running[name])
        try:
            await asyncio.sleep(self.lengths[name])
        finally:
            self.running[name] -= 1
        if name in self.errors:
            raise self.errors[name]
        return name

    @contextlib.asynccontextmanager
    async def observing(self, patch: pytest.MonkeyPatch) -> AsyncIterator[Observer]:
        """Until the end; then nothing is left."""
        probe = Probe(name="health", interval=0.0, read=self._read)
        patch.setattr(observers, "default_probes", lambda _: (probe,))
        self.observer = Observer(self.access, settings=self.settings, report=self.report, clock=lambda: UNIX + now())
        task = asyncio.create_task(self.observer.run())
        try:
            yield self.observer
        finally:
            task.cancel()
            await asyncio.wait([task])
            await self.observer.close()
            await self.observer.close()
            assert self.observer.running == 0
            assert len(asyncio.all_tasks()) == 1
