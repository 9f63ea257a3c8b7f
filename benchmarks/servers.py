"""The servers that are compared, each with what it needs, on loopback and in a directory of its own.

All are at their defaults: TLS, authentication by token, RBAC, metrics, and writes that are on disk when they are
answered.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric import rsa

from benchmarks.driver import LoadError, call
from benchmarks.objects import PATH
from benchmarks.targets import Target
from clusterregistry.apimachinery import certificates
from tools import live_server, programs
from tools.ports import free_port, free_ports
from tools.processes import Process

PEER, SQLITE, ETCD, BARE = "peer", "sqlite", "etcd", "bare"
NAMES = (PEER, SQLITE, ETCD)
"""kube-apiserver with etcd, ours on SQLite, ours on etcd. Not among what is compared: the least server of all."""

PEER_PROGRAM, ETCD_PROGRAM = "kube-apiserver-1.36", "etcd-server-3.6"
CRD = Path(__file__).parents[1] / "tests" / "conformance" / "cluster-crd.yaml"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

READY_SECONDS = 120.0
_PAUSE = 0.005


class Server(Protocol):
    """What can be started, measured and ended. It keeps its data from one start to the next."""

    name: str
    target: Target
    processes: list[Process]

    def start(self) -> None:
        """Starts its processes and does not wait for them."""

    def prepare(self) -> None:
        """Makes a server that is ready serve clusters; again and again until it does."""


class Etcd:
    """One member, as it is without options."""

    def __init__(self, directory: Path, program: Path) -> None:
        self.port, peer = free_ports(2)
        self.url, peers = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{peer}"
        command = [str(program), f"--data-dir={directory / 'etcd'}"]
        command += [f"--listen-client-urls={self.url}", f"--advertise-client-urls={self.url}"]
        command += [f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"]
        self.process = Process([*command, f"--initial-cluster=default={peers}"], log=directory / "etcd.log")


class Registry:
    """Ours, on SQLite unless it is given an etcd."""

    def __init__(self, directory: Path, etcd: Etcd | None = None) -> None:
        self.name = ETCD if etcd else SQLITE
        port = free_port()
        tokens = directory / "tokens.csv"
        tokens.write_text(live_server.TOKENS)
        command = [*live_server.installed_command(), "standalone", "--bind-address=127.0.0.1", f"--secure-port={port}"]
        command += [f"--data-dir={directory / 'data'}", f"--token-auth-file={tokens}"]
        command += [f"--etcd-servers={etcd.url}"] if etcd else []
        own = Process(command, log=directory / "server.log")
        self.processes = [etcd.process, own] if etcd else [own]
        self.target = Target(f"https://127.0.0.1:{port}", token=live_server.ADMIN_TOKEN, name=self.name)

    def start(self) -> None:
        for process in self.processes:
            process.start()

    def prepare(self) -> None:
        """It serves clusters from the start."""


class Bare:
    """What an API server is to be measured by from below."""

    name = BARE

    def __init__(self, directory: Path) -> None:
        port = free_port()
        command = [sys.executable, "-m", "benchmarks.bare", f"--port={port}", f"--directory={directory}"]
        self.processes = [Process(command, log=directory / "bare.log")]
        self.target = Target(f"https://127.0.0.1:{port}", token="", name=BARE)

    def start(self) -> None:
        self.processes[0].start()

    def prepare(self) -> None:
        """It answers from the start."""


class KubeApiserver:
    """The peer, with the same API as a custom resource definition."""

    name = PEER

    def __init__(self, directory: Path, etcd: Etcd, program: Path) -> None:
        port = free_port()
        tokens, key = directory / "tokens.csv", directory / "sa.key"
        tokens.write_text(live_server.TOKENS)
        key.write_bytes(certificates.key_pem(rsa.generate_private_key(65537, 2048)))
        command = [
            str(program),
            f"--etcd-servers={etcd.url}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={directory / 'certs'}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={tokens}",
            "--disable-admission-plugins=ServiceAccount",
        ]
        self.etcd = etcd
        self.processes = [etcd.process, Process(command, log=directory / "kube-apiserver.log")]
        self.target = Target(f"https://127.0.0.1:{port}", token=live_server.ADMIN_TOKEN, name=PEER)

    def start(self) -> None:
        for process in self.processes:
            process.start()

    def prepare(self) -> None:
        status, body = call(self.target, "POST", _CRDS, CRD.read_bytes(), content_type="application/yaml")
        if status not in (HTTPStatus.CREATED, HTTPStatus.CONFLICT):
            raise LoadError(f"the custom resource definition: {status} {body[:300]!r}")


@dataclass
class Workshop:
    """Makes servers in a scratch directory, each in a folder of its own."""

    directory: Path
    etcd_program: Path | None = None
    """Else it is fetched, or built, when it is needed; so is kube-apiserver."""
    peer_program: Path | None = None
    _made: int = field(default=0, init=False)

    def make(self, name: str) -> Server:
        self._made += 1
        directory = self.directory / f"{self._made}-{name}"
        directory.mkdir(parents=True)
        if name == SQLITE:
            return Registry(directory)
        if name == BARE:
            return Bare(directory)
        etcd = Etcd(directory, self.etcd_program or programs.ensure(ETCD_PROGRAM))
        if name == ETCD:
            return Registry(directory, etcd)
        return KubeApiserver(directory, etcd, self.peer_program or programs.ensure(PEER_PROGRAM))


def stop(server: Server) -> None:
    """Ends all of its processes, whatever happens meanwhile; what stores goes last."""
    server.target.pids = []
    with ExitStack() as stack:
        for process in server.processes:
            stack.callback(process.end)


@contextmanager
def running(server: Server) -> Iterator[Target]:
    """The server from when it serves clusters to the end of the block."""
    try:
        start(server)
        yield server.target
    finally:
        stop(server)


def start(server: Server) -> tuple[float, float]:
    """Starts it and waits; seconds until it said that it is ready, and until it gave the first list."""
    begun = time.monotonic()
    server.start()
    server.target.pids = [process.pid for process in server.processes]
    _wait(server, "/readyz")
    ready = time.monotonic() - begun
    server.prepare()
    _wait(server, f"{PATH}?limit=1")
    return ready, time.monotonic() - begun


def _wait(server: Server, path: str) -> None:
    until = time.monotonic() + READY_SECONDS
    while not _answers(server.target, path):
        for process in server.processes:
            if process.has_ended:
                raise LoadError(f"{server.name} ended; {process.log.name}:\n{process.log_end()}")
        if time.monotonic() > until:
            logs = "\n".join(process.log_end() for process in server.processes)
            raise LoadError(f"{server.name} was not ready within {READY_SECONDS:g} s:\n{logs}")
        time.sleep(_PAUSE)


def _answers(target: Target, path: str) -> bool:
    try:
        return call(target, "GET", path)[0] == HTTPStatus.OK
    except (OSError, LoadError):  # it does not listen yet
        return False
