"""The fault test: members of the store and replicas of the server are killed and paused under load.

Meanwhile another program writes values that are no objects beside theirs.

Run as ``python -m tests.system.faults.fault_run``; ``--help`` names the options.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.system.faults.faults import Fault, Violation
from tests.system.faults.nemesis import Storm
from tests.system.faults.records import Record
from tests.system.faults.report import Say, first, keep_if_wrong, positive, run_command, seed_option
from tests.system.faults.sites import Site
from tests.system.faults.verdict import Verdict, check
from tests.system.faults.workload import StalledError, Workload

SECONDS = 300
PATIENCE = 3.0
"""Seconds that clients wait: less than a server may take to learn that a member is gone, so some leave it before."""
LONGEST = 5.0
"""Seconds that a process is down or paused: more than a server waits for a member that is silent."""
QUIET = (0.2, 1.5)
"""Seconds of peace between two strikes of one kind; members and replicas are struck at the same time."""
FOREIGN = (
    "garbage",
    "[]",
    '{"apiVersion":"clusterregistry.k8s.io/v1alpha1","kind":"Cluster","metadata":{"name":"alder","uid":"u"}}',
    '{\n"metadata":{\n"labels":{"a":{}}}}',
)
LOOK_SECONDS, PROGRESS_SECONDS = 1.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """The result of a run."""

    record: Record
    verdict: Verdict
    strikes: Counter[str]
    """By kind."""


async def strike(directory: Path, *, seconds: float, seed: int, say: Say) -> Struck:
    """Harms three members and two replicas for so long under load, and judges all that clients were answered.

    At most one member and one replica are down at a time. A history with violations is written to the directory.
    Raises AssertionError, in a group, when something does not start again.
    """
    site = Site(directory)
    say(f"seed {seed}, {seconds:g} s")
    async with site.running():
        workload = Workload(site.targets(), seed=seed, patience=PATIENCE)
        run = _Run(site, workload, seed=seed, say=say)
        try:
            async with workload.running():
                await run.go_on(seconds)
        except* StalledError as group:  # a violation like others, but there is no going on
            say(f"stopped early: {first(group)}")
    say("checking the history")
    record = workload.record()
    verdict = check(record, sole_writer=False)
    verdict.violations.extend(Violation(Fault.TRACEBACK, text) for text in site.tracebacks())
    keep_if_wrong(record, verdict, directory)
    return Struck(record=record, verdict=verdict, strikes=run.strikes)


class ForeignWrites:
    """Writes values that are no objects under keys of their own, over and over, and counts."""

    def __init__(self, site: Site, *, rng: random.Random) -> None:
        self._site, self._rng = site, rng
        self.strikes: Counter[str] = Counter()

    async def strike(self) -> str:
        name, value = f"foreign-{self._rng.randrange(5)}", self._rng.choice(FOREIGN)
        with suppress(AssertionError):  # the etcd has no leader just now
            await self._site.scribble(name, value)
            self.strikes["wrote a foreign value"] += 1
        return f"wrote {value!r} to {name}"

    async def heal(self) -> None:
        """There is nothing to undo: the replicas have to serve beside these values."""


class _Run:
    """Harm, progress and looks at the whole, all at once."""

    def __init__(self, site: Site, workload: Workload, *, seed: int, say: Say) -> None:
        self._site, self._workload, self._say = site, workload, say
        self._rngs = [random.Random(f"{seed} {name}") for name in ("members", "replicas", "values")]
        members, replicas, values = self._rngs
        self._storms: list[Storm | ForeignWrites] = [
            Storm(lambda: site.choose_member(members), rng=members, longest=LONGEST),
            Storm(lambda: site.choose_replica(replicas), rng=replicas, longest=LONGEST),
            ForeignWrites(site, rng=values),
        ]

    @property
    def strikes(self) -> Counter[str]:
        return sum((storm.strikes for storm in self._storms), Counter())

    async def go_on(self, seconds: float) -> None:
        """For so long; all is whole again afterwards."""
        until = time.monotonic() + seconds
        try:
            async with asyncio.TaskGroup() as group:
                ended = asyncio.Event()
                group.create_task(self._look_on(ended))
                storms = zip(self._storms, self._rngs, strict=True)
                await asyncio.wait([group.create_task(self._strike_until(until, storm, rng)) for storm, rng in storms])
                ended.set()
        finally:
            for storm in self._storms:
                await storm.heal()
        await self._site.recovered()
        self._workload.note("all are back")

    async def _strike_until(self, until: float, storm: Storm | ForeignWrites, rng: random.Random) -> None:
        while True:
            await asyncio.sleep(rng.uniform(*QUIET))
            if time.monotonic() > until:
                return
            self._workload.note("a strike begins")
            self._workload.note(await storm.strike())

    async def _look_on(self, ended: asyncio.Event) -> None:
        """Has the watchers keep up in spite of it all, and says how far it has come."""
        due = time.monotonic()
        while not ended.is_set():
            await self._workload.checkpoint()
            if time.monotonic() >= due:
                due += PROGRESS_SECONDS
                done, events = self._workload.operations, self._workload.events
                self._say(f"{self.strikes.total()} strikes, {done} operations and {events} watch events so far")
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), LOOK_SECONDS)


def shown(strikes: Counter[str]) -> str:
    """The strikes by kind, for a person."""
    return ", ".join(f"{kind}: {count}" for kind, count in sorted(strikes.items()))


def main() -> int:
    options = _options()

    async def run(directory: Path, say: Say) -> bool:
        struck = await strike(directory, seconds=options.seconds, seed=options.seed, say=say)
        say(f"{struck.strikes.total()} strikes ({shown(struck.strikes)})\n{struck.verdict.report()}")
        return not struck.verdict.violations

    return run_command("fault-test", run, seed=options.seed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fault-test", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=positive, default=SECONDS, help="how long to do harm (%(default)s)")
    seed_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
