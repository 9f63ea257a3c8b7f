"""Random changes and faults in virtual time: never two rounds of one cluster, never more at once than the bounds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from clusterregistry.controllers.observer.observation import Observation
from clusterregistry.controllers.observer.observer import Observer
from clusterregistry.controllers.observer.settings import ObserverSettings
from tests.client.fake_clock import run
from tests.controllers.observer.subjects import changed
from tests.controllers.observer.worlds import World, busy, dead

NAMES = tuple("abcdef")
SETTINGS = ObserverSettings(concurrency=2, slow_concurrency=1, start_pause=0.1, interval=10.0)


@dataclass(frozen=True, slots=True)
class Step:
    """One change, and the pause after it."""

    kind: str
    name: str
    amount: float
    pause: float


STEPS = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from(
            ["put", "change", "replace", "remove", "length", "credential", "dead", "busy", "well", "now"]
        ),
        name=st.sampled_from(NAMES),
        amount=st.sampled_from([0.0, 0.5, 3.0, 40.0]),
        pause=st.sampled_from([0.0, 0.0, 0.05, 1.0, 7.0, 400.0]),
    ),
    max_size=60,
)


class Actor:
    """Applies steps, and checks each report."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wrong: list[str] = []
        """Reports that should not have come. The observer logs what a report raises."""
        self.present: dict[str, tuple[int, int]] = {}
        self.waiting: set[asyncio.Task[None]] = set()

    @property
    def observer(self) -> Observer:
        return self.world.observer

    def report(self, name: str, observation: Observation) -> None:
        if name not in self.present or self.observer.last(name) is not observation:
            self.wrong.append(name)

    def apply(self, step: Step) -> None:
        getattr(self, f"_{step.kind}")(step)
        assert self.observer.running <= SETTINGS.concurrency + SETTINGS.slow_concurrency

    def _put(self, step: Step) -> None:
        uid, revision = self.present.setdefault(step.name, (0, 0))
        one = self.world.cluster(step.name, uid=f"u{uid}")
        self.observer.put(changed(one, location={"region": str(revision)}))

    def _change(self, step: Step) -> None:
        uid, revision = self.present.get(step.name, (0, 0))
        self.present[step.name] = uid, revision + 1
        self._put(step)

    def _replace(self, step: Step) -> None:
        uid, revision = self.present.get(step.name, (0, 0))
        self.present[step.name] = uid + 1, revision
        self._put(step)
        assert self.observer.last(step.name) is None

    def _remove(self, step: Step) -> None:
        self.present.pop(step.name, None)
        self.observer.remove(step.name)
        assert self.observer.last(step.name) is None

    def _length(self, step: Step) -> None:
        self.world.lengths[step.name] = step.amount

    def _credential(self, step: Step) -> None:
        self.world.access.pauses[step.name] = step.amount

    def _dead(self, step: Step) -> None:
        self.world.errors[step.name] = dead()

    def _busy(self, step: Step) -> None:
        self.world.errors[step.name] = busy(step.amount)

    def _well(self, step: Step) -> None:
        self.world.errors.pop(step.name, None)

    def _now(self, step: Step) -> None:
        task = asyncio.create_task(self._observe_now(step))
        self.waiting.add(task)

    async def _observe_now(self, step: Step) -> None:
        try:
            found = await self.observer.observe_now(step.name, deadline=step.amount)
        except KeyError:
            assert step.name not in self.present
        else:
            assert isinstance(found, Observation)


async def run_steps(steps: list[Step], patch: pytest.MonkeyPatch) -> None:
    world = World(SETTINGS)
    actor = Actor(world)
    patch.setattr(world, "report", actor.report)
    async with world.observing(patch) as observer:
        for step in steps:
            actor.apply(step)
            await asyncio.sleep(step.pause)
        await asyncio.sleep(0)
        world.lengths.clear()
        world.errors.clear()
        world.access.pauses.clear()
        await asyncio.sleep(SETTINGS.breaker_longest_pause + 120.0)
        for name in actor.present:  # whatever there was: it is observed again
            last = observer.last(name)
            assert last is not None
            assert (last.failure, str(last.health.value), last.failed_rounds) == (None, name, 0)
        if actor.waiting:
            done, pending = await asyncio.wait(actor.waiting)
            assert not pending
            for task in done:
                task.result()
    assert not actor.wrong
    assert world.most_of_one <= 1
    assert world.most <= SETTINGS.concurrency + SETTINGS.slow_concurrency


@given(STEPS)
@examples(max_examples=150)
def test_random_changes_and_faults_keep_the_bounds(steps: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        run(run_steps(steps, patch))
