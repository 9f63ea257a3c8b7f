"""Renews the certificate of an agent with a new key, before it ends, and replaces its kubeconfig.

The kubeconfig is a file that the agent may write, or a Secret of the member that is mounted into its pod. Which one of
several processes renews does no harm: each makes a certificate of its own, and the last one stays.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clusterregistry.agent import identity
from clusterregistry.agent.certificate import request_certificate
from clusterregistry.agent.identity import KubeconfigIdentity
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client import errors
from clusterregistry.client.certificate_request import validity
from clusterregistry.client.rest import Client, GroupVersionResource, PatchType, WriteOptions
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.retry import Backoff

EARLIEST, LATEST = 0.7, 0.8
"""The part of its life after which a certificate is renewed, at random: a fleet that was joined at once parts."""

_LOOK = 300.0
"""Seconds between two looks at the certificate: another process, or a person, may have replaced it."""

_BACKOFF = Backoff(first=10.0, longest=600.0, jitter=0.5)
_SIGNATURE = 60.0
_SHOWN_AFTER = 150.0
"""Seconds for which a mounted Secret may show the former content: the kubelet's interval, and its cache."""

_SECRETS = GroupVersionResource("", "v1", "secrets")
_log = logging.getLogger(__name__)


class Place(Protocol):
    """Where the kubeconfig of an agent is kept."""

    async def save(self, content: bytes) -> None:
        """Replaces it atomically. Raises OperatorError and ClientError."""
        ...


@dataclass(frozen=True, slots=True)
class FilePlace:
    path: Path

    async def save(self, content: bytes) -> None:
        await asyncio.to_thread(identity.write, self.path, content)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPlace:
    """A Secret of the member."""

    member: Client
    namespace: str
    name: str
    key: str

    async def save(self, content: bytes) -> None:
        data = {"data": {self.key: base64.b64encode(content).decode()}}
        secrets = self.member.resource(_SECRETS, namespace=self.namespace)
        options = WriteOptions(field_manager="clusterregistry-agent")
        await secrets.patch(self.name, data, options, patch_type=PatchType.MERGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """Whose certificate is renewed, and how."""

    cluster: str
    config: RestConfig
    """The access to the registry."""
    identity: KubeconfigIdentity
    place: Place
    seconds: int
    """The validity to ask for."""


class Renewal:
    """Looks after one certificate."""

    def __init__(
        self,
        client: Client,
        renewed: Renewed,
        *,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``client`` speaks to the registry as the agent."""
        self._client, self._renewed, self._clock, self._sleep = client, renewed, clock, sleep
        self._share = random.uniform(EARLIEST, LATEST)  # noqa: S311 - no secret
        self._failures = 0

    async def run(self) -> None:
        """Renews again and again, until it is cancelled."""
        while True:
            if (pause := self.due()) > 0:
                await self._sleep(min(pause, _LOOK))
            else:
                await self._sleep(await self._attempt())

    def due(self) -> float:
        """The seconds until the certificate is to be renewed."""
        begin, end = validity(self._renewed.identity.current().certificate)
        return begin + self._share * (end - begin) - self._clock()

    async def _attempt(self) -> float:
        """Renews the certificate, and returns the seconds until the next look."""
        before = self._renewed.identity.current()
        try:
            await self.renew()
        except (errors.ClientError, OperatorError) as error:
            self._failures += 1
            self._report(error, validity(before.certificate)[1] - self._clock())
            return _BACKOFF.pause(self._failures)
        self._failures = 0
        return 0.0 if self._renewed.identity.current() != before else _SHOWN_AFTER

    async def renew(self) -> None:
        """Makes a new key and its certificate, and stores both. Raises ClientError and OperatorError."""
        renewed = self._renewed
        made = await request_certificate(self._client, renewed.cluster, seconds=renewed.seconds, patience=_SIGNATURE)
        await renewed.place.save(identity.replaced(renewed.config, made))
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(validity(made.certificate)[1]))
        _log.info("the certificate of the agent is renewed; the new one ends at %s", end)

    def _report(self, error: Exception, left: float) -> None:
        if left > 0:
            _log.warning("the certificate of the agent, which ends in %.0f s, is not renewed yet: %s", left, error)
        else:
            _log.error(
                "the certificate of the agent has ended: %s. What to do: join again, with a new bootstrap token: "
                "clusterregistry join-token create %s",
                error,
                self._renewed.cluster,
            )
