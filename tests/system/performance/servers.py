"""The real server behind real TLS, in a thread of this process: so its operations can be counted."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import FrameType
from typing import Any

import uvloop

from clusterregistry.apiserver import server as app
from clusterregistry.apiserver.endpoints.request import ServedRequest
from clusterregistry.apiserver.http.server import HttpServer
from clusterregistry.apiserver.storage.location import DATABASE
from clusterregistry.apiserver.storage.sqlite import SQLiteStorage
from clusterregistry.registry.product import PRODUCT
from tests.apiserver.api.clients import TOKENS
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.http.http_servers import contexts
from tests.product import load
from tests.system.performance.clients import PATIENCE, RawClient
from tests.system.performance.objects import full_cluster, name_of
from tests.system.performance.operations import Operations, Tracer, background
from tests.system.performance.operations import stop as stop_tracing

_TURNS = 20
"""Of the loop after an answer has come: what is left to do after it belongs to the request too."""


class CountedServer:
    """A server that runs. ``counted`` is for one thing after the other."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tracer: Tracer, port: int) -> None:
        self._loop, self._tracer, self.port = loop, tracer, port

    def connect(self) -> RawClient:
        return RawClient(self.port, contexts()[1])

    def counted(self, work: Callable[[], object]) -> Operations:
        """What the server did while we did something with it, and until it came to rest."""
        self.call(lambda: self._tracer.begin(_caller_of_the_loop()))
        try:
            work()
        finally:
            counted: Operations = self.call(self._tracer.end, after_turns=_TURNS)
        return counted

    def least(self, work: Callable[[], object], *, times: int = 4) -> Operations:
        """What it takes if nothing happens by chance, such as a request that arrives in two pieces."""
        return min((self.counted(work) for _ in range(times)), key=lambda counted: counted.total)

    def call(self, function: Callable[[], Any], *, after_turns: int = 0) -> Any:
        """Calls a function in the loop."""
        done: Future[Any] = Future()

        def turn(left: int) -> None:
            if left:
                self._loop.call_soon(turn, left - 1)
            else:
                done.set_result(function())

        self._loop.call_soon_threadsafe(turn, after_turns)
        return done.result(PATIENCE)


def _caller_of_the_loop() -> FrameType:
    """The frame that runs the loop of this thread: uvloop has none of its own."""
    frame = sys._getframe()
    while frame.f_code is not asyncio.Runner.run.__code__:
        assert frame.f_back
        frame = frame.f_back
    return frame


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[CountedServer]:
    """The server on what the directory has in it."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tokens.csv").write_text(TOKENS)
    ready: Future[CountedServer] = Future()
    stop = asyncio.Event()
    tracer = Tracer()

    def run() -> None:
        stop_tracing()  # until something is to be counted here
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_serve(directory, tracer, ready=ready, stop=stop))
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=run, name="counted server")
    with tracer.on_new_threads():
        thread.start()
        server = ready.result(PATIENCE)
    try:
        yield server
    finally:
        server._loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)


async def _serve(directory: Path, tracer: Tracer, *, ready: Future[CountedServer], stop: asyncio.Event) -> None:
    flags = ["--data-dir", str(directory), "--token-auth-file", str(directory / "tokens.csv")]
    async with contextlib.AsyncExitStack() as stack:
        with background():
            server = await stack.enter_async_context(app.build(load(flags, {}), PRODUCT))
        port = await stack.enter_async_context(_listening(server))
        ready.set_result(CountedServer(asyncio.get_running_loop(), tracer, port))
        await stop.wait()
        server.end_watches()


@contextlib.asynccontextmanager
async def _listening(server: app.Server) -> AsyncIterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    http = HttpServer(server.handler, ServedRequest)
    await http.listen(listening, contexts()[0])
    http._ticker.cancel()  # its clock, which is no part of any request, would be counted now and then
    try:
        yield listening.getsockname()[1]
    finally:
        http.abort()


def fill(directory: Path, count: int) -> None:
    """Stores clusters in a directory as a server would have them after that many requests, but at once."""
    with serving(directory) as server, server.connect() as client:
        client.send("POST", CLUSTERS, full_cluster(name_of(0)))
    asyncio.run(_multiply(directory / DATABASE, count))


async def _multiply(database: Path, count: int) -> None:
    storage = await SQLiteStorage.open(database)
    try:
        first = next(kv for kv in (await storage.list("")).items if kv.key.endswith(name_of(0)))
        names = [name_of(number) for number in range(1, count)]
        await asyncio.gather(
            *(
                storage.create(first.key.replace(name_of(0), name), first.value.replace(*_encoded(name_of(0), name)))
                for name in names
            )
        )
    finally:
        await storage.close()


def _encoded(old: str, new: str) -> tuple[bytes, bytes]:
    return old.encode(), new.encode()
