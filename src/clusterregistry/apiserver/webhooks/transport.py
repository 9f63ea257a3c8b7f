"""One request out, one answer back, over HTTPS only."""

from __future__ import annotations

import errno
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from clusterregistry.apimachinery.codecs.decoded import too_deep
from clusterregistry.apiserver.webhooks.errors import CallFailed

if TYPE_CHECKING:
    import aiohttp

MAX_ANSWER = 1 << 20
"""Bytes of an answer that are read at most. A review takes a few hundred, a set of keys a few thousand."""

CONNECTIONS = 64
_RESET = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED})
_TOO_MANY = 429
_SERVER_ERROR = 500
_SUCCESS = range(200, 300)
_REDIRECTION = range(300, 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is sent: a GET without, a POST with a body."""

    url: str
    body: bytes | None = None
    token: str = ""

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"

    def headers(self) -> dict[str, str]:
        # Compressed answers are not asked for: a small one could become a huge one here.
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if self.body is not None:
            headers["content-type"] = "application/json"
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        return headers


class Caller(Protocol):
    """Somebody who can make a call."""

    async def exchange(self, call: Call) -> dict[str, Any]:
        """The JSON object that is answered. Raises CallFailed, and nothing else."""
        ...


class Transport:
    """Calls over connections that are kept. Must be made on the loop that uses it, and closed at the end.

    No redirect is followed, no cookie kept and no proxy of the environment used: a call goes where the configuration
    says, or nowhere.
    """

    def __init__(
        self, tls: ssl.SSLContext, *, server_name: str = "", patience: float = 30.0, user_agent: str = "apiserver"
    ) -> None:
        import aiohttp  # noqa: PLC0415 - a quarter of a second that only servers with webhooks or an issuer pay

        self._server_name = server_name or None
        self._library = aiohttp
        self._session = aiohttp.ClientSession(
            headers={"user-agent": user_agent},
            connector=aiohttp.TCPConnector(ssl=tls, limit=CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=patience),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def exchange(self, call: Call) -> dict[str, Any]:
        try:
            return _document(await self._exchange(call))
        except TimeoutError:
            raise CallFailed("no answer in time") from None
        except (self._library.ClientError, OSError, ValueError) as error:
            raise _failure(error) from None

    async def _exchange(self, call: Call) -> bytes:
        async with self._session.request(
            call.method,
            call.url,
            data=call.body,
            headers=call.headers(),
            allow_redirects=False,
            server_hostname=self._server_name,
        ) as response:
            body = await _bounded(response)  # also of an error: a connection that is read to its end can be used again
            _check_status(response.status)
            return body

    async def documents(self, call: Call, *, silence: float) -> AsyncGenerator[dict[str, Any], None]:
        """The JSON objects of a stream, one a line, until it ends. Raises CallFailed, and nothing else.

        ``silence`` is for how many seconds nothing may come. Close it when leaving early.
        """
        try:
            async with self._streamed(call, silence=silence) as response:
                _check_status(response.status)
                async for line in _lines(response):
                    yield _document(line)
        except TimeoutError:
            raise CallFailed("no answer in time") from None
        except (self._library.ClientError, OSError, ValueError) as error:
            raise _failure(error) from None

    def _streamed(self, call: Call, *, silence: float) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._session.request(
            call.method,
            call.url,
            data=call.body,
            headers=call.headers(),
            allow_redirects=False,
            server_hostname=self._server_name,
            timeout=self._library.ClientTimeout(total=None, sock_connect=silence, sock_read=silence),
        )

    async def close(self) -> None:
        await self._session.close()


def _check_status(status: int) -> None:
    if status in _SUCCESS:
        return
    if status in _REDIRECTION:
        raise CallFailed(f"it answers with a redirect ({status}), which is not followed", status=status)
    transient = status == _TOO_MANY or status >= _SERVER_ERROR
    raise CallFailed(f"it answers with status {status}", transient=transient, status=status)


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_ANSWER:
            if response.connection is not None and response.connection.transport is not None:
                response.connection.transport.abort()
            raise CallFailed(f"its answer is larger than {MAX_ANSWER} bytes")
    return bytes(body)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Whole lines that are not empty, each bounded as an answer is."""
    begun = b""
    async for piece in response.content.iter_any():
        *whole, begun = (begun + piece).split(b"\n")
        for line in whole:
            if line:
                yield line
        if len(begun) > MAX_ANSWER:
            raise CallFailed(f"a line of its answer is larger than {MAX_ANSWER} bytes")


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise CallFailed("its answer is not JSON") from None
    if not isinstance(document, dict) or too_deep(document):
        raise CallFailed("its answer is no JSON object of a usual depth")
    return document


def _failure(error: Exception) -> CallFailed:
    """A connection that broke is worth another try; one that nobody takes or trusts is not, as in kube-apiserver."""
    number = getattr(error, "errno", None) or getattr(error.__cause__, "errno", None)
    broke = type(error).__name__ in {"ServerDisconnectedError", "ClientPayloadError"} or number in _RESET
    return CallFailed(str(error) or type(error).__name__, transient=broke)
