"""Runs a server on its socket until a signal stops it, and stops it without dropping requests.

On SIGTERM or SIGINT: readyz fails; after the delay for load balancers watches end; requests under way finish; then the
storage is closed. A second signal ends the requests too.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvloop

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver import service_manager
from clusterregistry.apiserver.client_ca import AuthConfigSync, update_authorities
from clusterregistry.apiserver.endpoints.request import ServedRequest
from clusterregistry.apiserver.fd_limit import connection_limit
from clusterregistry.apiserver.gc_tuning import run_full_collections, tune_collector
from clusterregistry.apiserver.http.server import BACKLOG, HttpServer
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.pki.live_tls import LiveTls, TlsFiles, keep_current
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.server import Server, build
from clusterregistry.apiserver.service_manager import ServiceManager
from clusterregistry.apiserver.tasks import run_in_background
from clusterregistry.cli.malloc import trim_malloc

_WATCH_END_SECONDS = 2.0
"""How long a watcher has to read the end of its stream."""

_LISTEN_REMEDIES = {
    errno.EADDRINUSE: "stop what listens there, or give another --secure-port or --bind-address",
    errno.EACCES: "give a --secure-port of 1024 or more, or let the server bind lower ones (CAP_NET_BIND_SERVICE)",
    errno.EADDRNOTAVAIL: "give --bind-address an address of this machine, or 0.0.0.0 or :: for all of them",
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleHooks:
    """What the command does besides serving, and when.

    ``prepare`` provisions the certificates. It is called once the port and the storage are ours, so that a server that
    cannot start changes nothing. ``renew`` does so now and then while serving, in a thread of its own.
    """

    prepare: Callable[[], None]
    on_ready: Callable[[], None]
    renew: Callable[[], None] = lambda: None


def serve(options: CompletedOptions, product: Product, hooks: LifecycleHooks) -> int:
    """Serves until SIGTERM or SIGINT and returns the exit status. Raises OperatorError."""
    listening = _listen(options)
    try:
        uvloop.run(_serve(options, product, hooks, listening))
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
        raise OperatorError(f"cannot listen on {host}:{port}: {error.strerror}", remedy=remedy) from None
    return listening


async def _serve(options: CompletedOptions, product: Product, hooks: LifecycleHooks, listening: socket.socket) -> None:
    trim_malloc()
    manager = service_manager.from_environment(os.environ)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(run_in_background(manager.keep_informed()))
        server = await stack.enter_async_context(build(options, product))
        hooks.prepare()
        tls = _load_tls(options)
        update_authorities(server.trust, tls.loaded)
        connections = connection_limit(options.limits.max_connections)
        http = HttpServer(server.handler, ServedRequest, max_connections=connections)
        await http.listen(listening, tls.context)
        tune_collector()
        for work in _upkeep(options, server, tls, hooks):
            await stack.enter_async_context(run_in_background(work))
        stop = _Stop(options=options, server=server, http=http, manager=manager)
        with _signals(stop.request):
            hooks.on_ready()
            manager.ready(f"Serving {options.server_url}")
            await stop.complete()


def _load_tls(options: CompletedOptions) -> LiveTls:
    return LiveTls(
        TlsFiles(
            certificate=options.serving_certificate,
            key=options.serving_key,
            client_cas=options.client_ca_files,
            proxy_cas=options.proxy_ca_files,
            minimum=options.serving.tls_min_version,
            suites=options.serving.tls_cipher_suites,
            server_ca=options.server_ca_file,
        )
    )


def _upkeep(
    options: CompletedOptions, server: Server, tls: LiveTls, hooks: LifecycleHooks
) -> Iterator[Coroutine[Any, Any, None]]:
    """What runs while the server serves: each keeps one thing current."""
    yield run_full_collections()
    yield keep_current(tls, renew=hooks.renew, on_change=lambda loaded: update_authorities(server.trust, loaded))
    if options.host is not None and server.config_watch is not None:
        yield server.config_watch.follow(AuthConfigSync(options.host, trust=server.trust, tls=tls).apply)
    if server.token_file is not None:
        yield server.token_file.follow()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """The end of a server, in the steps that the module's docstring names."""

    options: CompletedOptions
    server: Server
    http: HttpServer[ServedRequest]
    manager: ServiceManager
    _due: asyncio.Event = field(default_factory=asyncio.Event)

    def request(self) -> None:
        """Begins the stop. A second call ends the requests under way."""
        if self.server.stopping.requested:
            _log.info("stopping at once")
            self.http.abort()
            self._due.set()
            return
        _log.info("stopping: watches end, requests under way finish")
        self.server.stopping.requested = True
        serving = self.options.serving
        delay = serving.shutdown_delay_duration
        self.manager.stopping("Stopping: requests under way finish", seconds=delay + serving.request_timeout)
        asyncio.get_running_loop().call_later(delay, self._due.set)

    async def complete(self) -> None:
        """Waits until the stop is due, and for the requests under way."""
        await self._due.wait()
        self.server.end_watches()
        asyncio.get_running_loop().call_later(_WATCH_END_SECONDS, self.server.abort_watches)
        # A client that reads its answer slowly must not keep the server from stopping for ever.
        await self.http.stop(patience=self.options.serving.request_timeout)


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
