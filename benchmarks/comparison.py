"""The interleaved run: each scenario on the peer, on ours with SQLite and on ours with etcd, and all that once more.

Runs at different times on one machine differ by a factor of two and more; what is measured within seconds of each other
does not. A round that others disturbed is made again later, as far as time allows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from benchmarks import population, servers, start_up
from benchmarks.driver import LoadError, call
from benchmarks.goals import short
from benchmarks.meter import NOISY, Record
from benchmarks.progress import Progress, Say
from benchmarks.results import ETCD_ITSELF, Results, failure
from benchmarks.scenarios import Scenario
from benchmarks.servers import Server, Workshop
from benchmarks.targets import Target
from tools import exchanges

STARTUP = "startup"
_SETUP_SECONDS = {servers.PEER: 45.0, servers.SQLITE: 10.0, servers.ETCD: 15.0}
"""About what it takes to start each and to give it 10,000 objects."""
_MOST_AGAIN = 2
"""How often one is made again: a permanent disturbance is not waited for."""


@dataclass(kw_only=True)
class Comparison:
    """One run, whose results are written after each scenario."""

    workshop: Workshop
    results: Results
    into: Path
    say: Say
    names: Sequence[str] = servers.NAMES
    rounds: int = 2
    minutes: float = 25.0

    def run(self, chosen: Sequence[Scenario], *, objects_at_start: int) -> None:
        """All of the chosen, and the start when objects are given for it."""
        total = sum(scenario.seconds for scenario in chosen) * self.rounds * len(self.names)
        setup = sum(_SETUP_SECONDS[name] for name in self.names)
        with_start = (setup + 12 * len(self.names) * self.rounds) if objects_at_start else 0.0
        self._progress = Progress(total + with_start + (setup if chosen else 0.0), minutes=self.minutes)
        if objects_at_start:
            self._measure_start(objects_at_start, with_start)
        if chosen:
            self._measure(chosen, setup)

    def _measure_start(self, objects: int, part: float) -> None:
        """Before the others run: they would take memory and CPU from it."""
        for number in range(self.rounds):
            last = number == self.rounds - 1
            for name in self.names:
                self.say(self._progress.line(f"start-up of {name}"))
                self._record_start(name, objects=objects if last else 0)
                self._progress.done(part / self.rounds / len(self.names))
        self.results.write(self.into)

    def _record_start(self, name: str, *, objects: int) -> None:
        server = self.workshop.make(name)
        try:
            if objects:
                record = start_up.measure(server, objects=objects, say=self.say)
            else:
                record = start_up.measure_empty(server)
        except (LoadError, OSError) as error:
            self.say(f"start-up of {name}: {error}")
            self.results.add(STARTUP, name, failure(str(error)))
        else:
            self.results.add(STARTUP, name, record)
        finally:
            servers.stop(server)

    def _measure(self, chosen: Sequence[Scenario], setup: float) -> None:
        with ExitStack() as stack:
            made = [self.workshop.make(name) for name in self.names]
            for server in made:
                self.say(self._progress.line(f"starting {server.name}"))
                stack.enter_context(servers.running(server))
            self._note_versions(made)
            later = list(chosen)
            # Before there are more objects: a round would not be the same any more.
            for _, stage in groupby(chosen, key=lambda scenario: scenario.objects):
                rounds: list[Round] = []
                for scenario in stage:
                    later.remove(scenario)
                    rounds += self._measure_rounds(scenario, made, later=later)
                    self._progress.done(setup / len(chosen))
                    self.results.write(self.into)
                self._measure_again(rounds, made, later=later)

    def _measure_rounds(
        self, scenario: Scenario, made: Sequence[Server], *, later: Sequence[Scenario]
    ) -> Iterator[Round]:
        """A, B, C, A, B, C. The first round is always made; the others when time allows it for all the scenarios."""
        whole_round = scenario.seconds * len(made)
        must = sum(each.seconds for each in later) * len(made)
        for number in range(self.rounds):
            if number and not self._progress.fits(whole_round + must):
                self.say(f"{scenario.name}: no time for more than {number} of {self.rounds} rounds")
                self._progress.dropped(whole_round * (self.rounds - number))
                return
            self.say(self._progress.line(f"{scenario.name}, round {number + 1} of {self.rounds}"))
            measured = self._measure_round(scenario, made, number)
            for server, name, record in measured.records():
                self.results.add(name, server, record)
            yield measured

    def _measure_again(self, rounds: list[Round], made: Sequence[Server], *, later: Sequence[Scenario]) -> None:
        """The disturbed ones of the rounds, while there is time for that and for all rounds of what comes later."""
        must = sum(each.seconds for each in later) * len(made) * self.rounds
        while worst := most_disturbed(rounds):
            whole_round = worst.scenario.seconds * len(made)
            if not self._progress.fits(whole_round + must):
                self.say("no time to make the other disturbed rounds again")
                return
            self._progress.added(whole_round)
            what = f"{worst.scenario.name}, round {worst.number + 1} again: others took {worst.disturbance:.0f}%"
            self.say(self._progress.line(what))
            again = self._measure_round(worst.scenario, made, worst.number)
            worst.made_again += 1
            if again.is_better(worst):
                worst.found = again.found
                for server, name, record in again.records():
                    self.results.replace(name, server, worst.number, record)
                self.results.write(self.into)

    def _measure_round(self, scenario: Scenario, made: Sequence[Server], number: int) -> Round:
        found: dict[str, dict[str, Record]] = {}
        for server in made:
            found[server.name] = self._measure_one(scenario, server.target)
            self._progress.done(scenario.seconds)
        return Round(scenario, number, found)

    def _measure_one(self, scenario: Scenario, target: Target) -> dict[str, Record]:
        try:
            found = scenario.run(target)
        except (LoadError, OSError) as error:
            self.say(f"  {target.name}: {error}")
            with suppress(LoadError, OSError):  # what it left behind would be in the next lists
                population.adopt(target)
            return {scenario.name: failure(str(error))}
        for name, record in found.items():
            self.say(f"  {target.name:8} {figures(name, record)}")
        return found

    def _note_versions(self, made: Sequence[Server]) -> None:
        for server in made:
            _, body = call(server.target, "GET", "/version")
            self.results.document["versions"][server.name] = json.loads(body)["gitVersion"]
            if isinstance(server, servers.KubeApiserver):
                version = exchanges.decoded(exchanges.send(exchanges.access(server.etcd.url), "GET", "/version"))
                self.results.document["versions"][ETCD_ITSELF] = version["etcdserver"]


def figures(name: str, record: Record) -> str:
    """One line of progress."""
    problem = f", {record['errors']} ERRORS: {record.get('error_sample')}" if record.get("errors") else ""
    if record.get("delivered_pct", 100) < 98:  # noqa: PLR2004 - the sampled ones are right to about a percent
        problem += f", only {record['delivered_pct']:.0f}% delivered ({record.get('stopped')})"
    return (
        f"{name:22} {short(record.get('rps')):>8}/s  p99 {short(record.get('p99_ms')):>7} ms  "
        f"CPU {short(record.get('cpu_us')):>9} us  others {short(record.get('foreign_cpu_pct')):>4}%{problem}"
    )


@dataclass(eq=False)
class Round:
    """What one scenario has found on each server, one after the other."""

    scenario: Scenario
    number: int
    found: dict[str, dict[str, Record]]
    """By server, and by the name of the record."""
    made_again: int = 0

    def records(self) -> Iterator[tuple[str, str, Record]]:
        """Server, name and record."""
        for server, by_name in self.found.items():
            for name, record in by_name.items():
                yield server, name, record

    @property
    def disturbance(self) -> float:
        """The most that others took during one of its measurements, in percent of a core."""
        return max((record.get("foreign_cpu_pct", 0.0) for _, _, record in self.records()), default=0.0)

    @property
    def failed(self) -> bool:
        return any("failed" in record for _, _, record in self.records())

    def is_better(self, other: Round) -> bool:
        """Whether it is the one to keep. What it has found plays no part in that."""
        return not self.failed and self.disturbance < other.disturbance


def most_disturbed(rounds: Sequence[Round]) -> Round | None:
    """The one that needs it most to be made again; None when none does, or all that do have been.

    One that failed is left alone: it shows the server, not a disturbance.
    """
    disturbed = [
        each for each in rounds if each.disturbance > NOISY and not each.failed and each.made_again < _MOST_AGAIN
    ]
    return max(disturbed, key=lambda each: each.disturbance, default=None)
