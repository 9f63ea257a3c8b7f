"""gzip for large answers to clients that accept it, as kube-apiserver does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Iterable, Sequence

from isal import isal_zlib

from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer, Reply, Response
from clusterregistry.serving.interface import Filter, Handler

THRESHOLD = 128 * 1024
_HEADER = frozenset({b"accept-encoding"})
_GZIP_WINDOW = 16 + 15
_LEVEL = 1
_NONE = re.compile(r"q=0(\.0{0,3})?")


def filter_for() -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            reply = inner(request)
            if not request.has_any_header(_HEADER):
                return reply
            if not isinstance(reply, Response):
                return handle_later(request, reply)
            return compressed(reply) if _is_wanted(request, reply) else reply

        async def handle_later(request: Request, reply: Awaitable[Answer]) -> Answer:
            answer = await reply
            return await compressed(answer) if isinstance(answer, Response) and _is_wanted(request, answer) else answer

        async def compressed(answer: Response) -> Response:
            # In a thread: isal lets go of the interpreter lock, and others are served meanwhile.
            answer.body = await asyncio.to_thread(_compressed, answer.body)
            answer.headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
            return answer

        return handle

    return wrap


def _is_wanted(request: Request, answer: Response) -> bool:
    return answer.length > THRESHOLD and _accepts(request)


def _accepts(request: Request) -> bool:
    """Whether gzip is among the encodings that the client takes."""
    for coding in request.header("accept-encoding").split(","):
        name, _, parameters = coding.partition(";")
        if name.strip().lower() == "gzip":
            return not _NONE.fullmatch(parameters.strip())
    return False


def _compressed(pieces: Iterable[bytes]) -> Sequence[bytes]:
    compressor = isal_zlib.compressobj(_LEVEL, wbits=_GZIP_WINDOW)
    compressed = [compressor.compress(piece) for piece in pieces]
    return [piece for piece in (*compressed, compressor.flush()) if piece]
