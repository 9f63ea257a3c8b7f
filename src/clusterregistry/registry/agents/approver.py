"""Approves the requests of agents and joining members for the certificate of their own user, and no others.

What the admission has checked is checked again: a token may have been deleted since, and other programs write to etcd,
too. A request that is not approved waits for a person, as every request does.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Sequence

from clusterregistry.api.certificates.v1.types import APPROVED, CLIENT_SIGNER
from clusterregistry.api.certificates.v1.validation import conditions_of
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.controllers.work_queue import WorkQueue
from clusterregistry.apiserver.registry.rbac.bootstrap import ServerWriter
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import Event
from clusterregistry.apiserver.storage.object_bytes import decoded
from clusterregistry.registry.agents.admission import exists
from clusterregistry.registry.agents.certificate_request import request_problem
from clusterregistry.registry.agents.identity import Identities

MANAGER = "agent-approver"
_AT_ONCE = 20
_MOST_RETRIES = 10
_PARSER = "clusterregistry.apimachinery.certificates"

_log = logging.getLogger(__name__)


class AgentApprover:
    """Runs in every replica, and all may act: the second finds the condition there."""

    def __init__(self, requests: ServerWriter, *, clusters: Store, identities: Identities) -> None:
        """``requests`` writes the approval of CertificateSigningRequests."""
        self._requests, self._clusters, self._identities = requests, clusters, identities
        self._store = requests.store
        self._queue: WorkQueue[str] = WorkQueue()
        self._is_complete = False
        """Whether the queue has had every stored request."""
        self._subscription = self._store.storage.subscribe(
            self._store.prefix, self._receive, interrupted=self._begin_again
        )

    def close(self) -> None:
        self._subscription.close()

    def _receive(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.current is not None:
                self._queue.add_now(event.key.removeprefix(self._store.prefix))

    def _begin_again(self) -> None:
        """Events may have been missed."""
        self._is_complete = False
        self._queue.add_now("")

    async def run(self) -> None:
        """Begins with all stored requests, and works until it is cancelled. Raises StorageError."""
        self._begin_again()
        while True:
            for key in await self._queue.take(_AT_ONCE):
                if not self._is_complete:
                    await self._add_all()
                if key:
                    await self._try(key)

    async def _add_all(self) -> None:
        page = await self._store.storage.list(self._store.prefix, revision=self._store.storage.revision)
        for kv in page.items:
            self._queue.add_now(kv.key.removeprefix(self._store.prefix))
        self._is_complete = True

    async def _try(self, key: str) -> None:
        try:
            await self.handle(key)
        except (APIError, StorageError) as error:
            if self._queue.retry(key) > _MOST_RETRIES:
                _log.warning("the request of an agent %r cannot be approved now: %s", key, error)
        else:
            self._queue.done(key)

    async def handle(self, key: str) -> None:
        """Approves one request, if that is to be. Raises APIError if the storage cannot be written."""
        kv = self._store.storage.get_stale(self._store.prefix + key)
        request = decoded(kv) if kv else None
        if request is None or (message := await self._approval(request)) is None:
            return
        uid = request["metadata"]["uid"]
        condition = {"type": APPROVED, "status": "True", "reason": "AutoApproved", "message": message}

        def approved(present: Object) -> Object:
            if present["metadata"]["uid"] != uid or conditions_of(present):
                return present
            return {**present, "status": {**present["status"], "conditions": [condition]}}

        try:
            await self._requests.change(key, approved, manager=MANAGER)
        except APIError as error:
            if error.reason != "NotFound":
                raise

    async def _approval(self, request: Object) -> str | None:
        """Why a request is approved; None if it is not for this controller."""
        spec = request["spec"]
        if spec.get("signerName") != CLIENT_SIGNER or conditions_of(request) or request["status"].get("certificate"):
            return None
        username = spec.get("username", "")
        identity = self._identities.of_name(username, spec.get("groups") or ())
        if identity is None or not identity.cluster:
            return None
        await asyncio.to_thread(importlib.import_module, _PARSER)  # 100 ms the first time
        if problem := request_problem(request, identity.cluster):
            _log.warning("a request of %s waits for a person: %s", username, problem)
            return None
        if not await exists(self._clusters, identity.cluster):
            return None
        return f"The agent of cluster {identity.cluster}, requested by {username}."
