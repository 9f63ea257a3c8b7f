"""Ports for servers that are started for a check: no other process gets them until this one ends.

A port that the system names (port 0) is free only until another process asks: between that and the start of the server,
or while a server is down for a moment, another process or any client's connection may take it. So these lie below
those that the system gives away, and each is claimed with a lock that all clones and processes of a user respect.
"""

import fcntl
import functools
import os
import pathlib
import random
import socket
import tempfile

# Below net.ipv4.ip_local_port_range as Linux has it.
_PORTS = range(15_000, 32_000)
_given: set[int] = set()
_random = random.SystemRandom()  # not the one that a test may have seeded


def free_port() -> int:
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Ports on loopback that no process listens on, and that are never given twice."""
    found: list[int] = []
    while len(found) < count:
        port = _random.choice(_PORTS)
        if port not in _given and _claimed(port) and _is_free(port):
            _given.add(port)
            found.append(port)
    return found


def _claimed(port: int) -> bool:
    """Whether the port is ours now: the lock on its byte ends with the process, however that ends."""
    try:
        fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:  # of another process
        return False
    return True


@functools.cache
def _claims() -> int:
    """The file with a byte for each port. Open for good: to close it would give up every lock."""
    path = pathlib.Path(tempfile.gettempdir()) / f"clusterregistry-test-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        # Else a port counts as taken for a minute after a server on it has ended.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
