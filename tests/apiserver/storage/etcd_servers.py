"""Real etcd servers for tests: one member or a cluster of them on loopback, all files in one directory.

    with EtcdCluster(tmp_path, Settings(members=3)) as etcd:
        etcd.leader().kill()

Nothing here knows our own engine. Whatever waits for a server blocks, so inside of a running loop hand it to a
thread: ``await asyncio.to_thread(member.start)``. Every process is ended when the ``with`` block is left.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from clusterregistry.client.errors import ClientError
from clusterregistry.client.rest import Call
from clusterregistry.client.retry import ONCE
from clusterregistry.client.sync import SyncClient
from tests.apiserver.storage.etcd_access import Access, authority_in
from tools import programs
from tools.exchanges import access
from tools.ports import free_ports

RELEASE = "3.5"

STURDY = "etcd-server-3.6"
"""A release whose members agree after all kinds of kills. It is built, and not by everybody."""

BINARIES = "CLUSTERREGISTRY_TEST_ETCD"
"""The environment's name for a directory with another ``etcd``, or for such a program itself, to run the tests with.

``etcdctl`` is taken from there too if it is there, and is otherwise that of ``RELEASE``."""

CHOSEN = os.environ.get(BINARIES, "")
RUNS_HERE = bool(CHOSEN) or (platform.system(), platform.machine()) == ("Linux", "x86_64")
"""Whether there are programs that run on this machine."""

WHY_NOT = f"the packaged etcd is for linux/amd64; name one that runs here with {BINARIES}"
NEEDS_ETCD = pytest.mark.skipif(not RUNS_HERE, reason=WHY_NOT)
"""For tests of a real etcd."""

HEALTHY_SECONDS = 30.0
_END_SECONDS = 10.0
_ROOT_PASSWORD = "root-password"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What kind of etcd a test needs."""

    members: int = 1
    tls: bool = False
    """Clients come over TLS. Members talk to each other in plain text, as that is no concern of a client."""
    client_certificates: bool = False
    """Clients must show a certificate; implies TLS."""
    user: str = ""
    """With a name, who comes must give it and ``password``, and may touch only keys that begin with ``prefix``."""
    password: str = "registry-password"
    prefix: str = "/registry/"
    durable: bool = False
    """Whether writes wait for the disk, as they should outside of tests. A kill loses nothing either way."""
    snapshot_count: int = 0
    """Writes between snapshots, 0 for etcd's own choice: few make a member that was away need a whole copy."""
    killed: bool = False
    """Members are killed under load, after which ``RELEASE`` may lack writes that it has answered: another is taken if
    it is there."""
    quota_bytes: int = 0
    """Above that size etcd takes no more writes; 0 for etcd's own choice."""
    flags: tuple[str, ...] = ()


class Member:
    """One etcd process, which can be ended and started again with the same data."""

    def __init__(self, name: str, directory: Path, *, scheme: str, host: str = "127.0.0.1") -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self.data = directory / name
        self.client_url, self.peer_url, self.metrics_url = (
            f"{kind}://{host}:{port}" for kind, port in zip((scheme, "http", "http"), free_ports(3), strict=True)
        )
        self._command: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self, program: Path, flags: Sequence[str]) -> None:
        """Sets what the process is started with."""
        addresses = {
            "--name": self.name,
            "--data-dir": str(self.data),
            "--listen-client-urls": self.client_url,
            "--advertise-client-urls": self.client_url,
            "--listen-peer-urls": self.peer_url,
            "--initial-advertise-peer-urls": self.peer_url,
            "--listen-metrics-urls": self.metrics_url,
        }
        own = [f"{flag}={value}" for flag, value in addresses.items()]
        self._command = [str(program), *own, *flags]

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"{self.name} was never started"
        return self._process

    def launch(self) -> None:
        """Starts the process and does not wait for it."""
        assert not self.running, f"{self.name} runs already"
        with self.log.open("ab") as output:
            # Without the environment: etcd would take settings from it.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env={}
            )

    def start(self) -> None:
        """Starts the process and waits until it serves; a majority must be there for that."""
        self.launch()
        self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        until = time.monotonic() + HEALTHY_SECONDS
        while not self.healthy():
            assert self.running, f"{self.name} ended with {self.process.returncode}:\n{self.logged()}"
            assert time.monotonic() < until, f"{self.name} does not become healthy:\n{self.logged()}"
            time.sleep(0.01)

    def healthy(self) -> bool:
        """Whether the member answers and knows a leader."""
        return '"health":"true"' in self._ask("/health")

    def leads(self) -> bool:
        return "\netcd_server_is_leader 1\n" in self._ask("/metrics")

    def kill(self) -> None:
        """Ends the process at once, as a crash does."""
        self.process.kill()
        self.process.wait(_END_SECONDS)

    def stop(self) -> None:
        """Has the process end in order: a leader first hands over."""
        self.process.terminate()
        self.process.wait(_END_SECONDS)

    def pause(self) -> None:
        """Freezes the process: its connections stay open, without an answer."""
        self.process.send_signal(signal.SIGSTOP)
        # Its threads stop one after the other; this returns when the last one has. An end is left for Popen to see.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def logged(self) -> str:
        return self.log.read_text(errors="replace")

    def _ask(self, path: str) -> str:
        try:
            with SyncClient(access(self.metrics_url, timeout=1.0), retry=ONCE) as client:
                return client.text(Call("GET", path))
        except ClientError:
            return ""


class EtcdCluster:
    """One or several members, and how a client gets in."""

    def __init__(self, directory: Path, settings: Settings | None = None) -> None:
        self._directory, self._settings = directory, settings or Settings()
        tls = self._settings.tls or self._settings.client_certificates
        self._authority = authority_in(directory) if tls else None
        scheme = "https" if tls else "http"
        self.members = [Member(f"member-{n}", directory, scheme=scheme) for n in range(self._settings.members)]
        self._root = self._authority.access if self._authority else Access()
        if not self._settings.client_certificates:
            self._root = self._root.without_certificate()

    @property
    def access(self) -> Access:
        """What a client needs beside the endpoints."""
        settings = self._settings
        return self._root.as_user(settings.user, settings.password) if settings.user else self._root

    @property
    def endpoints(self) -> list[str]:
        """Where clients connect, as URLs."""
        return [member.client_url for member in self.members]

    def leader(self) -> Member:
        """The member that leads now; waits for an election."""
        until = time.monotonic() + HEALTHY_SECONDS
        while time.monotonic() < until:
            for member in self.members:
                if member.running and member.leads():
                    return member
            time.sleep(0.01)
        raise AssertionError("no member leads")

    def follower(self) -> Member:
        """Some running member that does not lead."""
        leader = self.leader()
        return next(member for member in self.members if member.running and member is not leader)

    def start(self) -> Self:
        """Starts all members, with what data they have, and waits until each of them serves."""
        flags = list(self._flags())
        for member in self.members:
            member.prepare(_server(self._settings), flags)
            member.launch()
        self.wait_until_healthy()
        if self._settings.user and not self._root.user:  # else it has its users from an earlier start
            self._add_users()
        return self

    def wait_until_healthy(self) -> None:
        for member in self.members:
            member.wait_until_healthy()

    def end(self) -> None:
        """Ends whatever still runs, paused or not."""
        for member in self.members:
            if member.running:
                member.kill()

    def etcdctl(self, *arguments: str) -> str:
        """Runs etcd's own client as root and returns what it prints."""
        # Above its own five seconds, which a busy machine may take.
        where = [f"--endpoints={','.join(self.endpoints)}", f"--command-timeout={HEALTHY_SECONDS - 5:g}s"]
        command = [str(_program("etcdctl")), *where, *self._root.flags(), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={}, timeout=HEALTHY_SECONDS)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def save(self, snapshot: Path) -> None:
        """Writes a snapshot, of the first member."""
        # Of one member at a time, so that there must be one endpoint.
        command = [str(_program("etcdctl")), f"--endpoints={self.endpoints[0]}", *self._root.flags()]
        subprocess.run([*command, "snapshot", "save", str(snapshot)], capture_output=True, check=True, env={})

    def restore(self, snapshot: Path, *flags: str, token: str = "") -> None:
        """Ends all members, gives them what a snapshot has, and starts them again at the same addresses."""
        self.end()
        peers = ",".join(f"{member.name}={member.peer_url}" for member in self.members)
        for member in self.members:
            shutil.rmtree(member.data)
            own = (f"--name={member.name}", f"--data-dir={member.data}")
            place = (f"--initial-cluster={peers}", f"--initial-advertise-peer-urls={member.peer_url}")
            named = f"--initial-cluster-token={token or self._directory.name}"
            command = [str(_restorer()), "snapshot", "restore", str(snapshot), *own, *place, named, *flags]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
            assert done.returncode == 0, done.stderr
            member.launch()
        self.wait_until_healthy()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.end()
            raise

    def __exit__(self, *_: object) -> None:
        self.end()

    def _add_users(self) -> None:
        """Makes root, who may do everything, and the user, who may read and write below the prefix."""
        settings = self._settings
        self.etcdctl("user", "add", f"root:{_ROOT_PASSWORD}")
        self.etcdctl("user", "grant-role", "root", "root")
        self.etcdctl("role", "add", "registry")
        self.etcdctl("role", "grant-permission", "registry", "readwrite", settings.prefix, "--prefix=true")
        self.etcdctl("user", "add", f"{settings.user}:{settings.password}")
        self.etcdctl("user", "grant-role", settings.user, "registry")
        self.etcdctl("auth", "enable")
        self._root = self._root.as_user("root", _ROOT_PASSWORD)

    def _flags(self) -> Iterator[str]:
        settings = self._settings
        peers = ",".join(f"{member.name}={member.peer_url}" for member in self.members)
        # A single member elects itself, the sooner the better; several must not take a busy machine for a dead leader.
        heartbeat, election = (10, 100) if len(self.members) == 1 else (100, 1000)
        yield from (f"--initial-cluster={peers}", f"--initial-cluster-token={self._directory.name}")
        yield from (f"--heartbeat-interval={heartbeat}", f"--election-timeout={election}")
        yield from ("--log-level=warn", "--bcrypt-cost=4", *settings.flags)
        if not settings.durable:
            yield "--unsafe-no-fsync"
        if settings.snapshot_count:
            yield f"--snapshot-count={settings.snapshot_count}"
        if settings.quota_bytes:
            yield f"--quota-backend-bytes={settings.quota_bytes}"
        if self._authority:
            yield from self._authority.server_flags(client_certificates=settings.client_certificates)


def _server(settings: Settings) -> Path:
    return _sturdy() if settings.killed and not CHOSEN and _sturdy().exists() else _program("etcd")


def _sturdy() -> Path:
    return programs.known_to_build()[STURDY].path()


def _restorer() -> Path:
    return programs.known_to_build()["etcdutl-3.6"].path()


NEEDS_RESTORE = pytest.mark.skipif(
    not _sturdy().exists() or not _restorer().exists(),
    reason="only a newer etcd restores snapshots with a raised revision; `make test` builds it where there is Go",
)
"""For tests that restore snapshots; settings are to say ``killed``."""

NEEDS_STURDY = pytest.mark.skipif(
    not CHOSEN and not _sturdy().exists(),
    reason=f"etcd {RELEASE} may lose answered writes when it is killed; `make test` builds another where there is Go",
)
"""For tests that have every answer of a killed etcd checked; its settings are to say ``killed``."""


def _program(family: str) -> Path:
    if CHOSEN:
        given = Path(CHOSEN)
        named = given / family if given.is_dir() else given.with_name(family) if family != "etcd" else given
        if named.exists():
            return named.resolve()
        assert family != "etcd", f"{BINARIES}={CHOSEN}: {named} does not exist"
    return programs.fetch(programs.find(f"{family}-{RELEASE}"))
