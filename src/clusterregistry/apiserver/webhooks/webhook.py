"""Calls of webhooks and of OpenID Connect issuers: JSON in, JSON out, over HTTPS. All raise CallFailed, nothing else.

The project's client follows no redirect, keeps no cookie, uses no proxy of the environment and requests no compressed
body. Here a response has at most MAX_ANSWER bytes, and messages of failures show nothing of it.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.client import errors
from clusterregistry.client.errors import ClientError
from clusterregistry.client.rest import Call, Client
from clusterregistry.client.rest_config import Pem, RestConfig
from clusterregistry.client.retry import ONCE, Backoff, RetryPolicy

PATIENCE = 30.0
"""Seconds for a call with all its attempts."""

MAX_ANSWER = 1 << 20
"""Bytes of a response. A review has a few hundred, a set of keys a few thousand."""

BACKOFF = Backoff(first=0.5, factor=1.5, jitter=0.2)
"""The figures of kube-apiserver. The jitter keeps replicas from calling at the same time."""

_CONNECTIONS = 64
_RESET = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED})
_URL_CHARACTERS = "/:@!$&'()*+,;=~?%"


class Webhook:
    """Posts documents to one webhook. Used on one loop; close it at the end."""

    def __init__(
        self,
        config: RestConfig,
        *,
        path: str = "",
        patience: float = PATIENCE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``path`` is below the URL of the configuration, which is the webhook itself without one."""
        slash = "/" if urlsplit(config.server).path.endswith("/") else ""
        self._path = path or slash
        self._client = Client(bounded(config, patience=patience), retry=_Retry(backoff=BACKOFF), sleep=sleep)

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Posts a document and returns that of the response; up to five attempts, see ``_Retry``."""
        try:
            return await self._client.call(Call("POST", self._path, body=document))
        except ClientError as error:
            raise call_failed(error) from None

    async def close(self) -> None:
        await self._client.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Retry(RetryPolicy):
    """Repeats what kube-apiserver repeats: 429, 5xx, a connection that broke; not where nothing listens."""

    def pause(self, error: ClientError, *, failures: int, repeatable: bool) -> float | None:  # noqa: ARG002 - reviews change nothing
        return self.backoff.pause(failures) if failures < self.attempts and _is_transient(error) else None


def _is_transient(error: ClientError) -> bool:
    if isinstance(error, errors.APIStatusError):
        return error.code == HTTPStatus.TOO_MANY_REQUESTS or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
    if isinstance(error, errors.DisconnectedError):
        return True
    return isinstance(error, errors.TransportError) and getattr(error.cause, "errno", None) in _RESET


class DocumentSource(Protocol):
    """Fetches JSON documents."""

    async def fetch(self, url: str) -> dict[str, Any]:
        """The JSON object at an https URL. Raises CallFailed, and nothing else."""
        ...


class Documents:
    """Fetches documents of an OpenID Connect issuer, whose keys may be on another server. Close it at the end."""

    def __init__(self, *, certificate_authority: Pem, user_agent: str, patience: float = PATIENCE) -> None:
        self._authority, self._user_agent, self._patience = certificate_authority, user_agent, patience
        self._clients: dict[str, Client] = {}

    async def fetch(self, url: str) -> dict[str, Any]:
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        try:
            client = self._client(f"{parts.scheme}://{parts.netloc}")
            return await client.call(Call("GET", quote(target, safe=_URL_CHARACTERS)))
        except ClientError as error:
            raise call_failed(error) from None

    def _client(self, server: str) -> Client:
        if server not in self._clients:
            config = RestConfig(server=server, user_agent=self._user_agent, certificate_authority=self._authority)
            self._clients[server] = Client(bounded(config, patience=self._patience), retry=ONCE)
        return self._clients[server]

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()


def bounded(config: RestConfig, *, patience: float) -> RestConfig:
    """The configuration with the limits of this package. ``patience``: seconds for a call."""
    return replace(
        config,
        timeout=patience,
        connect_timeout=patience,
        max_response_bytes=MAX_ANSWER,
        max_connections=_CONNECTIONS,
    )


def call_failed(error: ClientError) -> CallFailed:
    """The failure without any text of the server: users read it."""
    match error:
        case errors.APIStatusError():
            return CallFailed(f"it answers with status {error.code}", status=error.code)
        case errors.RedirectError():
            message = f"it answers with a redirect ({error.status}), which is not followed"
            return CallFailed(message, status=error.status)
        case errors.ResponseTooLargeError():
            return CallFailed(f"its answer is larger than {error.limit} bytes")
        case errors.MalformedResponseError() if error.status:
            return CallFailed("its answer is no JSON object of a usual depth")
        case errors.ConnectTimeoutError() | errors.RequestTimeoutError():
            return CallFailed("no answer in time")
        case _:
            return CallFailed(str(error))
