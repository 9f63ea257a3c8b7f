"""A synchronous face of the client: the same calls for code without an event loop, such as command-line programs.

All calls run on the loop of one background thread, which ``close`` ends. Usable from several threads at a time.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from typing import Any, Self, TypeVar

from clusterregistry.client.rest import (
    MAX_ITEMS,
    PAGE_SIZE,
    Call,
    Client,
    DeleteOptions,
    GroupVersionResource,
    ListOptions,
    Object,
    PatchType,
    ResourceClient,
    WriteOptions,
)
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.retry import RetryPolicy
from clusterregistry.client.transport import Response, Stream
from clusterregistry.client.watch import Event, WatchOptions, watch

T = TypeVar("T")


class LoopThread:
    """An event loop in a thread of its own, from when it is made until ``close``."""

    def __init__(self, name: str = "client-loop") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of a coroutine, which is cancelled when the waiting thread is interrupted."""
        if not self._thread.is_alive():
            raise RuntimeError("the client is closed")
        if threading.current_thread() is self._thread:
            raise RuntimeError("a synchronous call on the client's own loop would wait for itself")
        future = asyncio.run_coroutine_threadsafe(work(), self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                concurrent.futures.wait([future], timeout=5.0)
            raise

    def close(self) -> None:
        """Cancels what still runs, ends the loop and waits for the thread. May be called again.

        On the loop's own thread, where the garbage collector may call it, it only ends the loop.
        """
        if threading.current_thread() is self._thread:
            self._loop.stop()
            return
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def _cancel_others() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


class SyncClient:
    """``rest.Client`` for synchronous code. Close it, or use it as a context."""

    def __init__(self, config: RestConfig, *, retry: RetryPolicy | None = None) -> None:
        self.config = config
        self._loop = LoopThread()
        try:
            self._client = self._loop.run(lambda: _make_client(config, retry))
        except BaseException:
            self._loop.close()
            raise

    def resource(self, resource: GroupVersionResource, *, namespace: str = "") -> SyncResourceClient:
        return SyncResourceClient(self._loop, self._client.resource(resource, namespace=namespace))

    def call(self, call: Call) -> Object:
        return self._loop.run(lambda: self._client.call(call))

    def text(self, call: Call) -> str:
        return self._loop.run(lambda: self._client.text(call))

    def exchange(self, call: Call) -> Response:
        return self._loop.run(lambda: self._client.exchange(call))

    @contextlib.contextmanager
    def exchange_stream(self, call: Call, *, silence: float) -> Iterator[SyncStream]:
        stream = self._client.exchange_stream(call, silence=silence)
        opened = self._loop.run(lambda: _entered(stream))
        try:
            yield SyncStream(self._loop, opened)
        finally:
            with contextlib.suppress(RuntimeError):  # the client is closed, and its streams with it
                self._loop.run(lambda: _left(stream))

    def close(self) -> None:
        """Ends the connections and the thread. May be called again."""
        with contextlib.suppress(RuntimeError):  # it is closed
            self._loop.run(self._client.close)
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _make_client(config: RestConfig, retry: RetryPolicy | None) -> Client:
    return Client(config, retry=retry)


async def _entered(stream: contextlib.AbstractAsyncContextManager[T]) -> T:
    return await stream.__aenter__()


async def _left(stream: contextlib.AbstractAsyncContextManager[Any]) -> None:
    await stream.__aexit__(None, None, None)


class SyncStream:
    """``transport.Stream`` for synchronous code."""

    def __init__(self, loop: LoopThread, stream: Stream) -> None:
        self._loop, self._pieces = loop, stream.pieces()
        self.status, self.fields = stream.status, stream.fields

    def read(self) -> bytes:
        """What comes next, as soon as there is something; nothing at the end. Raises TransportError."""
        return self._loop.run(lambda: _next(self._pieces)) or b""


class SyncResourceClient:
    """``rest.ResourceClient`` for synchronous code: the same verbs with the same arguments."""

    def __init__(self, loop: LoopThread, resource: ResourceClient) -> None:
        self._loop, self._resource = loop, resource

    def get(self, name: str, *, subresource: str = "", resource_version: str = "") -> Object:
        return self._loop.run(
            lambda: self._resource.get(name, subresource=subresource, resource_version=resource_version)
        )

    def list(self, options: ListOptions | None = None) -> Object:
        return self._loop.run(lambda: self._resource.list(options))

    def list_all(
        self, options: ListOptions | None = None, *, page_size: int = PAGE_SIZE, max_items: int = MAX_ITEMS
    ) -> Object:
        return self._loop.run(lambda: self._resource.list_all(options, page_size=page_size, max_items=max_items))

    def create(self, obj: Mapping[str, Any], options: WriteOptions | None = None) -> Object:
        return self._loop.run(lambda: self._resource.create(obj, options))

    def update(self, obj: Mapping[str, Any], options: WriteOptions | None = None, *, subresource: str = "") -> Object:
        return self._loop.run(lambda: self._resource.update(obj, options, subresource=subresource))

    def patch(
        self,
        name: str,
        patch: Any,
        options: WriteOptions | None = None,
        *,
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Object:
        return self._loop.run(
            lambda: self._resource.patch(name, patch, options, patch_type=patch_type, subresource=subresource)
        )

    def apply(self, obj: Mapping[str, Any], options: WriteOptions, *, subresource: str = "") -> Object:
        return self._loop.run(lambda: self._resource.apply(obj, options, subresource=subresource))

    def delete(self, name: str, options: DeleteOptions | None = None) -> Object:
        return self._loop.run(lambda: self._resource.delete(name, options))

    def delete_collection(self, selection: ListOptions | None = None, options: DeleteOptions | None = None) -> Object:
        return self._loop.run(lambda: self._resource.delete_collection(selection, options))

    def log(self, name: str, **query: str | int | bool | None) -> str:
        return self._loop.run(lambda: self._resource.log(name, **query))

    def watch(self, options: WatchOptions | None = None) -> Iterator[Event]:
        """The events of one watch, see ``watch.watch``. Close the iterator when leaving early."""
        events = watch(self._resource, options)
        try:
            while (event := self._loop.run(lambda: _next(events))) is not None:
                yield event
        finally:
            with contextlib.suppress(RuntimeError):  # the client is closed, and its watches with it
                self._loop.run(events.aclose)


async def _next(generator: AsyncGenerator[T, None]) -> T | None:
    return await anext(generator, None)
