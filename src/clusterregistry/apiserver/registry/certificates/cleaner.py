"""Removes old CertificateSigningRequests, as kube-controller-manager's csrcleaner does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from clusterregistry.api.certificates.v1.pem_blocks import pem_blocks
from clusterregistry.api.certificates.v1.types import APPROVED, DENIED, FAILED
from clusterregistry.api.certificates.v1.validation import conditions_of
from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.base64_text import content_of
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.registry.deletion import DeleteOptions, Preconditions
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.object_bytes import decoded

_INTERVAL = 3600.0
"""Seconds between two passes over all requests."""

_DECIDED_FOR = 3600.0
"""Seconds after which a request that was signed, denied or failed is removed."""

_PENDING_FOR = 24 * 3600.0
"""Seconds after which a request is removed that was neither approved nor denied."""

_OF_ANOTHER_WRITER = ("NotFound", "Conflict")
"""Reasons of errors where another replica was first, or the request has changed."""

_log = logging.getLogger(__name__)


class Cleaner:
    """Removes old requests of all signers."""

    def __init__(self, store: Store, *, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock

    async def run(self) -> None:
        """Cleans up every hour, and at once at the start, until it is cancelled."""
        while True:
            try:
                await self.clean_up()
            except (APIError, StorageError) as error:
                _log.warning("old requests for certificates cannot be removed now: %s", error)
            await asyncio.sleep(_INTERVAL)

    async def clean_up(self) -> None:
        """Removes the requests that are too old. Raises APIError and StorageError."""
        page = await self._store.storage.list(self._store.prefix, revision=self._store.storage.revision)
        for kv in page.items:
            request, now = decoded(kv), self._clock()
            reason = outdated(request, now=now)
            if not reason and request["status"].get("certificate"):
                reason = await asyncio.to_thread(_ended, request, now=now)
            if reason:
                await self._remove(kv.key.removeprefix(self._store.prefix), request, reason)

    async def _remove(self, key: str, request: Object, reason: str) -> None:
        metadata = request["metadata"]
        wanted = Preconditions(uid=metadata["uid"], resource_version=metadata["resourceVersion"])
        try:
            await self._store.delete(key, DeleteOptions(preconditions=wanted))
        except APIError as error:
            if error.reason not in _OF_ANOTHER_WRITER:
                raise
        else:
            _log.info("the request for a certificate %r is removed: %s", key, reason)


def outdated(request: Object, *, now: float) -> str:
    """Why a request is too old to be kept, by its times alone; empty if it is not."""
    conditions = conditions_of(request)
    if not conditions:
        is_old = _is_older(request["metadata"].get("creationTimestamp"), _PENDING_FOR, now=now)
        return "it was neither approved nor denied in time" if is_old else ""
    for condition in conditions:
        kind = condition["type"]
        is_done = kind in (DENIED, FAILED) or (kind == APPROVED and bool(request["status"].get("certificate")))
        if is_done and _is_older(condition.get("lastUpdateTime"), _DECIDED_FOR, now=now):
            return f"it was {kind.lower()} long ago"
    return ""


def _ended(request: Object, *, now: float) -> str:
    """Why an approved request with a certificate is too old: the certificate has ended."""
    from cryptography import x509  # noqa: PLC0415 - slow import

    block = next(pem_blocks(content_of(request["status"]["certificate"]) or b""), None)
    if block is None or not conditions_of(request, APPROVED):
        return ""
    try:
        end = x509.load_der_x509_certificate(block.content).not_valid_after_utc
    except ValueError:
        return ""
    return "its certificate has ended" if datetime.fromtimestamp(now, UTC) > end else ""


def _is_older(text: str | None, seconds: float, *, now: float) -> bool:
    if not text:
        return False
    try:
        return now - times.parse(text).timestamp() > seconds
    except ValueError:
        return False
