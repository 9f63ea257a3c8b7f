"""Calls of the host cluster: its authentication configuration, and reviews. All raise CallFailed, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.hostcluster import authentication_config
from clusterregistry.apiserver.hostcluster.in_cluster import Access, InCluster
from clusterregistry.apiserver.webhooks import config_file
from clusterregistry.apiserver.webhooks.errors import CallFailed
from clusterregistry.apiserver.webhooks.webhook import MAX_ANSWER, Webhook, bounded, call_failed
from clusterregistry.client import rest_config, watch
from clusterregistry.client.errors import ClientError, GoneError
from clusterregistry.client.rest import Call, Client, GroupVersionResource, ListOptions
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.retry import ONCE
from clusterregistry.client.watch import Event, WatchOptions

PATIENCE = 10.0
"""Seconds for a call, as in the library under kube-apiserver's extensions."""

WATCH_SECONDS = 60
SILENCE_SECONDS = WATCH_SECONDS + 15.0
"""After which a watch without a response, or without an event, counts as broken."""

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105 - a path
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

_CONFIGMAPS = GroupVersionResource("", "v1", "configmaps")
_REMEDIES = {
    401: "it does not accept our credentials",
    403: "our user lacks rights there: it needs the ClusterRole system:auth-delegator, and in the namespace "
    "kube-system the Role extension-apiserver-authentication-reader",
    404: "the object or the API is not there",
}


def host_config(access: Access, *, user_agent: str) -> RestConfig:
    """The resolved access to the host cluster. Raises OperatorError."""
    if isinstance(access, Path):
        return config_file.load(access, user_agent=user_agent, server="the host cluster")
    return _service_account(access, user_agent)


def _service_account(access: InCluster, user_agent: str) -> RestConfig:
    config = rest_config.service_account(
        host=access.host, port=access.port, user_agent=user_agent, files=access.files or rest_config.SERVICE_ACCOUNT
    )
    problems = rest_config.file_problems(
        certificate_authority=config.certificate_authority, token_file=config.token_file
    )
    if problems:
        raise OperatorError(
            f"the service account of this pod cannot be used: {'; '.join(problems)}",
            remedy="let the pod have one (automountServiceAccountToken), or give --kubeconfig",
        )
    return config


class ConfigMap:
    """The configmap with the authentication configuration. Used on one loop; close it at the end."""

    def __init__(self, config: RestConfig) -> None:
        self._client = Client(bounded(config, patience=SILENCE_SECONDS), retry=ONCE)
        self._configmaps = self._client.resource(_CONFIGMAPS, namespace=authentication_config.NAMESPACE)

    async def get(self) -> dict[str, Any]:
        path = self._configmaps.path(authentication_config.NAME)
        try:
            return await self._client.call(Call("GET", path, timeout=PATIENCE))
        except ClientError as error:
            raise _explained(call_failed(error)) from None

    async def watch(self, resource_version: str) -> AsyncGenerator[Event, None]:
        """The changes since a version, until the host cluster ends the watch or no longer has the version."""
        options = WatchOptions(
            selection=ListOptions(field_selector=f"metadata.name={authentication_config.NAME}"),
            resource_version=resource_version,
            bookmarks=False,
            seconds=WATCH_SECONDS,
            max_line=MAX_ANSWER,
        )
        try:
            async with contextlib.aclosing(watch.watch(self._configmaps, options)) as events:
                async for event in events:
                    yield event
        except GoneError:
            return
        except ClientError as error:
            raise _explained(call_failed(error)) from None

    async def close(self) -> None:
        await self._client.close()


class Reviews:
    """Requests reviews of one kind. Used on one loop; close it at the end."""

    def __init__(self, config: RestConfig, path: str, *, patience: float = PATIENCE) -> None:
        self._webhook = Webhook(config, path=path, patience=patience)

    async def ask(self, document: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return await self._webhook.ask(document)
        except CallFailed as error:
            raise _explained(error) from None

    async def close(self) -> None:
        await self._webhook.close()


def _explained(error: CallFailed) -> CallFailed:
    """The same failure, with its usual reason in a host cluster."""
    reason = _REMEDIES.get(error.status)
    return CallFailed(f"{error} ({reason})" if reason else str(error), status=error.status)


def for_users(error: CallFailed) -> str:
    """Why there is no decision, without the address of the host cluster, which users may not know."""
    return f"the host cluster does not say: {error}" if error.status else "the host cluster cannot be reached"
