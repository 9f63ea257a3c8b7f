"""A network between a replica and its etcd that can be cut, while others reach that etcd all the time."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self

_CHUNK = 65_536


class Relay:
    """Passes on whatever comes to ``endpoint``. To be used in a ``with`` block."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cut = False
        self.endpoint = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, name="relay", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        # Else the thread would wait in accept for ever.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def cut(self) -> None:
        """Ends all connections. From now on each new one is ended at once."""
        with self._lock:
            self._cut = True
            for each in self._open:
                _shut(each)

    def repair(self) -> None:
        with self._lock:
            self._cut = False

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                self._connect(self._listener.accept()[0])

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
            if self._cut:
                _shut(client)
                _shut(server)
        directions = [(client, server), (server, client)]
        pumps = [threading.Thread(target=_pump, args=each, daemon=True) for each in directions]
        for pump in pumps:
            pump.start()
        threading.Thread(target=self._close_after, args=(pumps, client, server), daemon=True).start()

    def _close_after(self, pumps: list[threading.Thread], *sockets: socket.socket) -> None:
        for pump in pumps:
            pump.join()
        with self._lock:
            self._open -= set(sockets)
        for each in sockets:
            each.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    _shut(source)
    _shut(target)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
