"""The server's side of TLS's handshake, with a word for those who are refused.

asyncio ends a connection whose handshake fails without sending what OpenSSL has to say: the client sees a bare end of
the stream. Here the client gets the alert, and one that speaks plain HTTP gets an answer in plain HTTP, as from Go's
server. All of it happens after a failure, so that a handshake that succeeds costs what it did.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

PLAIN_HTTP_ANSWER = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
"""Go's net/http says the same, in the same words."""

MAX_DISCARDED = 1024 * 1024
"""Bytes of a refused client that are read and dropped before its connection is cut."""

MAX_ISSUER = 200
"""Characters of an issuer's name: whoever made the certificate chose it."""

_HTTP_REASONS = frozenset({"HTTP_REQUEST", "HTTPS_PROXY_REQUEST"})
_NO_TLS_REASONS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
"""What OpenSSL says of the methods of HTTP that it does not recognise, and of all other noise."""

_FIRST_LINE = 4096


@dataclass(frozen=True, slots=True)
class Refusal:
    """A handshake that failed. ``farewell`` is what to send to the client."""

    error: ssl.SSLError
    farewell: bytes
    side: ServerSide

    @property
    def of_certificate(self) -> bool:
        """Whether the client's certificate is the reason."""
        return isinstance(self.error, ssl.SSLCertVerificationError)

    @property
    def reason(self) -> str:
        if isinstance(self.error, ssl.SSLCertVerificationError):
            return self.error.verify_message
        return self.error.reason or str(self.error)

    def issuer(self) -> str:
        """Who issued the client's certificate, fit for a log; empty when that cannot be said."""
        return self.side.shown_issuer()


on_refusal: ContextVar[Callable[[Refusal], None]] = ContextVar("on_refusal")
"""Who is told of a refusal of the connection that is being made: it sends the farewell."""


class ServerSide(ssl.SSLObject):
    """One connection's TLS."""

    _incoming: ssl.MemoryBIO
    _outgoing: ssl.MemoryBIO
    _tell: Callable[[Refusal], None] | None = None
    _refused = False
    _discarded = 0

    def watch(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, tell: Callable[[Refusal], None] | None
    ) -> ServerSide:
        self._incoming, self._outgoing, self._tell = incoming, outgoing, tell
        return self

    def do_handshake(self) -> None:
        # Nothing here keeps the error: together with its traceback that would be a circle of objects.
        if not self._refused:
            try:
                super().do_handshake()
            except ssl.SSLWantReadError:
                raise
            except ssl.SSLError as error:
                if not self._refuse(error):
                    raise
            else:
                return
        self._discard()
        raise ssl.SSLWantReadError

    def _refuse(self, error: ssl.SSLError) -> bool:
        """Has the farewell sent, if there is one. For the loop the handshake then goes on until the client leaves."""
        farewell = PLAIN_HTTP_ANSWER if self._is_plain_http(error) else self._outgoing.read()
        if self._tell is None or not farewell:
            return False
        self._refused = True
        self._tell(Refusal(error, farewell, self))
        return True

    def _discard(self) -> None:
        """Drops what the client still sends: a socket that is closed with unread bytes would take back the farewell."""
        self._discarded += len(self._incoming.read())
        if self._discarded > MAX_DISCARDED:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, "the client was refused and went on sending")

    def _is_plain_http(self, error: ssl.SSLError) -> bool:
        if error.reason in _HTTP_REASONS:
            return True
        # OpenSSL has taken the first few bytes, which are a part of the method.
        return error.reason in _NO_TLS_REASONS and b" HTTP/1." in self._incoming.read(_FIRST_LINE).partition(b"\n")[0]

    def shown_issuer(self) -> str:
        try:
            # OpenSSL keeps what it has verified, also when it ended badly. The method is public from Python 3.13 on,
            # where it answers bytes that would still have to be parsed.
            sslobj: Any = self._sslobj  # type: ignore[attr-defined]
            issuer = sslobj.get_verified_chain()[0].get_info()["issuer"]
            text = ",".join(f"{name}={value}" for part in issuer for name, value in part)
        except Exception:  # noqa: BLE001 - a stranger made this certificate; for the log only
            return ""
        return text if len(text) <= MAX_ISSUER else f"{text[:MAX_ISSUER]}..."


class ServerContext(ssl.SSLContext):
    """A context whose handshakes tell ``on_refusal`` of their failures."""

    sslobject_class = ServerSide

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *arguments: Any, **more: Any) -> ServerSide:
        side = super().wrap_bio(incoming, outgoing, *arguments, **more)
        assert isinstance(side, ServerSide)
        return side.watch(incoming, outgoing, on_refusal.get(None))
