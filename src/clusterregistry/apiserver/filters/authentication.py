"""Establishes who is asking. Raises 401, and has credentials that are refused logged.

What a client said of itself ends here: credentials, and the headers of front proxies whether they counted or not, are
taken from the request, so that nobody further inwards can mistake or leak them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.interface import Authenticator, CredentialRefused, Outcome
from clusterregistry.apiserver.authn.request_header import ProxyHeaders
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.request import HeaderNames
from clusterregistry.apiserver.http.response import Answer, Reply, resolve

MAX_LINES = 5
"""Lines a second. The rest of a second is only counted: neither the disk nor the memory fills up."""

MAX_CHARACTERS = 500

_SECOND = 1.0

_log = logging.getLogger(__name__)

Later = Callable[[float, Callable[[], None]], object]


def _in_the_loop(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)


class RefusedCredentials:
    """Writes a line for each, and a count in the place of those that were too many."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, later: Later = _in_the_loop) -> None:
        self._clock, self._later = clock, later
        self._since = float("-inf")
        self._lines = self._left_out = 0

    def note(self, refused: CredentialRefused, address: str) -> None:
        now = self._clock()
        if now - self._since >= _SECOND:
            self._tell_left_out()
            self._since, self._lines = now, 0
        if self._lines >= MAX_LINES:
            self._leave_out()
            return
        self._lines += 1
        _log.warning("refused a %s, from %s", _shown(refused.describe()), address or "an unknown address")

    def _leave_out(self) -> None:
        if not self._left_out:
            self._later(_SECOND, self._tell_left_out)  # also when none is refused any more
        self._left_out += 1

    def _tell_left_out(self) -> None:
        if self._left_out:
            _log.warning("refused credentials not logged: %d; at most %d a second are", self._left_out, MAX_LINES)
            self._left_out = 0


def _shown(text: str) -> str:
    """On one line and not too long: a certificate's subject is what its owner asked for."""
    escaped = text if text.isprintable() else ascii(text)[1:-1]
    return escaped if len(escaped) <= MAX_CHARACTERS else f"{escaped[:MAX_CHARACTERS]}..."


_STANDARD = ProxyHeaders()


def usual_headers() -> ProxyHeaders:
    """Those of front proxies when nothing else is configured."""
    return _STANDARD


def filter_for(authenticator: Authenticator, proxy_headers: Callable[[], ProxyHeaders] = usual_headers) -> Filter:
    """``proxy_headers`` are those that count just now."""
    claims, refusals = _Claims(proxy_headers), RefusedCredentials()

    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            try:
                outcome = authenticator.authenticate(request)
            except CredentialRefused as refused:
                refusals.note(refused, request.client_address)
                raise
            if isinstance(outcome, User):
                request.user = outcome
                request.drop_headers(claims())
                return inner(request)
            if outcome is None:
                raise errors.unauthorized()
            return handle_later(request, outcome)

        async def handle_later(request: Request, asked: Awaitable[Outcome]) -> Answer:
            try:
                user = await asked
            except CredentialRefused as refused:
                refusals.note(refused, request.client_address)
                raise
            if user is None:
                raise errors.unauthorized()
            request.user = user
            request.drop_headers(claims())
            return await resolve(inner(request))

        return handle

    return wrap


class _Claims:
    """The headers in which a client says something of itself, as front proxies are configured now."""

    def __init__(self, proxy_headers: Callable[[], ProxyHeaders]) -> None:
        self._proxy_headers = proxy_headers
        self._configured = proxy_headers()
        self._names = _claims(self._configured)

    def __call__(self) -> HeaderNames:
        configured = self._proxy_headers()
        if configured is not self._configured:
            self._configured, self._names = configured, _claims(configured)
        return self._names


def _claims(configured: ProxyHeaders) -> HeaderNames:
    """As kube-apiserver does: the usual headers of proxies go too when others are configured."""
    both = (_STANDARD, configured)
    return HeaderNames(
        ["authorization", *(name for each in both for name in (*each.user, *each.uid, *each.group))],
        prefixes=dict.fromkeys(beginning for each in both for beginning in each.extra),
    )
