"""A network namespace that has nothing but its loopback: nothing outside can connect to what is in it."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import clusterregistry
from tools.processes import Process, wait_for

ROOT = Path(__file__).parent.parent.parent
_SOURCES = Path(clusterregistry.__file__).parent.parent
_LISTENING = "0A"


def why_not() -> str:
    """Why there can be no network namespaces here; empty if there can be."""
    if os.geteuid() != 0:
        return "network namespaces take root"
    try:
        with NetworkNamespace():
            return ""
    except (OSError, subprocess.CalledProcessError) as error:
        return f"there are no network namespaces here: {error}"


class NetworkNamespace:
    """Made at the start of the context, and removed at its end with all processes that were started in it."""

    def __init__(self) -> None:
        self.name = f"agents-{uuid.uuid4().hex[:8]}"
        self._processes: list[Process] = []

    def within(self, words: Sequence[str]) -> list[str]:
        return ["ip", "netns", "exec", self.name, *words]

    def start(self, words: Sequence[str], *, log: Path, environ: Mapping[str, str] | None = None) -> Process:
        """Starts a Python module in the namespace."""
        paths = {"PYTHONPATH": f"{_SOURCES}:{ROOT}"}
        process = Process(self.within([sys.executable, "-m", *words]), log=log, environ={**paths, **(environ or {})})
        self._processes.append(process)
        process.start()
        return process

    def run(self, words: Sequence[str], *, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Runs a Python module in the namespace to its end."""
        return subprocess.run(
            self.within([sys.executable, "-m", *words]),
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": f"{_SOURCES}:{ROOT}", **environ},
        )

    def listens(self, port: int) -> bool:
        """Whether something in the namespace listens on a port."""
        found = subprocess.run(self.within(["cat", "/proc/self/net/tcp"]), check=True, capture_output=True, text=True)
        return any(line.split()[1].endswith(f":{port:04X}") for line in found.stdout.splitlines()[1:] if _listens(line))

    def wait_for_port(self, port: int, process: Process) -> None:
        wait_for(lambda: self.listens(port), process.log_end)

    def __enter__(self) -> Self:
        subprocess.run(["ip", "netns", "add", self.name], check=True, capture_output=True)
        subprocess.run(self.within(["ip", "link", "set", "lo", "up"]), check=True, capture_output=True)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.end()
        subprocess.run(["ip", "netns", "delete", self.name], check=False, capture_output=True)


def listening_ports(pid: int) -> list[int]:
    """The TCP ports on which a process listens."""
    folder = Path(f"/proc/{pid}")
    files = [str(each.readlink()) for each in (folder / "fd").iterdir() if each.is_symlink()]
    lines = [line for name in ("tcp", "tcp6") for line in (folder / "net" / name).read_text().splitlines()[1:]]
    own = [line for line in lines if _listens(line) and f"socket:[{line.split()[9]}]" in files]
    return [int(line.split()[1].rpartition(":")[2], 16) for line in own]


def _listens(line: str) -> bool:
    return line.split()[3] == _LISTENING
