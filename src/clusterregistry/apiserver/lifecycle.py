"""Running a server on its socket until it is told to stop, and stopping it without dropping anybody.

On SIGTERM or SIGINT: readyz says no; after the delay for load balancers watches are ended; requests
under way finish; then the storage is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import uvloop

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver import service_manager
from clusterregistry.apiserver.client_ca import AuthConfigSync, update_authorities
from clusterregistry.apiserver.endpoints.request import ServedRequest
from clusterregistry.apiserver.fd_limit import connection_limit
from clusterregistry.apiserver.gc_tuning import run_full_collections, trim_malloc, tune_collector
from clusterregistry.apiserver.http.server import BACKLOG, HttpServer
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.options.host_cluster import HostCluster
from clusterregistry.apiserver.options.serving import ServingOptions
from clusterregistry.apiserver.pki.live_tls import LiveTls, TlsFiles, keep_current
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.server import Server, build
from clusterregistry.apiserver.service_manager import ServiceManager

_GOODBYE = 2.0
"""Seconds that a watcher has to take the end of its stream."""

_log = logging.getLogger(__name__)


_LISTEN_REMEDIES = {
    errno.EADDRINUSE: "stop what listens there, or give another --secure-port or --bind-address",
    errno.EACCES: "give a --secure-port of 1024 or more, or let the server bind lower ones (CAP_NET_BIND_SERVICE)",
    errno.EADDRNOTAVAIL: "give --bind-address an address of this machine, or 0.0.0.0 or :: for all of them",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleHooks:
    """What the command does besides serving, and when.

    ``prepare`` sees to the certificates. It is called once the port and the storage are ours, so that a server that
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


def _tls(options: CompletedOptions) -> LiveTls:
    names = TlsFiles(
        certificate=options.serving_certificate,
        key=options.serving_key,
        client_cas=options.client_ca_files,
        proxy_cas=options.proxy_ca_files,
        minimum=options.serving.tls_min_version,
        suites=options.serving.tls_cipher_suites,
        server_ca=options.server_ca_file,
    )
    return LiveTls(names)


async def _serve(options: CompletedOptions, product: Product, hooks: LifecycleHooks, listening: socket.socket) -> None:
    trim_malloc()
    manager = service_manager.of_environment(os.environ)
    async with _meanwhile(manager.keep_informed()), build(options, product) as server:
        hooks.prepare()
        tls = _tls(options)
        update_authorities(server.trust, tls.loaded)
        http = HttpServer(
            server.handler, ServedRequest, max_connections=connection_limit(options.limits.max_connections)
        )
        await http.listen(listening, tls.context)
        tune_collector()
        async with (
            _meanwhile(run_full_collections()),
            _kept_current(tls, server, hooks),
            _host_followed(options.host, server, tls),
            _token_file_followed(server),
        ):
            await _until_stopped(options, server, http, on_ready=hooks.on_ready, manager=manager)


async def _until_stopped(
    options: CompletedOptions,
    server: Server,
    http: HttpServer[ServedRequest],
    *,
    on_ready: Callable[[], None],
    manager: ServiceManager,
) -> None:
    stop = asyncio.Event()
    with _signals(lambda: _begin_to_stop(server, http, stop, options=options.serving, manager=manager)):
        on_ready()
        manager.ready(f"Serving {options.server_url}")
        await stop.wait()
        server.end_watches()
        asyncio.get_running_loop().call_later(_GOODBYE, server.abort_watches)
        # A client that reads its answer slowly must not keep the server from stopping for ever.
        await http.stop(patience=options.serving.request_timeout)


@contextlib.asynccontextmanager
async def _kept_current(tls: LiveTls, server: Server, hooks: LifecycleHooks) -> AsyncIterator[None]:
    """Follows the files of certificates meanwhile."""
    work = keep_current(tls, renew=hooks.renew, on_change=lambda loaded: update_authorities(server.trust, loaded))
    async with _meanwhile(work):
        yield


@contextlib.asynccontextmanager
async def _host_followed(host: HostCluster | None, server: Server, tls: LiveTls) -> AsyncIterator[None]:
    """Follows what the host cluster says of certificates and front proxies meanwhile, where that is left to it."""
    if host is None or server.following is None:
        yield
        return
    async with _meanwhile(server.following.follow(AuthConfigSync(host, trust=server.trust, tls=tls).take)):
        yield


@contextlib.asynccontextmanager
async def _token_file_followed(server: Server) -> AsyncIterator[None]:
    """Reads the token file again meanwhile, where there is one."""
    if server.token_file is None:
        yield
        return
    async with _meanwhile(server.token_file.follow()):
        yield


@contextlib.asynccontextmanager
async def _meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


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


def _begin_to_stop(
    server: Server,
    http: HttpServer[ServedRequest],
    stop: asyncio.Event,
    *,
    options: ServingOptions,
    manager: ServiceManager,
) -> None:
    """A second signal waits for nobody any more."""
    if server.stopping.requested:
        _log.info("stopping at once")
        http.abort()
        stop.set()
    else:
        _log.info("stopping: watches end, requests under way finish")
        server.stopping.requested = True
        delay = options.shutdown_delay_duration
        manager.stopping("Stopping: requests under way finish", seconds=delay + options.request_timeout)
        asyncio.get_running_loop().call_later(delay, stop.set)
