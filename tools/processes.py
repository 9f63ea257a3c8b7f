"""Processes that tests and benchmarks start: each has a log, and each is ended by the code that started it."""

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
_PAUSE = 0.02


class ProcessError(Exception):
    """A process ended, or was not ready in time; the message has the end of its log."""


class Process:
    """A program in the background, started any number of times, one at a time, with the same command line.

    In a session of its own: Ctrl-C reaches the test or benchmark alone, which ends its processes in order.
    """

    def __init__(self, command: Sequence[str], *, log: Path, environ: Mapping[str, str] | None = None) -> None:
        self.command, self.log = list(command), log
        # Without the variables that name programs for tests: registry and etcd would read them as options.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OPTIONS)}
        self._environ = {**inherited, **(environ or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environ,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self._process is not None  # asked of what runs
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def exit_status(self) -> int | None:
        """The status with which the process ended by itself; None while it runs."""
        return self._process.poll() if self._process else None

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ends the process with a signal, and kills it if it does not end in time. Does nothing if it has ended."""
        process, self._process = self._process, None
        if process is not None:
            end(process, number)

    def wait_until(self, ready: Callable[[], bool], *, seconds: float = PATIENCE) -> None:
        """Waits until the process is ready. Raises ProcessError when it ends before, or takes too long."""
        until = time.monotonic() + seconds
        while not ready():
            if self.has_ended:
                raise ProcessError(f"{self.command[0]} ended with status {self.exit_status()}:\n{self.log_end()}")
            if time.monotonic() > until:
                raise ProcessError(f"{self.command[0]} was not ready after {seconds:g} s:\n{self.log_end()}")
            time.sleep(_PAUSE)

    def logged(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def log_end(self, lines: int = 30) -> str:
        return "\n".join(self.logged().splitlines()[-lines:])


def end(process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> None:
    """Ends a process with a signal, and kills it if it does not end in time. Does nothing if it has ended."""
    if process.poll() is not None:
        return
    process.send_signal(number)
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    finally:  # a second Ctrl-C while waiting must not leave it behind
        if process.poll() is None:
            process.kill()
            process.wait()


def wait_for(condition: Callable[[], bool], message: Callable[[], str] = lambda: "") -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f"waited for {PATIENCE:.0f} s. {message()}"
        time.sleep(_PAUSE)
