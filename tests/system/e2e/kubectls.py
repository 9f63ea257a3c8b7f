"""A real kubectl that speaks to the host cluster as one of its users."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.system.e2e.host_clusters import HostCluster
from tests.system.e2e.real_programs import kubectl
from tools.processes import PATIENCE


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


class Kubectl:
    """One release as one user, with a cache of its own in ``directory``."""

    def __init__(self, release: str, host: HostCluster, directory: Path) -> None:
        self._program, self._host, self._directory = kubectl(release), host, directory

    def run(self, token: str, *arguments: str, document: Any = None) -> Said:
        done = subprocess.run(
            self._command(token, arguments),
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self._environ(),
            input=json.dumps(document) if document is not None else "",
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def must(self, token: str, *arguments: str, document: Any = None) -> str:
        """What it prints. Fails when it fails."""
        said = self.run(token, *arguments, document=document)
        assert said.code == 0, said
        return said.out

    @contextmanager
    def lines(self, token: str, *arguments: str) -> Iterator[Iterator[str]]:
        """The lines of a kubectl that goes on, such as one that watches."""
        process = subprocess.Popen(
            self._command(token, arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environ(),
        )
        assert process.stdout is not None
        with process.stdout as printed:
            try:
                yield (line.rstrip("\n") for line in printed)
            finally:
                process.kill()
                process.wait(PATIENCE)

    def _command(self, token: str, arguments: tuple[str, ...]) -> list[str]:
        kubeconfig = self._host.kubeconfig(self._directory / f"{token}.kubeconfig", token)
        return [str(self._program), f"--kubeconfig={kubeconfig}", f"--cache-dir={self._directory}/cache", *arguments]

    def _environ(self) -> dict[str, str]:
        return {"HOME": str(self._directory), "PATH": os.environ["PATH"]}
