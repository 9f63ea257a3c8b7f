"""Running a server on its socket until it is told to stop, and stopping it without dropping anybody.

On SIGTERM or SIGINT: readyz says no; after the delay for load balancers watches are ended; requests
under way finish; then the storage is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Iterator

import uvloop

from clusterregistry.options import CompletedOptions
from clusterregistry.pki.errors import CertificateError
from clusterregistry.pki.tls import server_context
from clusterregistry.serving.app import Server, build
from clusterregistry.serving.http.server import BACKLOG, HttpServer
from clusterregistry.startup import StartupProblem
from clusterregistry.storage.errors import StorageUnavailable

_GOODBYE = 2.0
"""Seconds that a watcher has to take the end of its stream."""

_log = logging.getLogger(__name__)


_LISTEN_REMEDIES = {
    errno.EADDRINUSE: "stop what listens there, or give another --secure-port or --bind-address",
    errno.EACCES: "give a --secure-port of 1024 or more, or let the server bind lower ones (CAP_NET_BIND_SERVICE)",
    errno.EADDRNOTAVAIL: "give --bind-address an address of this machine, or 0.0.0.0 or :: for all of them",
}


class StartupError(Exception):
    """The server cannot start; ``remedy`` says what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def serve(options: CompletedOptions, *, prepare: Callable[[], None], on_ready: Callable[[], None]) -> int:
    """Serves until SIGTERM or SIGINT and returns the exit status. Raises StartupError and what ``prepare`` raises.

    ``prepare`` sees to the certificates. It is called once the port and the storage are ours, so that a server that
    cannot start changes nothing.
    """
    listening = _listen(options)
    try:
        uvloop.run(_serve(options, listening, prepare, on_ready))
    except StorageUnavailable as error:
        raise StartupError(str(error), error.remedy or "see to the cause and start again") from error
    except StartupProblem as error:
        raise StartupError(str(error), error.remedy) from error
    finally:
        listening.close()
    return 0


def _listen(options: CompletedOptions) -> socket.socket:
    host, port = options.serving.bind_address, options.serving.secure_port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        remedy = _LISTEN_REMEDIES.get(error.errno or 0, "give another --secure-port or --bind-address")
        raise StartupError(f"cannot listen on {host}:{port}: {error.strerror}", remedy) from None
    return listening


def _tls(options: CompletedOptions) -> ssl.SSLContext:
    try:
        return server_context(
            certificate=options.serving_certificate,
            key=options.serving_key,
            client_cas=options.client_ca_files,
            minimum=options.serving.tls_min_version,
        )
    except CertificateError as error:
        raise StartupError(str(error), error.remedy) from None


async def _serve(
    options: CompletedOptions, listening: socket.socket, prepare: Callable[[], None], on_ready: Callable[[], None]
) -> None:
    async with build(options) as server:
        prepare()
        http = HttpServer(server.handler)
        await http.listen(listening, _tls(options))
        # What is loaded now stays: the collector need not look at it again and again.
        gc.collect()
        gc.freeze()
        stop = asyncio.Event()
        with _signals(lambda: _begin_to_stop(server, http, stop, delay=options.serving.shutdown_delay_duration)):
            on_ready()
            await stop.wait()
            server.end_watches()
            asyncio.get_running_loop().call_later(_GOODBYE, server.abort_watches)
            # A client that reads its answer slowly must not keep the server from stopping for ever.
            await http.stop(patience=options.serving.request_timeout)


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _begin_to_stop(server: Server, http: HttpServer, stop: asyncio.Event, *, delay: float) -> None:
    """A second signal waits for nobody any more."""
    if server.stopping.requested:
        _log.info("stopping at once")
        http.end()
        stop.set()
    else:
        _log.info("stopping: watches end, requests under way finish")
        server.stopping.requested = True
        asyncio.get_running_loop().call_later(delay, stop.set)
