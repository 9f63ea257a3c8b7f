"""Authenticates the user of a request. Raises 401 and logs refused credentials.

Credentials and the headers of front proxies, whether they were used or not, are removed from the request, so that no
later filter or handler can misread or leak them.
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
"""Log lines a second. Further ones are only counted: neither the disk nor the memory fills up."""

MAX_CHARACTERS = 500

_SECOND = 1.0

_log = logging.getLogger(__name__)

Later = Callable[[float, Callable[[], None]], object]


def _in_the_loop(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)


class RefusedCredentialLog:
    """Logs refused credentials, and a count in place of those above MAX_LINES a second."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, later: Later = _in_the_loop) -> None:
        self._clock, self._later = clock, later
        self._since = float("-inf")
        self._lines = self._omitted = 0

    def log(self, refused: CredentialRefused, address: str) -> None:
        now = self._clock()
        if now - self._since >= _SECOND:
            self._log_omitted()
            self._since, self._lines = now, 0
        if self._lines >= MAX_LINES:
            self._omit()
            return
        self._lines += 1
        _log.warning("refused a %s, from %s", _shown(refused.describe()), address or "an unknown address")

    def _omit(self) -> None:
        if not self._omitted:
            self._later(_SECOND, self._log_omitted)  # also if no other one is refused
        self._omitted += 1

    def _log_omitted(self) -> None:
        if self._omitted:
            _log.warning("refused credentials not logged: %d; at most %d a second are", self._omitted, MAX_LINES)
            self._omitted = 0


def _shown(text: str) -> str:
    """On one line and not too long: owners choose the subjects of their certificates."""
    escaped = text if text.isprintable() else ascii(text)[1:-1]
    return escaped if len(escaped) <= MAX_CHARACTERS else f"{escaped[:MAX_CHARACTERS]}..."


_STANDARD = ProxyHeaders()


def usual_headers() -> ProxyHeaders:
    """The headers of front proxies by default."""
    return _STANDARD


def filter_for(authenticator: Authenticator, proxy_headers: Callable[[], ProxyHeaders] = usual_headers) -> Filter:
    """``proxy_headers`` returns those that are configured now."""
    credential_headers, refusals = _CredentialHeaders(proxy_headers), RefusedCredentialLog()

    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            try:
                outcome = authenticator.authenticate(request)
            except CredentialRefused as refused:
                refusals.log(refused, request.client_address)
                raise
            if isinstance(outcome, User):
                request.user = outcome
                request.drop_headers(credential_headers())
                return inner(request)
            if outcome is None:
                raise errors.unauthorized()
            return handle_later(request, outcome)

        async def handle_later(request: Request, asked: Awaitable[Outcome]) -> Answer:
            try:
                user = await asked
            except CredentialRefused as refused:
                refusals.log(refused, request.client_address)
                raise
            if user is None:
                raise errors.unauthorized()
            request.user = user
            request.drop_headers(credential_headers())
            return await resolve(inner(request))

        return handle

    return wrap


class _CredentialHeaders:
    """The headers with credentials, by the current configuration of front proxies."""

    def __init__(self, proxy_headers: Callable[[], ProxyHeaders]) -> None:
        self._proxy_headers = proxy_headers
        self._configured = proxy_headers()
        self._names = _credential_headers(self._configured)

    def __call__(self) -> HeaderNames:
        configured = self._proxy_headers()
        if configured is not self._configured:
            self._configured, self._names = configured, _credential_headers(configured)
        return self._names


def _credential_headers(configured: ProxyHeaders) -> HeaderNames:
    """As in kube-apiserver the default headers of proxies are removed also if others are configured."""
    both = (_STANDARD, configured)
    return HeaderNames(
        ["authorization", *(name for each in both for name in (*each.user, *each.uid, *each.group))],
        prefixes=dict.fromkeys(beginning for each in both for beginning in each.extra),
    )
