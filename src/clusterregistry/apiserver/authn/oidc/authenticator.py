"""Authenticates the tokens of an OpenID Connect issuer."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from clusterregistry.apiserver.authn.bearer import fingerprint, usable
from clusterregistry.apiserver.authn.oidc import claims
from clusterregistry.apiserver.authn.oidc.claims import Refused, Token
from clusterregistry.apiserver.authn.oidc.issuer import Issuer, KeySet, check_header
from clusterregistry.apiserver.authn.oidc.settings import IssuerSettings
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.webhooks.call_cache import TTLCache

log = logging.getLogger(__name__)

MAX_CACHED = 8192
LOG_SECONDS = 10.0
"""The same refusal is logged once in this time: unauthenticated clients must not fill a disk."""


class IssuedTokens:
    """A source of tokens: those of one issuer. Invalid tokens are left to the next source, too.

    A valid token is verified once: its user is cached until the token expires or the issuer's keys change.
    """

    def __init__(self, settings: IssuerSettings, issuer: Issuer, *, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._issuer, self._clock = settings, issuer, clock
        self._keys = issuer.keys
        self._users: TTLCache[bytes, User] = TTLCache(MAX_CACHED, clock=clock)
        self._logged: TTLCache[str, bool] = TTLCache(64)

    def user_of(self, token: str) -> User | Awaitable[User | None] | None:
        if not usable(token):
            return None
        if self._keys is not self._issuer.keys:
            self._keys = self._issuer.keys
            self._users.clear()  # a key may have been revoked
        user = self._users.get(fingerprint(token))
        return user if user is not None else self._look_at(token)

    def _look_at(self, text: str) -> User | Awaitable[User | None] | None:
        token = claims.parse(text)
        if token is None or token.issuer != self._settings.url:
            return None
        try:
            # Cheap checks first: no signature is verified for a token that is invalid anyway.
            check_header(token, self._settings.algorithms)
            claims.check(token.claims, self._settings, now=self._clock())
            if self._keys.has_signed(token):
                return self._recognised(token)
        except Refused as why:
            self._log(str(why))
            return None
        return self._look_again(token, self._keys)

    async def _look_again(self, token: Token, tried: KeySet) -> User | None:
        """Verifies with the issuer's newest keys: the token may be signed with a new one."""
        try:
            await self._issuer.refetch()
            if self._issuer.keys is not tried and self._issuer.keys.has_signed(token):
                return self._recognised(token)
            self._log("none of the issuer's keys has signed it" if self._issuer.keys else "the issuer is not found yet")
        except Refused as why:
            self._log(str(why))
        return None

    def _recognised(self, token: Token) -> User:
        ends = claims.check(token.claims, self._settings, now=self._clock())
        user = claims.user_of(token.claims, self._settings)
        self._users.keep(fingerprint(token.text), user, until=ends)
        return user

    def refusal(self, text: str) -> str:
        """The reason why a token is refused. Verifies the token again, as the reason is not kept."""
        token = claims.parse(text) if usable(text) else None
        if token is None:
            return "it is no JWT as OpenID Connect has them"
        if token.issuer != self._settings.url:
            return "its issuer is not that of --oidc-issuer-url"
        try:
            check_header(token, self._settings.algorithms)
            claims.check(token.claims, self._settings, now=self._clock())
            if self._issuer.keys.has_signed(token):
                claims.user_of(token.claims, self._settings)
        except Refused as why:
            return f"OpenID Connect: {why}"
        return "OpenID Connect: none of the issuer's keys has signed it"

    def _log(self, why: str) -> None:
        if not self._logged.get(why):
            self._logged.keep_for(why, True, seconds=LOG_SECONDS)
            log.info("a token of the OpenID Connect issuer is refused: %s", why)
