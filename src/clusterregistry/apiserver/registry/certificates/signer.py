"""Runs the controllers of CertificateSigningRequests: one signs those that are approved, one removes old ones.

Several replicas may do so at once: a write is made only if the request is still as it was when the certificate was
issued for it, so that the first certificate stays.
"""

from __future__ import annotations

import asyncio
import binascii
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from clusterregistry.api.certificates.v1.types import APPROVED, CLIENT_SIGNER, DENIED, FAILED
from clusterregistry.api.certificates.v1.validation import conditions_of
from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.base64_text import content_of
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.pki import files
from clusterregistry.apiserver.registry.certificates.cleaner import Cleaner
from clusterregistry.apiserver.registry.rbac.bootstrap import ServerWriter
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import Event
from clusterregistry.apiserver.storage.object_bytes import decoded
from clusterregistry.apiserver.tasks import run_in_background

if TYPE_CHECKING:
    from clusterregistry.apimachinery.certificates import Authority

MANAGER = "csrsigning-kube-apiserver-client"
"""The field manager, after kube-controller-manager's controller."""

LIFETIME = 365 * 86400.0
"""Seconds: the longest validity of a certificate, as --cluster-signing-duration of kube-controller-manager."""

_RETRY_INTERVAL = 5.0
"""Seconds between two attempts when the storage cannot be written."""

_REASONS_OF_ONE_REQUEST = ("NotFound", "Invalid", "RequestEntityTooLarge", "StorageReadError")
"""Reasons of errors that concern one request, and not the storage."""

_NO_AUTHORITY = (
    "approved requests for client certificates are not signed: this server has no authority of its own for clients. "
    "What to do: sign with the authority of --client-ca-file, or start with --generate-admin"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OwnAuthority:
    """The authority of the server, which signs the certificates of users, in its files."""

    certificate: Path
    key: Path

    def read(self) -> Authority:
        """The authority as it is now: its files may be replaced while the server runs. Raises CertificateError."""
        from clusterregistry.apimachinery import certificates  # noqa: PLC0415 - slow import, for a signature alone

        remedy = f"restore {self.certificate} and {self.key} from a backup"
        content, private = files.read(self.certificate), files.read(self.key)
        if content is None or private is None:
            missing = self.certificate if content is None else self.key
            raise CertificateError(f"{missing} is missing, and a certificate has to be signed", remedy=remedy)
        held = certificates.certificate(self.certificate, content, remedy=remedy)
        key = certificates.key(self.key, private, remedy=remedy)
        certificates.require_authority(self.certificate, held, remedy=remedy)
        certificates.require_match(self.certificate, held, key, remedy=remedy)
        return certificates.Authority(held, key)


@contextlib.asynccontextmanager
async def run_signer(
    requests: ServerWriter,
    authority: OwnAuthority | None,
    *,
    lifetime: float = LIFETIME,
    pause: Callable[[], float] = lambda: 0.0,
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[None]:
    """Signs approved requests of the signer ``kubernetes.io/kube-apiserver-client`` within the block.

    ``requests`` writes the subresource ``status`` of CertificateSigningRequests. ``authority`` is the authority in the
    server's own files, None where the server accepts no client certificates of it: then nothing is signed, and the log
    says so once. ``lifetime`` is the longest validity in seconds. ``pause`` are seconds from an approval to the
    signature, for replicas that let another one go first. Old requests are removed in any case.

    Begins with all stored requests. A storage that does not answer delays it, and prevents no start.
    """
    controller = SigningController(requests, authority, lifetime=lifetime, pause=pause, clock=clock)
    cleaner = Cleaner(requests.store, clock=clock)
    try:
        async with run_in_background(controller.run()), run_in_background(cleaner.run()):
            yield
    finally:
        controller.close()


class SigningController:
    """Signs approved requests. It subscribes to changes of requests until ``close``."""

    def __init__(
        self,
        requests: ServerWriter,
        authority: OwnAuthority | None,
        *,
        lifetime: float = LIFETIME,
        pause: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._requests, self._authority = requests, authority
        self._lifetime, self._pause, self._clock = lifetime, pause, clock
        self._changed = asyncio.Event()
        self._keys: dict[str, None] = {}
        """The requests that changed, in order."""
        self._is_complete = False
        """Whether ``_keys`` has every request that may have to be signed."""
        self._reported = ""
        """Why nothing can be signed, as the log says."""
        store = self._store = requests.store
        self._subscription = store.storage.subscribe(store.prefix, self._receive, interrupted=self._begin_again)

    def close(self) -> None:
        self._subscription.close()

    async def run(self) -> None:
        """Settles after every change of a request, until it is cancelled."""
        while True:
            try:
                self._changed.clear()
                await self.settle()
                await self._changed.wait()
                await asyncio.sleep(self._pause())
            except (APIError, StorageError) as error:
                _log.warning("requests for certificates cannot be signed now: %s", error)
                await asyncio.sleep(_RETRY_INTERVAL)

    async def settle(self) -> None:
        """Signs all approved requests that have no certificate yet. Raises APIError and StorageError."""
        if not self._is_complete:
            page = await self._store.storage.list(self._store.prefix, revision=self._store.storage.revision)
            self._keys |= {kv.key.removeprefix(self._store.prefix): None for kv in page.items}
            self._is_complete = True
        while self._keys:
            key = next(iter(self._keys))
            del self._keys[key]  # before it is handled: a change meanwhile adds it again
            try:
                await self._handle(key)
            except (APIError, StorageError):
                self._keys[key] = None
                raise
            except Exception:  # noqa: BLE001 - a mistake of ours with one request must not keep others unsigned
                _log.exception("the request for a certificate %r cannot be signed", key)

    async def _handle(self, key: str) -> None:
        kv = self._store.storage.get_stale(self._store.prefix + key)
        request = decoded(kv) if kv else None
        if request is None or not is_to_be_signed(request):
            return
        if self._authority is None:
            self._report(_NO_AUTHORITY)
            return
        try:
            status = await asyncio.to_thread(self._issued, self._authority, request)
        except CertificateError as error:
            self._report(f"approved requests for client certificates are not signed: {error}. {error.remedy}")
            return
        await self._write(key, request, status)

    def _issued(self, authority: OwnAuthority, request: Object) -> Object:
        """The fields that signing sets in the status: a certificate, or a condition that says why there is none."""
        from clusterregistry.apiserver.registry.certificates import issuance  # noqa: PLC0415 - slow import

        spec, now = request["spec"], self._clock()
        terms = issuance.Terms(usages=spec.get("usages", ()), seconds=spec.get("expirationSeconds"))
        data = content_of(spec["request"] or "") or b""
        try:
            pem = issuance.issue(data, terms, authority=authority.read(), lifetime=self._lifetime, now=now)
        except issuance.UnsuitableRequestError as error:
            failed = {
                "type": FAILED,
                "status": "True",
                "reason": "SignerValidationFailure",
                "message": str(error),
                "lastUpdateTime": times.render(datetime.fromtimestamp(now, UTC)),
            }
            return {"conditions": [*conditions_of(request), failed]}
        return {"certificate": binascii.b2a_base64(pem, newline=False).decode()}

    async def _write(self, key: str, request: Object, status: Object) -> None:
        def signed(present: Object) -> Object:
            """The request as it is now with the new fields, if it is still the one that was signed."""
            is_same = present["metadata"]["uid"] == request["metadata"]["uid"]
            unchanged = is_same and present["status"] == request["status"]
            return {**present, "status": present["status"] | status} if unchanged else present

        try:
            await self._requests.change(key, signed, manager=MANAGER)
        except APIError as error:
            if error.reason not in _REASONS_OF_ONE_REQUEST:
                raise
            if error.reason != "NotFound":
                _log.error("the certificate for the request %r is not stored: %s", key, error)

    def _report(self, text: str) -> None:
        """Logs why nothing can be signed, once for each reason."""
        if text != self._reported:
            self._reported = text
            _log.warning("%s", text)

    def _receive(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.current is not None:
                self._keys[event.key.removeprefix(self._store.prefix)] = None
        self._changed.set()

    def _begin_again(self) -> None:
        """Events may have been missed."""
        self._is_complete = False
        self._changed.set()


def is_to_be_signed(request: Object) -> bool:
    """Whether a request is approved for this signer, and neither signed nor failed yet."""
    types = {each["type"] for each in conditions_of(request) if each["type"] != FAILED or each["status"] == "True"}
    return (
        request["spec"]["signerName"] == CLIENT_SIGNER
        and not request["status"].get("certificate")
        and APPROVED in types
        and not types & {DENIED, FAILED}
    )
