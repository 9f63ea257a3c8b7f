"""Processes that tests start: each with its log, each ended by whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PATIENCE = 90.0
"""Seconds to wait for another process. Generous: the machine may be busy with other things."""

_OPTIONS = ("CLUSTERREGISTRY_", "ETCD_")
_END_SECONDS = 30.0
_PAUSE = 0.1


class Process:
    """One process after the other with the same command line."""

    def __init__(self, command: Sequence[str], *, log: Path, environ: Mapping[str, str] | None = None) -> None:
        self.command, self.log = list(command), log
        # Not what tells the tests which programs to run: registry and etcd would take it for options.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OPTIONS)}
        self._environ = {**inherited, **(environ or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=self._environ
            )

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ends what runs, gently unless told otherwise; a process that does not go is killed."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_END_SECONDS)

    def exit_status(self) -> int | None:
        """With what it ended by itself; None while it runs."""
        return self._process.poll() if self._process else None

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Waits until it is ready. Fails with the log when it ends before or takes too long."""

        def is_ready() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, f"{self.command[0]} ended:\n{self.logged()[-4000:]}"
            return ready()

        wait_for(is_ready, lambda: f"{self.command[0]} is not ready:\n{self.logged()[-4000:]}")

    def logged(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def wait_for(come_true: Callable[[], bool], otherwise: Callable[[], str] = lambda: "") -> None:
    until = time.monotonic() + PATIENCE
    while not come_true():
        assert time.monotonic() < until, f"waited for {PATIENCE:.0f} s. {otherwise()}"
        time.sleep(_PAUSE)
