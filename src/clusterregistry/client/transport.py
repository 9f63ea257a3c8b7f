"""One HTTP request out, one response back, or a stream of one: over aiohttp, and nowhere else in the package.

No redirect is followed, no cookie kept, no proxy of the environment used, no compressed body requested. Nothing is
sent twice: repeating is a decision of ``retry``, which needs to know whether a request was sent. Every response is
bounded in bytes and time. Decision 16 has the figures of this library and of others.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import re
import socket
import ssl
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.connector import Connection
from yarl import URL

from clusterregistry.client import errors
from clusterregistry.client.credentials import Credential, CredentialSource, TLSContexts
from clusterregistry.client.rest_config import RestConfig, authorities_reader, credential_source

_log = logging.getLogger(__name__)

MAX_HEADER_BYTES = 64 << 10
MAX_HEADERS = 1000
"""Each warning of a server is a header field of its own."""

_MAX_PIECE = 1 << 20
_PROBE_IDLE, _PROBE_INTERVAL, _PROBES = 30, 10, 3
"""TCP keepalive in seconds: a peer that is gone ends a silent watch after a minute, as HTTP/2 pings do in client-go."""

_TURNS_TO_END = 20
"""Of the event loop. A connection takes five or so."""

_CONNECT_CALL = re.compile(r"Connect call failed \('([^']*)', (\d+)")
_NAME_MISMATCH = frozenset({62, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


Fields = Sequence[tuple[str, str]]
"""Header fields in their order. A name may be there several times; its case does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """``target`` is a path below the server's URL, quoted, with its query. ``limit`` is for bytes of the response."""

    method: str
    target: str
    fields: Fields = field(default=(), repr=False)
    omitted: frozenset[str] = frozenset()
    """Names, in lower case, of header fields that are not sent unless they are among ``fields``."""
    body: bytes | None = field(default=None, repr=False)
    timeout: float
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A whole response."""

    status: int
    fields: Fields
    body: bytes = field(repr=False)
    credential: Credential = field(repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        """By names in lower case; of repeated ones the last counts."""
        return {name.lower(): value for name, value in self.fields}


class Stream:
    """A response whose body is read piece by piece."""

    def __init__(self, response: aiohttp.ClientResponse, credential: Credential) -> None:
        self._response = response
        self.credential = credential
        self.status = response.status
        self.fields: Fields = tuple(response.headers.items())

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises TransportError."""
        with _interpreted(_SENT):
            async for piece in self._response.content.iter_any():
                yield piece

    async def body(self, limit: int) -> bytes:
        """The whole body. Raises TransportError, ResponseTooLargeError beyond the limit."""
        with _interpreted(_SENT):
            return await _read(self._response, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportParts:
    """What a program with many transports shares among them, or sees of them. Each has a default."""

    credentials: CredentialSource | None = field(default=None, repr=False)
    """None: those of the configuration."""
    tls_contexts: TLSContexts = field(default_factory=TLSContexts)
    resolver: AbstractResolver | None = None
    """Names to addresses; None is aiohttp's, in the threads of the event loop."""
    inspect: Callable[[ssl.SSLObject], None] | None = None
    """Called with the TLS session of each new connection, before a request is sent over it."""


@dataclass(slots=True)
class _Attempt:
    """Whether the one attempt of a request was sent."""

    sent: bool = False
    inspect: Callable[[Connection], None] | None = None


_SENT = _Attempt(sent=True)
_attempt: ContextVar[_Attempt] = ContextVar("_attempt")


class _SentOnce(aiohttp.ClientRequest):
    """Notes that sending begins, and refuses to send twice.

    aiohttp repeats GET, PUT and DELETE by itself when a kept connection ends before the response: for PUT and DELETE
    that repeats a write whose outcome is unknown.
    """

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        attempt = _attempt.get()
        if attempt.sent:
            raise errors.DisconnectedError("the server ended the connection before it answered")
        if attempt.inspect is not None:
            attempt.inspect(conn)
        attempt.sent = True
        return await super().send(conn)


class Transport:
    """Requests to one server over kept connections. Used on one loop, and closed at the end."""

    def __init__(self, config: RestConfig, parts: TransportParts | None = None) -> None:
        """Raises ConfigError for certificates and tokens that cannot be used."""
        self._config = config
        self._parts = parts or TransportParts()
        self._inspected: weakref.WeakSet[ssl.SSLObject] = weakref.WeakSet()
        self.credentials = self._parts.credentials or credential_source(config)
        self._authorities = authorities_reader(config)
        self._tls: tuple[bytes, Credential, ssl.SSLContext] | None = None
        self._tls_problem = ""
        self._http: aiohttp.ClientSession | None = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        url = urlsplit(config.server)
        self._base = f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"
        self._query = url.query
        self._headers = _common_headers(config)

    async def exchange(self, request: Request) -> Response:
        """A response with its whole body. Raises TransportError and ConfigError."""
        attempt = self._attempt()
        with _interpreted(attempt):
            credential = await self.credentials.get()
            async with asyncio.timeout(request.timeout):
                response = await self._send(request, credential, attempt=attempt, silence=None)
                async with response:
                    body = await _read(response, request.limit)
        fields = tuple(response.headers.items())
        return Response(status=response.status, fields=fields, body=body, credential=credential)

    @contextlib.asynccontextmanager
    async def stream(self, request: Request, *, silence: float) -> AsyncIterator[Stream]:
        """A response to be read piece by piece: the timeout is for its head, ``silence`` in seconds for each piece.

        Raises TransportError and ConfigError. A stream that is not read to its end takes its connection with it.
        """
        attempt = self._attempt()
        with _interpreted(attempt):
            credential = await self.credentials.get()
            async with asyncio.timeout(request.timeout):
                response = await self._send(request, credential, attempt=attempt, silence=silence)
        try:
            yield Stream(response, credential)
        finally:
            _abandon(response)

    def _attempt(self) -> _Attempt:
        return _Attempt(inspect=self._inspect if self._parts.inspect is not None else None)

    def _inspect(self, connection: Connection) -> None:
        transport = connection.transport
        session = transport.get_extra_info("ssl_object") if transport is not None else None
        if session is not None and session not in self._inspected and self._parts.inspect is not None:
            self._inspected.add(session)
            self._parts.inspect(session)

    async def _send(
        self, request: Request, credential: Credential, *, attempt: _Attempt, silence: float | None
    ) -> aiohttp.ClientResponse:
        """The response once its head is there. The credential does not count: a person may have to sign in for it."""
        own = self._headers
        if credential.authorization:
            own = [*own, ("authorization", credential.authorization)]
        reset = _attempt.set(attempt)
        try:
            return await self._session().request(
                request.method,
                URL(self._url(request.target), encoded=True),
                data=_data(request.body),
                headers=[*(each for each in own if each[0] not in request.omitted), *request.fields],
                skip_auto_headers=request.omitted or None,
                allow_redirects=False,
                ssl=self._context(credential) if self._config.is_tls else False,
                server_hostname=self._config.tls_server_name or None,
                proxy=self._config.proxy_url or None,
                proxy_headers={"user-agent": self._config.user_agent} if self._config.proxy_url else None,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._config.connect_timeout, sock_read=silence),
            )
        finally:
            _attempt.reset(reset)

    def _url(self, target: str) -> str:
        if not self._query:
            return self._base + target
        return f"{self._base}{target}{'&' if '?' in target else '?'}{self._query}"

    def _context(self, credential: Credential) -> ssl.SSLContext:
        """Another context for other authorities or another certificate, and with it other connections."""
        authorities = self._authorities()
        if self._tls is not None and self._tls[0] == authorities and _same_identity(self._tls[1], credential):
            return self._tls[2]
        try:
            context = self._parts.tls_contexts.get(
                authorities, credential, insecure=self._config.insecure_skip_tls_verify
            )
        except errors.ConfigError as error:
            if self._tls is None:
                raise
            # Half written, or a certificate without its new key yet: the next request looks again.
            if str(error) != self._tls_problem:
                self._tls_problem = str(error)
                _log.warning("%s: the former certificates stay in use: %s", self._base, error)
            return self._tls[2]
        self._tls, self._tls_problem = (authorities, credential, context), ""
        return context

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            connector = aiohttp.TCPConnector(
                limit=self._config.max_connections,
                keepalive_timeout=self._config.keepalive,
                socket_factory=self._socket,
                resolver=self._parts.resolver,
                use_dns_cache=self._parts.resolver is None,
            )
            self._http = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                request_class=_SentOnce,
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
                max_headers=MAX_HEADERS,
            )
        return self._http

    async def close(self) -> None:
        """Ends all connections; streams that are still open fail. May be called again."""
        session, self._http = self._http, None
        if session is not None:
            await session.close()
            await self._end_lingering()

    async def _end_lingering(self) -> None:
        """Connections after a failure, which TLS ends in order: their peers may take as long as they like for that."""
        for _ in range(_TURNS_TO_END):
            lingering = [each for each in self._sockets if each.fileno() != -1]
            if not lingering:
                return
            for each in lingering:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0)

    def _socket(self, address: Any) -> socket.socket:
        made = _socket(address)
        self._sockets.add(made)
        return made


def _data(body: bytes | None) -> bytes | io.BytesIO | None:
    """The library warns of bodies that it would write in one go; a file in memory is written piece by piece."""
    return body if body is None or len(body) <= _MAX_PIECE else io.BytesIO(body)


def _same_identity(one: Credential, other: Credential) -> bool:
    return one.certificate == other.certificate and one.key == other.key


def _common_headers(config: RestConfig) -> list[tuple[str, str]]:
    chosen = config.impersonation
    headers = [("user-agent", config.user_agent), ("accept-encoding", "identity")]
    headers += [("impersonate-user", chosen.user)] if chosen.user else []
    headers += [("impersonate-uid", chosen.uid)] if chosen.uid else []
    headers += [("impersonate-group", group) for group in chosen.groups]
    for key, values in chosen.extra.items():
        headers += [(f"impersonate-extra-{quote(key, safe='')}", value) for value in values]
    return headers


def _socket(address: Any) -> socket.socket:
    made = socket.socket(family=address[0], type=address[1], proto=address[2])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_IDLE)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_INTERVAL)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    return made


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    if (response.content_length or 0) > limit:
        raise _too_large(response, limit)
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise _too_large(response, limit)
    return b"".join(pieces)


def _abandon(response: aiohttp.ClientResponse) -> None:
    """Ends a response, and its connection unless it was read to its end.

    At once: the orderly end of TLS waits for a peer that may go on sending for as long as it likes.
    """
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


def _too_large(response: aiohttp.ClientResponse, limit: int) -> errors.ResponseTooLargeError:
    _abandon(response)
    return errors.ResponseTooLargeError(
        f"the response has more than {limit} bytes", status=response.status, limit=limit
    )


@contextlib.contextmanager
def _interpreted(attempt: _Attempt) -> Iterator[None]:
    """The errors of the library as those of this package."""
    try:
        yield
    except errors.ClientError:
        raise
    except TimeoutError as error:
        raise _timed_out(attempt) from error
    except aiohttp.ClientHttpProxyError as error:
        raise errors.ProxyError(f"the proxy refuses the connection with status {error.status}") from error
    except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, aiohttp.ClientConnectionResetError) as error:
        raise _broken(error, attempt) from error
    except aiohttp.ClientResponseError as error:
        raise errors.MalformedResponseError(
            f"the server does not answer with HTTP: {errors.printable(error.message, 200)}"
        ) from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise _broken(error, attempt) from error


def _timed_out(attempt: _Attempt) -> errors.TransportError:
    if attempt.sent:
        return errors.RequestTimeoutError("there is no complete response in time")
    return errors.ConnectTimeoutError("there is no connection in time")


def _broken(error: BaseException, attempt: _Attempt) -> errors.TransportError:
    """The error of a connection that failed, or that never was."""
    cause = _cause(error)
    made = _classified(cause, attempt)
    made.cause = cause
    return made


def _classified(cause: BaseException, attempt: _Attempt) -> errors.TransportError:
    why = errors.printable(
        _refused(cause) or getattr(cause, "strerror", None) or str(cause) or type(cause).__name__, 300
    )
    unknown = attempt.sent
    if isinstance(cause, ssl.SSLCertVerificationError):
        if cause.verify_code in _NAME_MISMATCH:
            return errors.CertificateNameError(
                f"the server's certificate is for another name: {cause.verify_message}", outcome_unknown=False
            )
        return errors.UntrustedCertificateError(
            f"the server's certificate is not trusted: {cause.verify_message}", outcome_unknown=False
        )
    if isinstance(cause, ssl.SSLError):
        reason = (cause.reason or "").lower().replace("_", " ") or why
        return errors.TLSError(f"TLS fails: {reason}", outcome_unknown=unknown)
    if attempt.sent:
        return errors.DisconnectedError(f"the connection ended before the response: {why}")
    if isinstance(cause, socket.gaierror):
        return errors.UnreachableError(f"the name of the server is not known: {why}")
    return errors.UnreachableError(f"the server cannot be reached: {why}")


def _refused(cause: BaseException) -> str:
    """``127.0.0.1:8443: Connection refused`` for asyncio's ``Connect call failed ('127.0.0.1', 8443)``; else empty."""
    if not isinstance(cause, OSError) or not cause.errno or (found := _CONNECT_CALL.search(str(cause))) is None:
        return ""
    host, port = found.groups()
    return f"{f'[{host}]' if ':' in host else host}:{port}: {os.strerror(cause.errno)}"


def _cause(error: BaseException) -> BaseException:
    """The error of the operating system or of TLS that the library has wrapped, else the error itself."""
    seen: set[int] = set()
    current: BaseException | None = error
    found = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if isinstance(current, OSError) and not isinstance(current, aiohttp.ClientError):
            found = current
            if isinstance(current, ssl.SSLError):
                break
        current = getattr(current, "certificate_error", None) or current.__cause__ or current.__context__
    return found
