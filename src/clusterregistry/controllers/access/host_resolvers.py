"""Resolvers of the host cluster: a value in a Secret, or a token of a service account made for one audience.

The namespace stands in the rule and is never filled by a cluster, so that a rule is its own list of what is allowed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.names import name_errors
from clusterregistry.client import errors
from clusterregistry.client.credentials import MAX_FILE_BYTES, Credential
from clusterregistry.client.errors import printable
from clusterregistry.client.rest import Call, Client, GroupVersionResource, Object
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.retry import ONCE
from clusterregistry.controllers.access.configuration import SecretUse, TokenRequestUse
from clusterregistry.controllers.access.kubeconfig_user import user_credential
from clusterregistry.controllers.access.local_resolvers import bearer
from clusterregistry.controllers.access.resolver import PAUSE, Resolved, ResolveError, ResolveRequest

SECRET_SECONDS = 300.0
"""After which a Secret is read again. A credential that the cluster refuses is read again sooner."""

TIMEOUT = 10.0
MAX_CALLS = 16
"""Calls of the host cluster at once."""

_MAX_RESPONSE = 2 * MAX_FILE_BYTES
_SECRETS = GroupVersionResource("", "v1", "secrets")
_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
_WAITED_FOR_HOST = "the host cluster does not answer: check --host-kubeconfig and the network"


class HostCluster:
    """The cluster in which Secrets and service accounts are. Its client is made when it is needed."""

    def __init__(self, find_config: Callable[[], RestConfig | None]) -> None:
        self._find_config = find_config
        self._client: Client | None = None
        self._places = asyncio.Semaphore(MAX_CALLS)

    async def call(self, call: Call, *, described: str, right: str) -> Object:
        """The object that the host cluster answers with. Raises ResolveError.

        ``described`` is what is missing if it is not found, ``right`` what this program needs.
        """
        try:
            client = self._opened()
            async with self._places:
                return await client.call(call)
        except errors.NotFoundError:
            raise ResolveError(f"the host cluster has no {described}", gone=True, pause=PAUSE) from None
        except errors.ForbiddenError:
            raise ResolveError(f"the host cluster does not let this program {right}", pause=PAUSE) from None
        except (errors.ConnectError, errors.RequestTimeoutError, errors.DisconnectedError):
            raise ResolveError(_WAITED_FOR_HOST, pause=PAUSE) from None
        except (errors.ClientError, ValueError) as error:
            raise ResolveError(f"the host cluster: {printable(str(error), 200)}", pause=PAUSE) from None

    def _opened(self) -> Client:
        if self._client is None:
            config = self._find_config()
            if config is None:
                message = "there is no host cluster: run in one, or name it with --host-kubeconfig"
                raise ResolveError(message, pause=PAUSE)
            self._client = Client(config, retry=ONCE)  # the next round is the next attempt
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None


class SecretResolver:
    """A value in a Secret: one word is a token, everything else a kubeconfig, which must not have an exec entry."""

    def __init__(self, use: SecretUse, host: HostCluster) -> None:
        self._use, self._host = use, host

    async def resolve(self, request: ResolveRequest) -> Resolved:
        name, key = object_name(self._use.name, request), request.fill(self._use.key)
        shown = f"Secret {self._use.namespace}/{name}"
        path = _SECRETS.path(namespace=self._use.namespace, name=name)
        call = Call("GET", path, timeout=TIMEOUT, limit=_MAX_RESPONSE)
        secret = await self._host.call(call, described=shown, right=f"get {shown}")
        content = _value(secret, key)
        if content is None:
            raise ResolveError(f"{shown} has no {printable(key, 100)}", gone=True, pause=PAUSE)
        try:
            credential = await _parsed(content, key, request)
        except ResolveError as error:
            raise ResolveError(f"{shown}: {error}", pause=PAUSE) from None
        return Resolved(credential=credential, keep_for=SECRET_SECONDS)


class TokenRequestResolver:
    """A token of a service account, bound to an audience that the rule names: elsewhere it is worth nothing."""

    def __init__(self, use: TokenRequestUse, host: HostCluster) -> None:
        self._use, self._host = use, host

    async def resolve(self, request: ResolveRequest) -> Resolved:
        account, audience = object_name(self._use.service_account, request), request.fill(self._use.audience)
        shown = f"ServiceAccount {self._use.namespace}/{account}"
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [audience], "expirationSeconds": self._use.seconds},
        }
        path = _ACCOUNTS.path(namespace=self._use.namespace, name=account, subresource="token")
        call = Call("POST", path, body=body, timeout=TIMEOUT, limit=_MAX_RESPONSE)
        answer = await self._host.call(call, described=shown, right=f"create a token for {shown}")
        status = answer.get("status")
        token = status.get("token") if isinstance(status, dict) else None
        if not isinstance(status, dict) or not isinstance(token, str):
            raise ResolveError(f"the host cluster answered without a token for {shown}", pause=PAUSE)
        return Resolved(credential=bearer(token, source=f"the token of {shown}"), ends_at=_end(status))


def object_name(template: str, request: ResolveRequest) -> str:
    """The name of an object of the host cluster. Raises ResolveError."""
    name = request.fill(template)
    if name_errors(name):
        raise ResolveError("the cluster fills the name in the rule with something that is no name of an object")
    return name


def _value(secret: Object, key: str) -> bytes | None:
    data = secret.get("data")
    encoded = data.get(key) if isinstance(data, dict) else None
    try:
        return base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else None
    except (binascii.Error, ValueError):
        return None


async def _parsed(content: bytes, source: str, request: ResolveRequest) -> Credential:
    text = content.decode("ascii", "replace").strip()
    if len(text.split()) == 1 and not text.startswith("{"):
        return bearer(text, source=source)
    found = await user_credential(content, Path(source), spec=request.spec, read_file=_refuse_file, allow_exec=False)
    assert isinstance(found, Credential)  # without exec there is no command
    return found


def _refuse_file(_: str) -> bytes:
    raise ResolveError("the kubeconfig in a Secret must not name files")


def _end(status: dict[str, Any]) -> float | None:
    text = status.get("expirationTimestamp")
    try:
        return times.parse(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None
