"""An issuer's keys as they are now: found at start, fetched again when a token names one that is not known.

While the issuer does not answer, the keys that it had are good. Strangers with invented keys cannot make us call it
more than once in a few seconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from clusterregistry.apiserver.authn.oidc.keys import KeySet, read_keys
from clusterregistry.apiserver.authn.oidc.settings import IssuerSettings
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.health_state import State
from clusterregistry.apiserver.webhooks.singleflight import Questions
from clusterregistry.apiserver.webhooks.transport import Call, Caller

log = logging.getLogger(__name__)

REFETCH_SECONDS = 5.0
"""The least time between two fetches that tokens cause."""

RETRY_SECONDS = 10.0
"""Between two tries to find the issuer at start, as in kube-apiserver."""


class Issuer:
    """Somebody whose tokens are believed. ``start`` it on the loop that uses it, ``close`` it at the end."""

    def __init__(
        self,
        settings: IssuerSettings,
        caller: Caller,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.keys = KeySet()
        self._settings, self._caller, self._clock, self._sleep = settings, caller, clock, sleep
        self._keys_url = ""
        self._fetched_at = float("-inf")
        self._questions: Questions[str, None] = Questions()
        self._finding: asyncio.Task[None] | None = None
        self._state = State(
            f"the OpenID Connect issuer {settings.url}",
            consequence="only tokens signed with keys known before are good",
        )

    def start(self) -> None:
        """Begins to look for the issuer, and returns at once: a server starts also while its issuer is down."""
        self._finding = asyncio.get_running_loop().create_task(self._find())

    async def close(self) -> None:
        if self._finding is not None:
            self._finding.cancel()
            await asyncio.gather(self._finding, return_exceptions=True)
        await self._questions.close()

    async def _find(self) -> None:
        while not self.keys:
            await self._fetch()
            if not self.keys:
                await self._sleep(RETRY_SECONDS)

    async def refetch(self) -> None:
        """Fetches the keys again unless that was just done, or they are still being looked for."""
        due = bool(self.keys) and self._clock() - self._fetched_at >= REFETCH_SECONDS
        if due or self._questions.under_way:
            await self._questions.ask("keys", self._fetch)

    async def _fetch(self) -> None:
        self._fetched_at = self._clock()
        try:
            self._keys_url = self._keys_url or await self._discover()
            document = await self._caller.exchange(Call(url=self._keys_url))
            if not self.keys.is_of(document):
                self.keys = read_keys(document, self._settings.algorithms)
                log.info("the OpenID Connect issuer %s has %d keys", self._settings.url, len(self.keys))
        except (CallFailed, ValueError) as error:
            self._state.failed(error)
        else:
            self._state.worked()

    async def _discover(self) -> str:
        """Where the keys are. Raises CallFailed."""
        document = await self._caller.exchange(Call(url=self._settings.discovery_url))
        if document.get("issuer") != self._settings.url:
            raise CallFailed(f"it calls itself {document.get('issuer')!r}, --oidc-issuer-url must be exactly that")
        url = document.get("jwks_uri")
        if not isinstance(url, str) or not url.startswith("https://"):
            raise CallFailed("its jwks_uri is no https URL")
        return url
