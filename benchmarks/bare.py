"""The least that a server in Python does for the same load, to show what an API server adds to it.

    python -m benchmarks.bare --port PORT --directory DIRECTORY

It has TLS, HTTP, JSON, a commit to SQLite that is on disk before a write is answered, and streams that
get changes together as ours do. It has no users, no rights, no versions, no checks, no managed fields, no metrics: what
it costs, no server in Python on these libraries can go below. It answers what the mix of heartbeats, watches and reads
asks for, and only that.
"""

import argparse
import asyncio
import queue
import sqlite3
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import httptools
import orjson
import uvloop

from benchmarks.objects import PATH
from clusterregistry.apimachinery import certificates

_PAUSE = 0.03
"""Seconds between two deliveries to the streams, as in the registry."""

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


class Objects:
    """The objects as JSON by their names. A thread makes changes durable, one by one, and has the loop go on then."""

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.values: dict[str, bytes] = {}
        self._loop = loop
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("CREATE TABLE log (revision INTEGER PRIMARY KEY, key TEXT, value BLOB)")
        self._waiting: queue.SimpleQueue[tuple[str, bytes, Callable[[], None]]] = queue.SimpleQueue()
        threading.Thread(target=self._commit, daemon=True).start()

    def write(self, name: str, value: bytes, done: Callable[[], None]) -> None:
        self.values[name] = value
        self._waiting.put((name, value, done))

    def _commit(self) -> None:
        while True:
            name, value, done = self._waiting.get()
            self._connection.execute("INSERT INTO log (key, value) VALUES (?, ?)", (name, value))
            self._loop.call_soon_threadsafe(done)


class Streams:
    """The watches: all get the same."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._open: set[asyncio.Transport] = set()
        self._frames: list[bytes] = []
        self._quiet_until = 0.0

    def begin(self, transport: asyncio.Transport) -> None:
        transport.write(_HEAD + b"transfer-encoding: chunked\r\n\r\n")
        self._open.add(transport)

    def end(self, transport: asyncio.Transport) -> None:
        self._open.discard(transport)

    def publish(self, value: bytes) -> None:
        if not self._open:
            return
        self._frames.append(b'{"type":"MODIFIED","object":%b}\n' % value)
        if len(self._frames) == 1:
            self._loop.call_at(self._quiet_until, self._tell)

    def _tell(self) -> None:
        data, self._frames = b"".join(self._frames), []
        self._quiet_until = self._loop.time() + _PAUSE
        chunk = b"%x\r\n%b\r\n" % (len(data), data)
        for transport in self._open:
            transport.write(chunk)


class Connection(asyncio.Protocol):
    """Answers the requests of one client, which waits for each answer."""

    def __init__(self, objects: Objects, streams: Streams) -> None:
        self._objects, self._streams = objects, streams
        self._parser = httptools.HttpRequestParser(self)
        self._url = self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _error: Exception | None) -> None:
        self._streams.end(self._transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        url, body, self._body = self._url.decode(), self._body, b""
        name = url.removeprefix(PATH).strip("/").partition("/")[0]
        match self._parser.get_method():
            case b"PATCH":
                self._heartbeat(name, body)
            case b"POST":
                self._objects.write(orjson.loads(body)["metadata"]["name"], body, lambda: self._answer(body))
            case _ if "watch=" in url:
                self._streams.begin(self._transport)
            case _:
                self._answer(self._objects.values.get(name) or self._list())

    def _heartbeat(self, name: str, body: bytes) -> None:
        obj = orjson.loads(self._objects.values[name])
        obj.setdefault("status", {}).update(orjson.loads(body)["status"])
        value = orjson.dumps(obj)

        def done() -> None:
            self._streams.publish(value)
            self._answer(value)

        self._objects.write(name, value, done)

    def _answer(self, value: bytes) -> None:
        self._transport.write(_HEAD + b"content-length: %d\r\n\r\n%b" % (len(value), value))

    def _list(self) -> bytes:
        items = b",".join(self._objects.values.values())
        return b'{"metadata":{"resourceVersion":"1"},"items":[%b]}' % items


def _context(directory: Path) -> ssl.SSLContext:
    """With a certificate of the same kind as ours."""
    authority, key, file = (
        certificates.new_authority(certificates.new_key(), now=time.time()),
        certificates.new_key(),
        "bare.pem",
    )
    certificate = certificates.serving_certificate(authority, key, names=("127.0.0.1",), now=time.time())
    (directory / file).write_bytes(certificate + certificates.key_pem(key))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / file)
    return context


async def _serve(port: int, directory: Path) -> None:
    loop = asyncio.get_running_loop()
    objects, streams = Objects(directory / "bare.db", loop), Streams(loop)
    server = await loop.create_server(
        lambda: Connection(objects, streams), "127.0.0.1", port, ssl=_context(directory), backlog=1024
    )
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    options = parser.parse_args()
    uvloop.run(_serve(options.port, options.directory))


if __name__ == "__main__":
    main()
