"""The network of a host cluster that has none: connections to services, pods and nodes end on loopback.

Pods and nodes have addresses in 10.0.0.0/8 as far as kube-apiserver knows; on this machine the same numbers in
127.0.0.0/8 are theirs. kube-apiserver reaches them through the proxy that its egress configuration names, so that
neither a Service nor an APIService has to be changed for it.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path

Address = tuple[str, int]
_SOCKET = "egress.sock"


def local(address: str) -> str:
    """Where on this machine an address of the host cluster is."""
    return f"127.{address.partition('.')[2]}"


def apiserver_flags(directory: Path) -> list[str]:
    """The flags by which kube-apiserver uses the proxy for services, pods and nodes."""
    transport = {"uds": {"udsName": str(directory / _SOCKET)}}
    selection = {"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": transport}}
    document = {"apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration"}
    file = directory / "egress.json"
    file.write_text(json.dumps({**document, "egressSelections": [selection]}))
    return [f"--egress-selector-config-file={file}"]


def may_balance() -> bool:
    """Whether this user may listen on the port of a load balancer."""
    try:
        socket.create_server(("127.0.253.1", 443)).close()
    except PermissionError:
        return False
    except OSError:  # another process listens already
        return True
    return True


class Forward:
    """Forwards connections, each in a thread of its own, to where the target is at that moment."""

    def __init__(self, listening: socket.socket, target: Callable[[], Address | None]) -> None:
        self._target, self._listening = target, listening
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            target = self._target_of(connection)
            if target is None:
                return
            with socket.create_connection(target, timeout=30) as pod:
                pod.settimeout(None)
                self._connected(connection)
                copy(connection, pod)

    def _target_of(self, _: socket.socket) -> Address | None:
        return self._target()

    def _connected(self, connection: socket.socket) -> None:
        """Nothing is said of it: the connection is the pod's now."""


class Egress(Forward):
    """The proxy between kube-apiserver and everything in the host cluster. Speaks HTTP CONNECT."""

    def __init__(self, directory: Path, find: Callable[[str, int], Address | None]) -> None:
        self._find = find
        file = directory / _SOCKET
        file.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(file))
        listening.listen()
        super().__init__(listening, lambda: None)

    def _target_of(self, connection: socket.socket) -> Address | None:
        asked = b""
        while b"\r\n\r\n" not in asked:
            received = connection.recv(4096)
            if not received:
                return None
            asked += received
        host, _, port = asked.split()[1].decode().rpartition(":")
        return self._find(host, int(port))

    def _connected(self, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")


def copy(one: socket.socket, other: socket.socket) -> None:
    ways = {one: other, other: one}
    while True:
        readable, _, _ = select.select(list(ways), [], [])
        for each in readable:
            data = each.recv(65536)
            if not data:
                return
            ways[each].sendall(data)
