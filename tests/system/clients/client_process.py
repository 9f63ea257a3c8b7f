"""Clients as processes: each line of their output is an object in JSON, and some read commands of that form."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tools.processes import PATIENCE, end

Line = dict[str, Any]


class ClientProcess:
    """A client that runs. Its lines are read in the background and kept until a test takes them."""

    def __init__(self, command: Sequence[str], *, log: Path, environ: Mapping[str, str] | None = None) -> None:
        self._log = log
        self._lines: list[Line] = []
        self._changed = threading.Condition()
        self._has_ended = False
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(environ or {})},
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            with contextlib.suppress(ValueError):  # what is not JSON is none of ours
                line = json.loads(text)
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def send(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()

    def expect(self, what: str, *, seconds: float = PATIENCE, **about: Any) -> Line:
        """Waits for the first line with these values, and takes it out. Fails if it does not come."""
        until = time.monotonic() + seconds
        with self._changed:
            while (found := self._take(what, about)) is None:
                left = until - time.monotonic()
                assert left > 0, f"no line {what!r} {about} in {seconds:g} s.\n{self._report()}"
                assert not self._has_ended, f"the client ended before the line {what!r} {about}.\n{self._report()}"
                self._changed.wait(left)
        return found

    def seen(self, what: str, **about: Any) -> list[Line]:
        """The lines so far with these values that were not taken out."""
        with self._changed:
            return [line for line in self._lines if _fits(line, what, about)]

    def _take(self, what: str, about: Line) -> Line | None:
        for place, line in enumerate(self._lines):
            if _fits(line, what, about):
                return self._lines.pop(place)
        return None

    def _report(self) -> str:
        lines = "\n".join(json.dumps(line)[:300] for line in self._lines[-30:])
        return f"Its last lines:\n{lines}\nIts log:\n{self.logged()[-4000:]}"

    def logged(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> int:
        """Ends the program as an operator does, and returns its exit status."""
        end(self._process)
        self._reader.join(PATIENCE)
        return self._process.returncode

    def kill(self) -> None:
        end(self._process, signal.SIGKILL)
        self._reader.join(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def _fits(line: Line, what: str, about: Line) -> bool:
    return line.get("what") == what and all(line.get(name) == value for name, value in about.items())
