"""Establishes who is asking. Raises 401, and has credentials that are refused logged.

What a client said of itself ends here: credentials, and the headers of front proxies whether they counted or not, are
taken from the request, so that nobody further inwards can mistake or leak them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.interface import Authenticator, Outcome
from clusterregistry.apiserver.authn.refused import CredentialRefused
from clusterregistry.apiserver.authn.request_header import ProxyHeaders
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.filters.interface import Filter, Handler, answered
from clusterregistry.apiserver.filters.refused_credentials import RefusedCredentials
from clusterregistry.apiserver.http.header_names import HeaderNames
from clusterregistry.apiserver.http.request import Request
from clusterregistry.apiserver.http.response import Answer, Reply

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
                request.user = await asked
            except CredentialRefused as refused:
                refusals.note(refused, request.client_address)
                raise
            if request.user is None:
                raise errors.unauthorized()
            request.drop_headers(claims())
            return await answered(inner(request))

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
        beginnings=dict.fromkeys(beginning for each in both for beginning in each.extra),
    )
