"""A shell at a terminal, for what only happens at a prompt."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from typing import Self

SECONDS = 60.0
"""Until which a shell has answered, however busy the machine is."""

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x07\r]")


class Terminal:
    """Types, and reads what the shell shows."""

    def __init__(self, *command: str) -> None:
        self._command = command
        self._shown = ""

    def __enter__(self) -> Self:
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            environ = {"PATH": os.environ["PATH"], "TERM": "dumb", "HISTFILE": "/dev/null", "HOME": "/nowhere"}
            os.execve(self._command[0], list(self._command), environ)
        # Wide, since shells cut long lines in their own ways.
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 1000, 0, 0))
        self.type("echo re''ady\n")
        self.shows("ready\n")
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._terminal)

    def _screen(self) -> str:
        text = _CONTROL.sub("", self._shown)
        while "\b" in text:
            text = re.sub(r"[^\b]?\x08", "", text, count=1)
        return text

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def shows(self, text: str) -> None:
        """Waits until a text is on the screen."""
        until = time.monotonic() + SECONDS
        while text not in self._screen():
            assert time.monotonic() < until, f"the terminal shows {self._screen()[-300:]!r}"
            if select.select([self._terminal], [], [], 1.0)[0]:
                with contextlib.suppress(OSError):  # the shell has ended
                    self._shown += os.read(self._terminal, 65536).decode(errors="replace")
