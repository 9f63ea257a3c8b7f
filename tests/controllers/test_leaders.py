"""Leaders that end, are killed, and stand still: another one takes over, and never do two write.

``make leader-test`` does it twenty times with the default durations, and reports how long the takeovers took.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from tests.controllers import write_history
from tests.controllers.fleets import QUICK, ControllerProcess, Fleet, running_fleet, shown, until, with_members

KILLS = int(os.environ.get("LEADER_KILLS", "0"))
"""How often a leader is ended; 0: a few times, with a short Lease."""

TAKEOVER_SECONDS = 20.0
_SHORT_LEASE = (
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
)
_FLAGS = QUICK if KILLS else (*QUICK, *_SHORT_LEASE)
_WAYS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL)


def _pid(holder: str) -> int:
    return int(holder.split("_")[-2])


async def _holder(fleet: Fleet) -> str:
    return str((await fleet.lease())["holderIdentity"])


async def _is_renewed(fleet: Fleet, since: dict[str, str]) -> bool:
    return all(each["observedAt"] > since[name] for name, each in (await fleet.statuses()).items())


async def _wait_renewed(fleet: Fleet) -> None:
    """Waits for a new observation of every cluster."""
    since = {name: each["observedAt"] for name, each in (await fleet.statuses()).items()}
    await until(lambda: _is_renewed(fleet, since), fleet.logs)


class _Play:
    """Ends one leader after the other."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.running: dict[int, ControllerProcess] = {}
        self.seconds: list[tuple[str, float]] = []

    async def start(self) -> None:
        controller = self.fleet.start_controller(*_FLAGS)
        self.running[controller.process.pid] = controller
        await controller.wait_ready()

    async def end_leader(self, way: signal.Signals) -> None:
        holder = await until(lambda: _holder(self.fleet))
        pid = _pid(holder)
        begun = time.monotonic()
        os.kill(pid, way)
        if way is not signal.SIGSTOP:
            self.running.pop(pid)
        await until(lambda: self._is_another(holder), self.fleet.logs)
        self.seconds.append((way.name, time.monotonic() - begun))
        if way is signal.SIGSTOP:  # it goes on as if nothing had been, and has to find out
            os.kill(pid, signal.SIGCONT)
        else:
            await self.start()
        await _wait_renewed(self.fleet)

    async def _is_another(self, before: str) -> bool:
        return await _holder(self.fleet) not in {"", before}


@with_members
async def test_another_controller_takes_over_and_never_do_two_write(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    async with running_fleet(tmp_path, flags=write_history.audit_flags(audit)) as fleet:
        play = _Play(fleet)
        await play.start()
        await play.start()

        async def all_ready() -> bool:
            return all(shown(each) == ("Ready", "Ready") for each in (await fleet.statuses()).values())

        await until(all_ready, fleet.logs)
        for number in range(KILLS or 3):
            await play.end_leader(_WAYS[number % len(_WAYS)])
        statuses, events = await fleet.statuses(), await fleet.events()
        for controller in play.running.values():
            await asyncio.to_thread(controller.process.end)

    writes = write_history.history(audit)
    counts = write_history.check_one_writer(writes)
    assert len(counts) > 1
    assert write_history.states(writes) == {name: ["Ready"] for name in statuses}
    assert sorted(each["reason"] for each in events) == ["ClusterReady"] * len(statuses)
    _report(play.seconds, counts)
    if KILLS:
        assert max(seconds for _, seconds in play.seconds) < TAKEOVER_SECONDS


def _report(seconds: list[tuple[str, float]], counts: dict[str, int]) -> None:
    for way in dict.fromkeys(name for name, _ in seconds):
        taken = sorted(each for name, each in seconds if name == way)
        sys.stdout.write(f"\n{way}: {len(taken)} takeovers, {taken[0]:.1f} to {taken[-1]:.1f} s")
    sys.stdout.write(f"\n{sum(counts.values())} writes of a status by {len(counts)} leaders, each with the Lease\n")
