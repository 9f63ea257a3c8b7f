"""An issuer without a network, for what is about tokens alone."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any

from clusterregistry.apiserver.authn.oidc.authenticator import IssuedTokens
from clusterregistry.apiserver.authn.oidc.issuer import Issuer
from clusterregistry.apiserver.authn.oidc.settings import IssuerSettings
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.webhooks.errors import CallFailed
from tests.remote_servers import SigningKey, published, rsa_key, signed

URL = "https://issuer.example.com"


class Clock:
    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


class Published:
    """What an issuer publishes, and how often it was asked."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys = list(keys)
        self.document: dict[str, Any] = {"issuer": URL, "jwks_uri": f"{URL}/keys"}
        self.failing = False
        self.asked: list[str] = []

    async def fetch(self, url: str) -> dict[str, Any]:
        self.asked.append(url.removeprefix(URL))
        if self.failing:
            raise CallFailed("out of reach")
        return {"keys": list(self.keys)} if url.endswith("/keys") else self.document

    def fetches(self) -> int:
        return self.asked.count("/keys")


class Party:
    """A server with one issuer."""

    def __init__(self, *keys: dict[str, Any], key: SigningKey | None = None, **settings: Any) -> None:
        self.key: SigningKey = key or rsa_key()
        self.published = Published(*(keys or (published(self.key, kid="one"),)))
        self.clock = Clock()
        chosen = {"url": URL, "client_id": "registry", **settings}
        self.settings = IssuerSettings(**chosen)
        self.issuer = Issuer(self.settings, self.published, clock=self.clock, sleep=self._sleep)
        self.slept: list[float] = []
        self.tokens = IssuedTokens(self.settings, self.issuer, clock=self.clock)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.now += seconds
        self.published.failing = False

    async def ready(self) -> Party:
        await self.issuer._find()
        return self

    def token(self, *, kid: str = "one", **claims: Any) -> str:
        return signed({"iss": URL, **claims}, self.key, kid=kid)

    async def user_of(self, token: str) -> User | None:
        outcome = self.tokens.user_of(token)
        return await outcome if isinstance(outcome, Awaitable) else outcome


async def ready(*keys: dict[str, Any], **settings: Any) -> Party:
    return await Party(*keys, **settings).ready()
