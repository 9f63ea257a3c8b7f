"""Runs the shell blocks of a document, word for word, as a reader would who opens new terminals for it.

A reader has two of them, each a login shell with an empty home and the path of a plain system. What is not there,
such as ``clusterregistry``, is there when the document has put it there:

* a block that starts a server (``make run``, ``clusterregistry standalone``) is typed into the first terminal, where
  the server runs until the reader presses Ctrl-C: when another is started, or before a block ``sh stopped``;
* the line that finds the program in a checkout, ``export PATH=...``, is typed into both, as the documents say;
* everything else is typed into the second.

These things are put in place, and nothing in the text is changed but ports:

* ``kubectl`` is on the path, and so are other programs that the document asks for (``also``: scripts by their names);
* the program is in ``.venv/bin`` of the directory that the reader is in, as ``make setup`` leaves it there, or on the
  path, as ``pipx`` leaves it (``installed``). ``make run`` starts it as the Makefile does. Other targets do nothing;
* the default port 8443 becomes a free one, in the commands and back again in what they print, and so do the addresses
  of other servers that the text takes for granted (``stand_ins``: as written, as it is).
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import clusterregistry
from tests.docs.markdown import Block
from tools.ports import free_port

PORT = "8443"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FIND_PROGRAM = 'export PATH="$PWD/.venv/bin:$PATH"'
"""The line by which a reader with a checkout finds the programs of the project."""

SECONDS = 90.0
"""The longest that a block takes."""

# bash takes its commands from its standard input: those of a document must not read from there.
_RUN = "failures=0; . {file} </dev/null; printf '\\n%s %s\\n' {mark} $failures\n"
_MARK = "block-is-done"
_DONE = re.compile(rf"^{_MARK} (\d+)\n", re.MULTILINE)
_SERVES = re.compile(r"^(?:Try|Serving): .*\n", re.MULTILINE)
_COUNT_FAILURES = "trap 'failures=$((failures + 1))' ERR\n"
_STARTS_A_SERVER = re.compile(r"^(?:make run|clusterregistry (?:standalone|aggregated))\b", re.MULTILINE)
_MAKE = """\
#!/bin/sh
[ "$1" = run ] || exit 0
for argument; do case $argument in ARGS=*) arguments=${argument#ARGS=};; esac; done
eval "exec .venv/bin/clusterregistry standalone $arguments"
"""
_SOURCES = Path(clusterregistry.__file__).parents[1]
_PROGRAM = f"""\
#!/bin/sh
PYTHONPATH={_SOURCES} exec {sys.executable} -m %s "$@"
"""
_PROGRAMS = {"clusterregistry": _PROGRAM % "clusterregistry", "crinit": _PROGRAM % "clusterregistry.crinit"}


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


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a reader has. ``directory`` is where the terminals are opened: a checkout, unless the home will do."""

    kubectl: Path
    directory: Path | None = None
    installed: bool = False
    stand_ins: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def reader(home: Path, surroundings: Surroundings) -> Iterator[Reader]:
    """A reader with an empty ``home``; the terminals, and what runs in them, end with the block."""
    opened = Reader(home, surroundings)
    try:
        yield opened
    finally:
        opened.close()


class Reader:
    """Two terminals, and which of them a block is for."""

    def __init__(self, home: Path, surroundings: Surroundings) -> None:
        self._home, self._port, self._stand_ins = home, str(free_port()), surroundings.stand_ins
        directory = surroundings.directory or home
        _furnish(home, directory, surroundings)
        self._first = Terminal(home, directory, {"CLUSTERREGISTRY_SECURE_PORT": self._port})
        self._second = Terminal(home, directory, {})

    def follow(self, block: Block) -> Outcome:
        commands = self._as_it_is(block.body)
        if "stopped" in block.info.split():
            self._first.interrupt()
        if _STARTS_A_SERVER.search(commands):
            self._first.interrupt()
            outcome = self._first.run(commands, until=_SERVES)
        else:
            outcome = self._second.run(commands)
        if commands.strip() == FIND_PROGRAM:
            self._first.run(commands)
        return Outcome(self._as_written(outcome.printed), outcome.failures)

    def close(self) -> None:
        self._first.close()
        self._second.close()

    def _as_it_is(self, text: str) -> str:
        text = text.replace(PORT, self._port)
        for written, actual in self._stand_ins.items():
            text = text.replace(written, actual)
        return text

    def _as_written(self, printed: str) -> str:
        for written, actual in self._stand_ins.items():
            printed = printed.replace(actual, written)
        return printed.replace(str(self._home), "~").replace(self._port, PORT)


class Terminal:
    """A login shell that keeps its variables from block to block. What it prints goes to a file."""

    def __init__(self, home: Path, directory: Path, environ: Mapping[str, str]) -> None:
        self._file = home / f".terminal-{id(self)}"
        with self._file.open("wb") as output:
            self._shell = subprocess.Popen(
                ["bash", "-l"],
                cwd=directory,
                env={"HOME": str(home), "TERM": "dumb", **environ},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._read = 0
        self._is_busy = False
        self._type(_COUNT_FAILURES)

    def run(self, commands: str, *, until: re.Pattern[str] = _DONE) -> Outcome:
        """Runs a block to its end, or until it has printed what ``until`` matches and goes on in the foreground."""
        script = self._file.with_suffix(".sh")
        # The last line lets the block as a whole succeed: the trap has counted what failed in it.
        script.write_text(commands + "\n:\n")
        self._type(_RUN.format(file=shlex.quote(str(script)), mark=_MARK))
        return self._wait_for(until)

    def interrupt(self) -> None:
        """Ctrl-C, if something runs in the foreground, until it has ended."""
        if self._is_busy:
            for child in self._children():
                os.kill(child, signal.SIGINT)
            self._wait_for(_DONE)

    def close(self) -> None:
        for child in self._children():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        with self._shell:
            self._shell.kill()

    def _type(self, text: str) -> None:
        assert self._shell.stdin
        self._shell.stdin.write(text.encode())
        self._shell.stdin.flush()

    def _wait_for(self, until: re.Pattern[str]) -> Outcome:
        deadline = time.monotonic() + SECONDS
        while True:
            raw = self._file.read_bytes()[self._read :]
            printed = raw.decode(errors="replace")
            done = _DONE.search(printed)
            if done or until.search(printed):
                break
            assert self._shell.poll() is None, f"the shell ended: {printed}"
            assert time.monotonic() < deadline, f"this takes too long: {printed}"
            time.sleep(0.02)
        self._read += len(raw)
        self._is_busy = not done
        return Outcome(_DONE.sub("", printed), int(done[1]) if done else 0)

    def _children(self) -> list[int]:
        pid = self._shell.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _furnish(home: Path, directory: Path, surroundings: Surroundings) -> None:
    """Puts in place what a reader has: a profile with the path of a plain system, and programs."""
    directory.mkdir(exist_ok=True)
    programs = home / ".programs"
    programs.mkdir()
    (home / ".profile").write_text(f"export PATH={shlex.quote(str(programs))}:{SYSTEM_PATH}\n")
    (programs / "kubectl").symlink_to(surroundings.kubectl)
    _install(programs, {"make": _MAKE, **surroundings.also})
    ours = programs if surroundings.installed else directory / ".venv" / "bin"
    ours.mkdir(parents=True, exist_ok=True)
    _install(ours, _PROGRAMS)


def _install(directory: Path, scripts: Mapping[str, str]) -> None:
    for name, text in scripts.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)


_VARYING = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r"\(\d+\.\ds\)"), "(SECONDS)"),
    (re.compile(r"(resource ?version\"?: *)\"?\d+\"?", re.IGNORECASE), r"\1REVISION"),
    (re.compile(r"(?<=\s)\d+[smhd](?:\d+[smh])?(?=\s|$)"), "AGE"),
)


def problem(step: Step, outcome: Outcome) -> str:
    """What differs between a step and its outcome; empty if nothing does."""
    wrong = []
    if bool(outcome.failures) != step.fails:
        wrong.append(f"{outcome.failures} commands failed")
    if step.shown and not agree(step.shown.body, outcome.printed):
        wrong.append("the document shows other text")
    return f"line {step.commands.line}: {', '.join(wrong)}; printed:\n{outcome.printed}" if wrong else ""


def agree(shown: str, printed: str) -> bool:
    """Whether a command printed what the document shows, but for what differs from one run to the next."""
    parts = re.split(r"^ *\.\.\. *$", _settled(shown), flags=re.MULTILINE)
    pattern = r"\s*.*\s*".join(r"\s+".join(map(re.escape, part.split())) for part in parts)
    return re.fullmatch(rf"\s*{pattern}\s*", _settled(printed), re.DOTALL) is not None


def _settled(text: str) -> str:
    for varying, name in _VARYING:
        text = varying.sub(name, text)
    return text
