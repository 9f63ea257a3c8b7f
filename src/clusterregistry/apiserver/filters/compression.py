"""Compresses large responses with gzip for clients that accept it, as kube-apiserver does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Hashable, Iterable, Sequence

from isal import isal_zlib

from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.response import Answer, Body, LazyBody, Reply, Response

THRESHOLD = 128 * 1024
_HEADER = "accept-encoding"
_GZIP_WINDOW = 16 + 15
_LEVEL = 1
_IN_LOOP = 512 * 1024
"""Bytes that are compressed in the event loop: it takes less than a millisecond, and a thread costs a fifth more."""

_CACHED_BYTES = 8 * 1024 * 1024
"""Bytes of compressed bodies that are cached: those of a list of some 10,000 objects."""

_NONE = re.compile(r"q=0(\.0{0,3})?")


def filter_for() -> Filter:
    editions = EditionCache()

    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            reply = inner(request)
            if _HEADER not in request.headers:
                return reply
            if not isinstance(reply, Response):
                return handle_later(request, reply)
            return compressed(reply) if _is_compressible(request, reply) else reply

        async def handle_later(request: Request, reply: Awaitable[Answer]) -> Answer:
            answer = await reply
            if isinstance(answer, Response) and _is_compressible(request, answer):
                return await compressed(answer)
            return answer

        async def compressed(answer: Response) -> Response:
            answer.set_body(await editions.compressed(answer.body, size=answer.length))
            answer.headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
            return answer

        return handle

    return wrap


def _is_compressible(request: Request, answer: Response) -> bool:
    return answer.length > THRESHOLD and _accepts(request)


class EditionCache:
    """Compresses the newest edition of each body once for all clients that request it.

    The result is cached at the second request: where every list is another one, nothing is cached.
    """

    def __init__(self, max_bytes: int = _CACHED_BYTES) -> None:
        self._max_bytes = max_bytes
        self._newest: dict[Hashable, _Compressed] = {}
        """By name, the most recently cached one last."""

    async def compressed(self, body: Body, *, size: int) -> Sequence[bytes]:
        """A body of ``size`` bytes, compressed."""
        if not isinstance(body, LazyBody) or body.edition is None:
            return await _compress(body, size=size)
        name, revision = body.edition
        one = self._newest.get(name)
        if one is None or one.revision != revision:
            one = self._newest[name] = _Compressed(revision)
            return await one.made(body, size=size)
        pieces = await one.made(body, size=size)
        self._keep(name, one, pieces)
        return pieces

    def _keep(self, name: Hashable, one: _Compressed, pieces: Sequence[bytes]) -> None:
        """Caches one, and drops the oldest ones above the limit."""
        if one.pieces is not None or self._newest.get(name) is not one:
            return
        one.pieces = pieces
        self._newest[name] = self._newest.pop(name)
        for other in list(self._newest.values()):
            if sum(each.kept_bytes for each in self._newest.values()) > self._max_bytes:
                other.pieces = None


class _Compressed:
    __slots__ = ("_under_way", "pieces", "revision")

    def __init__(self, revision: int) -> None:
        self.revision = revision
        self.pieces: Sequence[bytes] | None = None
        self._under_way: asyncio.Future[Sequence[bytes]] | None = None

    @property
    def kept_bytes(self) -> int:
        return sum(map(len, self.pieces or ()))

    async def made(self, body: Body, *, size: int) -> Sequence[bytes]:
        """The compressed pieces; concurrent callers share one compression."""
        if self.pieces is not None:
            return self.pieces
        if self._under_way is None:
            self._under_way = asyncio.ensure_future(_compress(body, size=size))
            self._under_way.add_done_callback(self._forget)
        # The compression goes on for the others when one request is cancelled.
        return await asyncio.shield(self._under_way)

    def _forget(self, _: object) -> None:
        self._under_way = None


async def _compress(body: Body, *, size: int) -> Sequence[bytes]:
    if size <= _IN_LOOP:
        return _compressed(body)
    # In a thread: isal releases the interpreter lock, and other requests are served meanwhile.
    return await asyncio.to_thread(_compressed, body)


def _accepts(request: Request) -> bool:
    """Whether the client accepts gzip."""
    for coding in request.header(_HEADER).split(","):
        name, _, parameters = coding.partition(";")
        if name.strip().lower() == "gzip":
            return not _NONE.fullmatch(parameters.strip())
    return False


def _compressed(pieces: Iterable[bytes]) -> Sequence[bytes]:
    compressor = isal_zlib.compressobj(_LEVEL, wbits=_GZIP_WINDOW)
    compressed = [compressor.compress(piece) for piece in pieces]
    return [piece for piece in (*compressed, compressor.flush()) if piece]
