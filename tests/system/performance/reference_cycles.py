"""Uses a server in every way, and prints what only the garbage collector finds of it afterwards.

A program of its own, so that nothing that other tests have left behind is found.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import socket
import ssl
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType

from clusterregistry.apimachinery import certificates
from clusterregistry.apiserver.endpoints import request_info
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.system.performance.clients import PATIENCE
from tests.system.performance.paths import TABLE
from tests.system.performance.servers import CountedServer, serving

WATCHED = b"apiserver_longrunning_requests 0.0"
SERVING = ("clusterregistry.", "asyncio.", "_asyncio.", "uvloop.", "ssl.", "_ssl.")
MERGE_PATCH = "Content-Type: application/merge-patch+json"


def main(directory: Path) -> None:
    with serving(directory) as server:
        use(server)  # what is loaded and made once is not of interest
        with collected() as found:
            use(server)
            server.call(forget_and_collect)
    sys.stdout.write("\n".join(found.elements()))


def forget_and_collect() -> None:
    """What is known of paths is forgotten in time: there are more of them than are remembered."""
    request_info._parse_cached.cache_clear()
    gc.collect()


def use(server: CountedServer) -> None:
    requests(server)
    broken_watches(server)
    failed_handshakes(server)
    until_nobody_watches(server)


def requests(server: CountedServer) -> None:
    with server.connect() as client:
        client.send("POST", CLUSTERS, cluster("a"))
        client.send("GET", CLUSTERS)
        client.send("GET", CLUSTERS, None, TABLE)
        client.send("GET", f"{CLUSTERS}?labelSelector=a%3Db")
        client.send("PATCH", path_of("a"), {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
        client.send("POST", CLUSTERS, cluster("a"), expect=409)
        client.send("POST", CLUSTERS, {"spec": 5}, expect=400)
        client.send("GET", path_of("none"), expect=404)
        client.send("GET", f"{CLUSTERS}?limit=few", expect=400)
        client.send("PUT", path_of("a"), cluster("a") | {"spec": 5}, expect=422)
        client.send("DELETE", path_of("a"))
    with server.connect() as client:
        client.send("GET", "/apis")


def broken_watches(server: CountedServer) -> None:
    """One that goes in peace, and one whose connection is reset."""
    for reset in (False, True):
        with server.connect() as client:
            client.watch(f"{CLUSTERS}?watch=true").close()
            if reset:
                client.reset()


def failed_handshakes(server: CountedServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        while plain.recv(1000):
            pass
    with (
        contextlib.suppress(ssl.SSLError),
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as plain,
        stranger().wrap_socket(plain) as connection,
    ):
        connection.recv(1)


@functools.cache
def stranger() -> ssl.SSLContext:
    """A client with a certificate of an authority that the server does not know."""
    now, key = time.time(), certificates.new_key()
    authority = certificates.new_authority(certificates.new_key(), now=now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with tempfile.NamedTemporaryFile() as both:
        pem = certificates.client_certificate(authority, key, user="jane", group="devs", now=now)
        both.write(pem + certificates.key_pem(key))
        both.flush()
        context.load_cert_chain(both.name)
    return context


def until_nobody_watches(server: CountedServer) -> None:
    until = time.monotonic() + PATIENCE
    with server.connect() as client:
        while WATCHED not in client.send("GET", "/metrics"):
            assert time.monotonic() < until


@contextmanager
def collected() -> Iterator[Counter[str]]:
    """What only the collector finds, when the block has ended: of the server, not of the test that talks to it."""
    found: Counter[str] = Counter()
    while gc.collect():
        pass
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        found.update(name for each in gc.garbage if (name := _name(each)).startswith(SERVING))
    finally:
        gc.set_debug(0)
        gc.enable()
        gc.garbage.clear()


def _name(found: object) -> str:
    """A function's own name, and that of the type of anything else."""
    named = found if isinstance(found, FunctionType) else type(found)
    return f"{named.__module__}.{named.__qualname__}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
