"""Asking a webhook: the same question again when it may help, within a total time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from clusterregistry.apiserver.webhooks.config_file import Endpoint
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.transport import Call, Transport

PATIENCE = 30.0
"""Seconds for a question with all its tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait between tries: kube-apiserver's figures. The jitter keeps replicas from asking in step."""

    seconds: float = 0.5
    factor: float = 1.5
    jitter: float = 0.2
    tries: int = 5

    def pause(self, tried: int) -> float:
        """After ``tried`` tries, the first being 1."""
        spread = 1 + self.jitter * random.random()  # noqa: S311 - no secret
        return float(self.seconds * self.factor ** (tried - 1) * spread)


class Webhook:
    """One webhook. Made on the loop that uses it; to be closed at the end."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        backoff: Backoff | None = None,
        patience: float = PATIENCE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._endpoint = endpoint
        self._transport = Transport(
            endpoint.tls, server_name=endpoint.server_name, patience=patience, user_agent=endpoint.user_agent
        )
        self._backoff, self._patience, self._sleep = backoff or Backoff(), patience, sleep

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a document and answers the one that comes back. Raises CallFailed, and nothing else."""
        body = orjson.dumps(document)
        try:
            async with asyncio.timeout(self._patience):
                return await self._ask_again_and_again(body)
        except TimeoutError:
            raise CallFailed("no answer in time") from None

    async def _ask_again_and_again(self, body: bytes) -> dict[str, Any]:
        for tried in range(1, self._backoff.tries):
            try:
                return await self._ask_once(body)
            except CallFailed as error:
                if not error.transient:
                    raise
            await self._sleep(self._backoff.pause(tried))
        return await self._ask_once(body)

    async def _ask_once(self, body: bytes) -> dict[str, Any]:
        token = self._endpoint.token.read()
        return await self._transport.exchange(Call(url=self._endpoint.url, body=body, token=token))

    async def close(self) -> None:
        await self._transport.close()
