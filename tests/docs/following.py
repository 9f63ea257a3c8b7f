"""Follows a document: runs its shell blocks as a reader would, against a server of its own.

These things are put in place, and nothing in the text is changed but ports:

* ``HOME`` is an empty directory, so that ``~/.local/share/clusterregistry`` is where the text says it is;
* the default port 8443 becomes a free one, in the commands and back again in what they print, and so do the addresses
  of other servers that the text takes for granted (``stand_ins``: as written, as it is);
* ``make run`` starts ``python -m clusterregistry standalone`` with the same ``ARGS`` in place of an installed one, and
  ends the server that ran before, as a reader does with Ctrl-C. Other ``make`` targets do nothing. ``clusterregistry``
  is on the path, and so are other programs that the reader has (``also``: scripts by their names);
* a block ``sh stopped`` is for a reader who has ended the server before it, as the text then says.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import clusterregistry
from tests.docs.markdown import Block
from tools.live_server import end
from tools.ports import free_port

PORT = "8443"
READY_SECONDS = 60.0

# bash takes its commands from its standard input: those of a document must not read from there.
_RUN = "failures=0; . {file} </dev/null; printf '\\n%s %s\\n' {mark} $failures\n"
_MARK = "block-is-done"
_COUNT_FAILURES = "trap 'failures=$((failures + 1))' ERR\n"
_MAKE = """\
#!/bin/sh
if [ "$1" = run ]; then
  shift
  for argument; do case $argument in ARGS=*) printf '%s' "${argument#ARGS=}";; esac; done > "$HOME/.make-run"
fi
"""
_SOURCES = Path(clusterregistry.__file__).parents[1]
_PROGRAM = f"""\
#!/bin/sh
PYTHONPATH={_SOURCES} exec {sys.executable} -m clusterregistry "$@"
"""


@dataclass(frozen=True)
class Step:
    """A shell block, and the block that shows what it prints, where there is one."""

    commands: Block
    shown: Block | None

    @property
    def fails(self) -> bool:
        return "fails" in self.commands.info.split()


@dataclass(frozen=True)
class Outcome:
    """What a step printed, and how many of its commands failed."""

    printed: str
    failures: int


def steps(found: list[Block]) -> list[Step]:
    """The shell blocks of a document, each with the text block that follows it."""
    return [
        Step(block, follower if follower and follower.info == "text" else None)
        for block, follower in zip_longest(found, found[1:])
        if block.info.split()[:1] == ["sh"]
    ]


@contextmanager
def reader(
    home: Path, *, kubectl: Path, stand_ins: Mapping[str, str] | None = None, also: Mapping[str, str] | None = None
) -> Iterator[Reader]:
    """Somebody at a terminal in ``home``; the terminal and the server end with the block."""
    following = Reader(home, kubectl=kubectl, stand_ins=stand_ins or {}, also=also or {})
    try:
        yield following
    finally:
        following.leave()


class Reader:
    """A shell that keeps its variables from block to block, and a server beside it."""

    def __init__(self, home: Path, *, kubectl: Path, stand_ins: Mapping[str, str], also: Mapping[str, str]) -> None:
        self._home, self._port, self._stand_ins = home, str(free_port()), stand_ins
        self._environ = _environment(home, kubectl, also)
        self._server: subprocess.Popen[bytes] | None = None
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=home,
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._tell(_COUNT_FAILURES)

    def follow(self, block: Block) -> Outcome:
        if "stopped" in block.info.split():
            self._stop()
        file = self._home / ".block.sh"
        # The last line lets the block as a whole succeed: the trap has counted what failed in it.
        file.write_text(self._as_it_is(block.body) + "\n:\n")
        self._tell(_RUN.format(file=shlex.quote(str(file)), mark=_MARK))
        printed, failures = self._listen()
        wanted = self._home / ".make-run"
        if wanted.exists():
            printed += self._start(shlex.split(wanted.read_text()))
            wanted.unlink()
        return Outcome(self._as_written(printed), failures)

    def leave(self) -> None:
        self._stop()
        with self._shell:
            self._shell.terminate()

    def _tell(self, text: str) -> None:
        assert self._shell.stdin
        self._shell.stdin.write(text)
        self._shell.stdin.flush()

    def _listen(self) -> tuple[str, int]:
        assert self._shell.stdout
        lines: list[str] = []
        for line in self._shell.stdout:
            if line.startswith(_MARK):
                return "".join(lines), int(line.split()[1])
            lines.append(line)
        raise AssertionError("the shell ended: " + "".join(lines))

    def _start(self, arguments: list[str]) -> str:
        self._stop()
        log = self._home / ".server.log"
        environ = self._environ | {
            "CLUSTERREGISTRY_SECURE_PORT": self._port,
            "PYTHONPATH": str(_SOURCES),
        }
        command = [sys.executable, "-m", "clusterregistry", "standalone", *arguments]
        with log.open("wb") as output:
            self._server = subprocess.Popen(
                command,
                cwd=self._home,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        until = time.monotonic() + READY_SECONDS
        while "\nTry:" not in log.read_text():
            assert self._server.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        return log.read_text()

    def _stop(self) -> None:
        if self._server is not None:
            end(self._server)
            self._server = None

    def _as_it_is(self, text: str) -> str:
        text = text.replace(PORT, self._port)
        for written, actual in self._stand_ins.items():
            text = text.replace(written, actual)
        return text

    def _as_written(self, printed: str) -> str:
        for written, actual in self._stand_ins.items():
            printed = printed.replace(actual, written)
        return printed.replace(str(self._home), "~").replace(self._port, PORT)


def _environment(home: Path, kubectl: Path, also: Mapping[str, str]) -> dict[str, str]:
    programs = home / ".programs"
    programs.mkdir()
    (programs / "kubectl").symlink_to(kubectl)
    for name, text in {"make": _MAKE, "clusterregistry": _PROGRAM, **also}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return {"HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}", "LANG": "C.UTF-8", "TERM": "dumb"}


_VARYING = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
    (re.compile(r"\(\d+\.\ds\)"), "(SECONDS)"),
    (re.compile(r"(resource ?version\"?: *)\"?\d+\"?", re.IGNORECASE), r"\1REVISION"),
    (re.compile(r"(?<=\s)\d+[smhd](?:\d+[smh])?(?=\s|$)"), "AGE"),
)


def agree(shown: str, printed: str) -> bool:
    """Whether a command printed what the document shows, but for what differs from one run to the next."""
    parts = re.split(r"^ *\.\.\. *$", _settled(shown), flags=re.MULTILINE)
    pattern = r"\s*.*\s*".join(r"\s+".join(map(re.escape, part.split())) for part in parts)
    return re.fullmatch(rf"\s*{pattern}\s*", _settled(printed), re.DOTALL) is not None


def _settled(text: str) -> str:
    for varying, name in _VARYING:
        text = varying.sub(name, text)
    return text
