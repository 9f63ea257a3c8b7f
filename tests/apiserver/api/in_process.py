"""The server without sockets: its whole chain on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock
from urllib.parse import unquote

from clusterregistry.apiserver import resource_storage
from clusterregistry.apiserver import server as app
from clusterregistry.apiserver.endpoints.request import Handler, Request
from clusterregistry.apiserver.http import response
from clusterregistry.apiserver.http.response import resolve
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.registry.product import PRODUCT
from tests.apiserver.api.clients import PATIENCE, TOKENS, Answer, Client, Watch
from tests.product import load

T = TypeVar("T")
Pieces = queue.SimpleQueue[bytes | None]


class InProcess:
    """A running server. What is inside it is to be touched through ``run`` only."""

    server: app.Server

    def __init__(self, directory: Path, *flags: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        tokens = directory / "tokens.csv"
        tokens.write_text(TOKENS)
        self._options = load(["--data-dir", str(directory / "data"), "--token-auth-file", str(tokens), *flags], {})
        self._loop = asyncio.new_event_loop()
        self._stores: dict[str, Store] = {}

    @contextlib.contextmanager
    def running(self) -> Iterator[InProcess]:
        thread = threading.Thread(target=self._loop.run_forever, name="server in process")
        thread.start()
        stop = asyncio.Event()
        try:
            serving = self._serve_until(stop)
            yield self
            self._loop.call_soon_threadsafe(stop.set)
            serving.result(PATIENCE)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(PATIENCE)
            self._loop.close()

    def _serve_until(self, stop: asyncio.Event) -> Future[None]:
        ready: Future[None] = Future()

        async def serve() -> None:
            try:
                async with self._build() as self.server:
                    ready.set_result(None)
                    await stop.wait()
            except BaseException as error:
                if not ready.done():
                    ready.set_exception(error)
                raise

        serving = asyncio.run_coroutine_threadsafe(serve(), self._loop)
        ready.result(PATIENCE)
        return serving

    def _build(self) -> contextlib.AbstractAsyncContextManager[app.Server]:
        """The server as it is, but we learn of its stores: no endpoint compacts, and tests must."""

        @contextlib.asynccontextmanager
        async def building() -> Any:
            async with contextlib.AsyncExitStack() as stack:
                with mock.patch.object(resource_storage, "Store", self._made_store):
                    server = await stack.enter_async_context(app.build(self._options, PRODUCT))
                yield server

        return building()

    def _made_store(self, *arguments: Any, **keywords: Any) -> Store:
        store = Store(*arguments, **keywords)
        self._stores[store.resource.plural] = store
        return store

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine where the server runs."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def client(self) -> InProcessClient:
        return InProcessClient(self)

    @property
    def storage(self) -> Storage:
        return self._stores["clusters"].storage

    def compact(self, revision: int) -> None:
        """Forgets history up to a revision, as time does."""
        self.run(self.storage.compact(revision))

    def end_watches(self) -> None:
        """What stopping the server does to watches."""

        async def end() -> None:
            self.server.end_watches()

        self.run(end())

    def start(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)


class InProcessClient(Client):
    """Calls the chain as the HTTP server would."""

    def __init__(self, server: InProcess) -> None:
        self.server = server

    def exchange(self, method: str, target: str, *, headers: list[tuple[str, str]], body: bytes) -> Answer:
        sent = [*headers, ("content-length", str(len(body)))] if body else headers
        call = _Call(method, target, headers=sent, body=body)
        self.server.run(call.made_to(self.server.server.handler))
        # The HTTP server sends no body in answer to HEAD.
        content = b"" if method == "HEAD" else b"".join(call.drained())
        return Answer(call.status, call.answer_headers, content)

    def open_watch(self, target: str, *, headers: list[tuple[str, str]]) -> InProcessWatch:
        return InProcessWatch(self.server, _Call("GET", target, headers=headers))

    def stalled_watch(self, target: str, *, headers: list[tuple[str, str]]) -> InProcessWatch:
        """The watch of a client that reads nothing until it is told to ``go_on``."""
        return InProcessWatch(self.server, _Call("GET", target, headers=headers, stalled=True))


class _Call(Request):
    """One request, and what is answered."""

    def __init__(
        self, method: str, target: str, *, headers: list[tuple[str, str]], body: bytes = b"", stalled: bool = False
    ) -> None:
        path, _, query = target.partition("?")
        super().__init__(
            method=method,
            path=unquote(path),
            query_string=query.encode(),
            headers={name.lower(): value for name, value in reversed(headers)},
            abort=self._abort,
        )
        self.status = 0
        self.answer_headers: list[tuple[str, str]] = []
        self.aborted = False
        self.left, self.reading = asyncio.Event(), asyncio.Event()
        self.answered: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.pieces: Pieces = queue.SimpleQueue()
        self._body = body
        if not stalled:
            self.reading.set()

    async def made_to(self, handler: Handler) -> None:
        try:
            await self._take(await resolve(handler(self)))
        finally:
            self.answered.put(self.status)
            self.pieces.put(None)

    async def read_body(self) -> tuple[bytes, bool]:
        return self._body, False

    async def disconnected(self) -> None:
        await self.left.wait()

    async def _take(self, answer: response.Answer) -> None:
        self.status = answer.status
        self.answer_headers = [(name.decode("latin-1"), value.decode("utf-8")) for name, value in _headers(answer)]
        self.answered.put(self.status)
        if isinstance(answer, response.StreamResponse):
            await answer.stream(self)
        else:
            await self.send(b"".join(answer.body))

    async def send(self, data: bytes) -> None:
        await self.reading.wait()
        if not self.left.is_set():
            self.pieces.put(data)

    def offer(self, batch: response.SharedPiece) -> bool:
        if not self.reading.is_set() or self.left.is_set():
            return False
        self.pieces.put(batch.data)
        return True

    def _abort(self) -> None:
        self.aborted = True
        self.left.set()

    def drained(self) -> Iterator[bytes]:
        while (piece := self.pieces.get(timeout=PATIENCE)) is not None:
            yield piece


def _headers(answer: response.Answer) -> list[tuple[bytes, bytes]]:
    content = [(b"content-type", answer.content_type)] if answer.content_type else []
    if isinstance(answer, response.Response):
        content.append((b"content-length", str(answer.length).encode()))
    return [*content, *answer.headers]


class InProcessWatch(Watch):
    def __init__(self, server: InProcess, call: _Call) -> None:
        self._server, self._call = server, call
        self._buffer, self._ended = b"", False
        self._done = server.start(call.made_to(server.server.handler))
        self.status = call.answered.get(timeout=PATIENCE)
        self.content_type = dict(call.answer_headers).get("content-type", "")

    def line(self) -> bytes:
        while b"\n" not in self._buffer and not self._ended:
            piece = self._call.pieces.get(timeout=PATIENCE)
            self._ended = piece is None
            self._buffer += piece or b""
        line, end, self._buffer = self._buffer.partition(b"\n")
        return line + end

    @property
    def aborted(self) -> bool:
        """Whether the server ended the connection without a word."""
        return self._call.aborted

    def go_on(self) -> None:
        """Begins to read."""
        self._server.run(_set(self._call.reading))

    def close(self) -> None:
        self._server.run(_set(self._call.left, self._call.reading))
        self._done.result(PATIENCE)


async def _set(*events: asyncio.Event) -> None:
    for event in events:
        event.set()
