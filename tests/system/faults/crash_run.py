"""The crash test: a busy server is killed again and again, and all of its answers are checked.

Run as ``python -m tests.system.faults.crash_run``; ``--help`` names the options.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from pathlib import Path

from tests.system.faults import set_run
from tests.system.faults.disks import COMPILER, FailingDisk
from tests.system.faults.nemesis import Killing, KillingOnFailingDisk, Nemesis, OneOf
from tests.system.faults.report import Say, first, keep_if_wrong, positive, run_command, seed_option
from tests.system.faults.servers import Server
from tests.system.faults.verdict import Verdict, check
from tests.system.faults.workload import StalledError, Workload

SHORTEST, LONGEST = 0.2, 1.0
"""Seconds of work between two crashes."""
FAILING_SECONDS = 0.3
"""How long the disk fails before such a crash."""
ROUNDS = 200


async def crash(directory: Path, *, rounds: int, seed: int, say: Say) -> Verdict:
    """Kills a server so many times while eight write and two watch, and judges all that they were answered.

    Where there is a compiler, its disk fails for a moment before some of the kills. A history with violations is
    written to the directory. Raises AssertionError, in a group, when the server does not start again.
    """
    disk = FailingDisk(directory / "disk") if COMPILER else None
    server = Server(directory, environment=disk.environment if disk else None)
    rng = random.Random(seed)
    say(f"seed {seed}, {rounds} rounds, {'with' if disk else 'WITHOUT'} a disk that fails")
    async with server.running():
        workload = Workload([server.target()], seed=seed)
        try:
            async with workload.running():
                await _strike(_nemesis(server, disk, rng=rng), workload, rounds=rounds, rng=rng, say=say)
        except* StalledError as group:  # a violation like others, but there is no going on
            say(f"stopped early: {first(group)}")
    say("checking the history")
    verdict = check(workload.record(), sole_writer=True)
    keep_if_wrong(workload.record(), verdict, directory)
    return verdict


def _nemesis(server: Server, disk: FailingDisk | None, *, rng: random.Random) -> Nemesis:
    killing = Killing(server)
    if disk is None:
        return killing
    return OneOf([killing, killing, KillingOnFailingDisk(server, disk, seconds=FAILING_SECONDS)], rng=rng)


async def _strike(nemesis: Nemesis, workload: Workload, *, rounds: int, rng: random.Random, say: Say) -> None:
    for number in range(1, rounds + 1):
        await asyncio.sleep(rng.uniform(SHORTEST, LONGEST))
        await nemesis.strike()
        await workload.checkpoint()
        if number % 10 == 0 or number == rounds:
            say(f"round {number} of {rounds}: {workload.operations} operations so far")


def main() -> int:
    options = _options()

    async def run(directory: Path, say: Say) -> bool:
        verdict = await crash(directory, rounds=options.rounds, seed=options.seed, say=say)
        say(f"after {options.rounds} crashes: {verdict.report()}")
        sets = await set_run.crash([Server(directory / "sets")], rounds=options.rounds, seed=options.seed, say=say)
        say(f"after {options.rounds} crashes while sets changed: {sets.report()}")
        return not verdict.violations and not sets.violations

    return run_command("crash-test", run, seed=options.seed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="crash-test", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=positive, default=ROUNDS, help="how often to kill the server (%(default)s)")
    seed_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
