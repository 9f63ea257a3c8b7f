"""A simulated member: its address, identity, contents, fault, and what it received."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import socket
import ssl
import struct
import time
from collections import deque
from pathlib import Path
from typing import Any

from tools.simulator import api, contents, pki
from tools.simulator.api import Answer, Received
from tools.simulator.connection import Connection
from tools.simulator.faults import CERTIFICATE_FAULTS, Fault
from tools.simulator.pki import Identity

_BACKLOG = 128
_KEPT_REQUESTS = 200
_HANDSHAKE_SECONDS = 30.0
PROVIDER = "simulated"
"""The type of the auth provider that access rules match."""


class SimulatedMember:
    """Listens on an address of its own, which is on loopback."""

    def __init__(
        self, number: int, *, port: int, directory: Path | None = None, client_authorities: bytes = b""
    ) -> None:
        self.number = number
        self.name = f"sim-{number:05d}"
        self.address = f"127.1.{number // 250}.{number % 250 + 1}"
        self.port = port
        self.token = f"simulated-{hashlib.sha256(self.name.encode()).hexdigest()[:32]}"
        self.contents = contents.contents(number, name=self.name)
        self.redirect_to = ""
        self.requests: deque[Received] = deque(maxlen=_KEPT_REQUESTS)
        self.request_count = self.connection_count = self.readyz_count = self.sent_bytes = 0
        self.certificates: list[str] = []
        """The common names of client certificates, one for each connection; empty without one."""
        self._directory = directory
        self._client_authorities = client_authorities
        self._fault = Fault.NONE
        self._identity: Identity | None = None
        self._contexts: dict[Fault, ssl.SSLContext] = {}
        self._listener: socket.socket | None = None
        self._connections: set[Connection] = set()
        self._held: set[socket.socket] = set()
        self._handshakes: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"https://{self.address}:{self.port}"

    @property
    def open_count(self) -> int:
        """Connections that are open now."""
        return len(self._connections)

    @property
    def identity(self) -> Identity:
        if self._identity is None:
            self._identity = pki.identity(self.address, directory=self._directory)
        return self._identity

    @property
    def fault(self) -> Fault:
        return self._fault

    @fault.setter
    def fault(self, fault: Fault) -> None:
        """Switches a fault. Connections that would not exist with it, or without the former one, end."""
        before, self._fault = self._fault, fault
        ending = CERTIFICATE_FAULTS | {Fault.REFUSED, Fault.SILENT, Fault.RESET, Fault.PLAIN_HTTP}
        if before in ending or fault in ending - {Fault.SILENT}:
            self.cut()
        if fault is Fault.REFUSED:
            self._stop_listening()
        elif self._listener is None:
            self.listen()

    def listen(self) -> None:
        """Starts to listen. Does nothing with the fault ``refused``."""
        if self._listener is not None or self._fault is Fault.REFUSED:
            return
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind((self.address, self.port))
        listener.listen(_BACKLOG)
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener, self._accept)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def cut(self) -> None:
        """Ends all connections at once."""
        for connection in list(self._connections):
            connection.abort()
        for held in self._held:
            held.close()
        self._held.clear()

    async def close(self) -> None:
        self._stop_listening()
        for task in self._handshakes:
            task.cancel()
        if self._handshakes:
            await asyncio.wait(self._handshakes)
        self.cut()

    # Connections

    def _accept(self) -> None:
        assert self._listener is not None  # else there were no reader
        try:
            accepted, _ = self._listener.accept()
        except OSError:
            return  # the client is gone, or there are too many open files: the next turn tries again
        self.connection_count += 1
        if self._fault is Fault.SILENT:
            self._held.add(accepted)
        elif self._fault is Fault.RESET:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            accepted.close()
        else:
            accepted.setblocking(False)
            task = asyncio.create_task(self._serve(accepted))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    async def _serve(self, accepted: socket.socket) -> None:
        secured: dict[str, Any] = {}
        if self._fault is not Fault.PLAIN_HTTP:
            secured = {"ssl": self._context(), "ssl_handshake_timeout": _HANDSHAKE_SECONDS}
        with contextlib.suppress(OSError):  # clients that do not trust this server, and clients that disconnect
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: Connection(self), accepted, **secured)

    def _context(self) -> ssl.SSLContext:
        """Made for the first connection: 5,000 at the start would take seconds."""
        kind = self._fault if self._fault in CERTIFICATE_FAULTS else Fault.NONE
        if kind not in self._contexts:
            authorities = self.identity.authority + self._client_authorities
            self._contexts[kind] = pki.server_context(self._serving(kind), authorities)
        return self._contexts[kind]

    def _serving(self, kind: Fault) -> Path:
        folder = self.identity.serving.parent
        if kind is Fault.OTHER_CA:
            return pki.identity(f"{self.address}-other", names=(self.address,), directory=self._directory).serving
        if kind is Fault.EXPIRED_CERTIFICATE:
            return self.identity.sign_serving(folder, "expired", names=(self.address,), now=pki.expired_start())
        if kind is Fault.WRONG_NAME:
            names = ("other.simulated.invalid", "127.0.0.2")
            return self.identity.sign_serving(folder, "wrong-name", names=names, now=time.time())
        return self.identity.serving

    def opened(self, connection: Connection, *, certificate: str) -> None:
        self._connections.add(connection)
        self.certificates.append(certificate)

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def received(self, received: Received) -> None:
        self.requests.append(received)
        self.request_count += 1
        if received.path == "/readyz":
            self.readyz_count += 1

    def answer(self, received: Received) -> Answer:
        """The response without a fault."""
        return api.authorize(received, token=self.token) or api.respond(received, self.contents)

    # The registry's view

    def cluster(self, **spec: Any) -> dict[str, Any]:
        """The Cluster of this member, in v1beta1. Keywords replace fields of its spec."""
        where = contents.place(self.number)
        return {
            "apiVersion": "clusterregistry.k8s.io/v1beta1",
            "kind": "Cluster",
            "metadata": {
                "name": self.name,
                "labels": {
                    "simulated": "true",
                    "region": where.region,
                    "env": ("prod", "staging", "dev")[self.number % 3],
                },
                "annotations": {contents.NOTE: "a simulated member cluster of tools/simulator, not a real one"},
            },
            "spec": {
                "kubernetesApiEndpoints": {
                    "serverEndpoints": [{"clientCIDR": "0.0.0.0/0", "serverAddress": f"{self.address}:{self.port}"}],
                    "caBundle": base64.b64encode(self.identity.authority).decode(),
                },
                "clusterID": self.contents.kube_system_uid,
                "authInfo": {"providers": [{"name": PROVIDER, "type": PROVIDER, "config": {"key": self.name}}]},
                "location": {
                    "provider": PROVIDER,
                    "region": where.region,
                    "zone": where.city,
                    "latitude": where.latitude,
                    "longitude": where.longitude,
                },
                **spec,
            },
        }
