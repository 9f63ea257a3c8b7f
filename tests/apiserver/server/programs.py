"""A real program of the library, started and ended as an operator does."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import clusterregistry
from clusterregistry.client.errors import ClientError
from tests.apiserver.api.clients import TOKENS
from tests.apiserver.api.over_tls import OverTLS
from tools import exchanges
from tools.ports import free_port

READY_SECONDS = 90.0
END_SECONDS = 30.0
"""Less than a server waits for requests in progress."""
_SOURCES = Path(clusterregistry.__file__).parent.parent


class Program:
    """``standalone`` of a program in a directory of its own; can be started again there."""

    module = "clusterregistry"

    def __init__(
        self, directory: Path, *flags: str, environment: Mapping[str, str] | None = None, command: Sequence[str] = ()
    ) -> None:
        """``command`` is what runs the program, such as a shell that sets limits."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.data = directory, directory / "data"
        self.log = directory / "server.log"
        self.port = free_port()
        tokens = directory / "tokens.csv"
        tokens.touch(mode=0o600)  # a file that others may read gives a warning
        tokens.write_text(TOKENS)
        self._flags, self._environment, self._command = flags, environment or {}, command
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        arguments = ["--bind-address", "127.0.0.1", "--secure-port", str(self.port), "--data-dir", str(self.data)]
        arguments += ["--token-auth-file", str(self.directory / "tokens.csv"), *self._flags]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._command, sys.executable, "-m", self.module, "standalone", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(_SOURCES), **self._environment},
            )
        self._wait_until_ready()
        return self

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            assert self.process.poll() is None, f"the server ended with {self.process.returncode}:\n{self.logged()}"
            assert time.monotonic() < until, f"the server is not ready:\n{self.logged()}"
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        try:
            with self.client() as client:
                return client.get("/readyz").status == 200
        except ClientError:  # no certificate yet, or nobody listens yet
            return False

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(END_SECONDS)

    def stop(self) -> int:
        """Tells the program to stop and returns its exit status."""
        self.signal()
        return self.wait()

    def end(self) -> None:
        """Ends whatever still runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(END_SECONDS)

    @property
    def authority(self) -> Path:
        """The file by which clients verify the server."""
        return self.data / "ca.crt"

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    def client(self, *identity: Path) -> OverTLS:
        """Without a certificate and its key, a client has none."""
        url = f"https://127.0.0.1:{self.port}"
        return OverTLS(exchanges.access(url, ca_file=self.authority, identity=identity))

    def socket(
        self, *, seconds: float = 60.0, trust: ssl.SSLContext | None = None, session: ssl.SSLSession | None = None
    ) -> ssl.SSLSocket:
        """A bare TLS connection, for what no client library would send."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=seconds)
        return (trust or self.trust()).wrap_socket(plain, server_hostname="127.0.0.1", session=session)

    def logged(self) -> str:
        return self.log.read_text(errors="replace")

    def resident_bytes(self) -> int:
        """The memory that the process really uses."""
        return self._memory("VmRSS:")

    def forget_peak(self) -> None:
        """From now on ``peak_bytes`` is the most memory that the process has used since."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_bytes(self) -> int:
        return self._memory("VmHWM:")

    def _memory(self, name: str) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in text.splitlines() if line.startswith(name))
        return int(line.split()[1]) * 1024

    def cpu_seconds(self) -> float:
        """The time that the process has computed."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self) -> int:
        """How many files and sockets the process has open."""
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.end()
