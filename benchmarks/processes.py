"""Processes that a benchmark starts: each with its log, each ended by its own number."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_END_SECONDS = 20.0


class Process:
    """A program in the background, started any number of times, one at a time.

    In a session of its own: Ctrl-C reaches the benchmark alone, which ends its servers in order.
    """

    def __init__(self, command: Sequence[str], *, log: Path) -> None:
        self._command, self.log = list(command), log
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self._running = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=_environment(os.environ),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        assert self._running is not None  # asked of what runs
        return self._running.pid

    @property
    def has_ended(self) -> bool:
        return self._running is None or self._running.poll() is not None

    def end(self) -> None:
        """Ends it, gently at first. Does nothing when it has ended."""
        running, self._running = self._running, None
        if running is None or running.poll() is not None:
            return
        running.terminate()
        try:
            with suppress(subprocess.TimeoutExpired):
                running.wait(_END_SECONDS)
        finally:  # who presses Ctrl-C again wants it to end, not to stay
            if running.poll() is None:
                running.kill()
                running.wait()

    def log_end(self, lines: int = 15) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Without options of the registry: they would change what is measured."""
    return {name: value for name, value in inherited.items() if not name.startswith("CLUSTERREGISTRY_")}


def follow_parent() -> None:
    """For a part of the client in a process of its own: Ctrl-C is for the one that started it, which ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
