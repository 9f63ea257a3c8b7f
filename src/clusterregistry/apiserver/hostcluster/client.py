"""Calls to the host cluster: objects are read and watched, reviews asked. All raise CallFailed, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from clusterregistry.apiserver.hostcluster.access import at
from clusterregistry.apiserver.webhooks.config_file import Endpoint
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.transport import Call, Transport
from clusterregistry.apiserver.webhooks.webhook import Webhook

PATIENCE = 10.0
"""Seconds for a call, as in the library under kube-apiserver's extensions."""

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_REMEDIES = {
    401: "it does not accept our credentials",
    403: "our user lacks rights there: it needs the ClusterRole system:auth-delegator, and in the namespace "
    "kube-system the Role extension-apiserver-authentication-reader",
    404: "what is asked for is not there",
}


class Objects:
    """Reads objects of the host cluster. Made on the loop that uses it; to be closed at the end."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._transport = Transport(
            endpoint.tls, server_name=endpoint.server_name, patience=PATIENCE, user_agent=endpoint.user_agent
        )

    async def get(self, path: str) -> dict[str, Any]:
        try:
            return await self._transport.exchange(self._call(path))
        except CallFailed as error:
            raise explained(error) from None

    async def watch(self, path: str, *, silence: float) -> AsyncGenerator[dict[str, Any], None]:
        """The events of a watch until the host ends it."""
        try:
            async with contextlib.aclosing(self._transport.documents(self._call(path), silence=silence)) as events:
                async for event in events:
                    yield event
        except CallFailed as error:
            raise explained(error) from None

    def _call(self, path: str) -> Call:
        return Call(url=at(self._endpoint, path).url, token=self._endpoint.token.read())

    async def close(self) -> None:
        await self._transport.close()


class Reviews:
    """Asks reviews of one kind. Made on the loop that uses it; to be closed at the end."""

    def __init__(self, endpoint: Endpoint, path: str, *, patience: float = PATIENCE) -> None:
        self._webhook = Webhook(at(endpoint, path), patience=patience)

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return await self._webhook.ask(document)
        except CallFailed as error:
            raise explained(error) from None

    async def close(self) -> None:
        await self._webhook.close()


def for_users(error: CallFailed) -> str:
    """Why there is no answer, for those who may not know where the host cluster is."""
    return f"the host cluster does not say: {error}" if error.status else "the host cluster cannot be reached"


def explained(error: CallFailed) -> CallFailed:
    """The same, with what it means here."""
    remedy = _REMEDIES.get(error.status)
    message = f"{error} ({remedy})" if remedy else str(error)
    return CallFailed(message, transient=error.transient, status=error.status)
