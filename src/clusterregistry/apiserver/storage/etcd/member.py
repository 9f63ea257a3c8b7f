"""One server of an etcd, and the connections to it. What goes wrong comes out as an RpcError."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.etcd import messages
from clusterregistry.apiserver.storage.etcd.http2.channel import Channel
from clusterregistry.apiserver.storage.etcd.http2.frames import Metadata
from clusterregistry.apiserver.storage.etcd.http2.streams import Stream, unavailable
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings

_METHODS: dict[str, tuple[str, Any]] = {
    "range": ("/etcdserverpb.KV/Range", messages.RangeResponse.FromString),
    "txn": ("/etcdserverpb.KV/Txn", messages.TxnResponse.FromString),
    "compact": ("/etcdserverpb.KV/Compact", messages.CompactionResponse.FromString),
    "grant": ("/etcdserverpb.Lease/LeaseGrant", messages.LeaseGrantResponse.FromString),
    "revoke": ("/etcdserverpb.Lease/LeaseRevoke", messages.LeaseRevokeResponse.FromString),
    "authenticate": ("/etcdserverpb.Auth/Authenticate", messages.AuthenticateResponse.FromString),
    "status": ("/etcdserverpb.Maintenance/Status", messages.StatusResponse.FromString),
}
_WATCH = "/etcdserverpb.Watch/Watch"
_PROLONG = "/etcdserverpb.Lease/LeaseKeepAlive"


class Member:
    """Connects when it is first used, and again whenever the connection is lost."""

    def __init__(self, endpoint: str, tls: ssl.SSLContext | None) -> None:
        self.endpoint = endpoint
        # Calls do not wait behind what a watch has to tell.
        self._calls, self._watches = Channel(endpoint, tls), Channel(endpoint, tls)

    async def call(self, name: str, request: Any, *, metadata: Metadata, seconds: float) -> Any:
        """The answer to one request, a message or its bytes, sent once."""
        path, read = _METHODS[name]
        content = request if isinstance(request, bytes) else request.SerializeToString()
        answer = await self._calls.call(path, content, metadata=metadata, seconds=seconds)
        try:
            return read(answer)
        except DecodeError as error:
            raise unavailable(f"its answer cannot be read: {error}") from None

    async def watch(self, metadata: Metadata, request: Any) -> Stream:
        """A stream of watch requests, of which this is the first, and answers; to be cancelled by who asked for it."""
        return await self._watches.stream(_WATCH, request.SerializeToString(), metadata=metadata)

    async def prolong(self, metadata: Metadata, request: bytes) -> Stream:
        """A stream of requests to prolong a lease, of which this is the first, and answers; else as ``watch``."""
        return await self._calls.stream(_PROLONG, request, metadata=metadata)

    async def close(self) -> None:
        await asyncio.gather(self._calls.close(), self._watches.close())


def tls_context(settings: EtcdSettings) -> ssl.SSLContext | None:
    """How to be sure of a member, and it of us. Raises StorageUnavailable for files that are of no use."""
    if not settings.tls:
        return None
    for path in (settings.ca_file, settings.certificate_file, settings.key_file):
        _check_readable(path)
    try:
        # With a file only that authority counts, without one those of the system.
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.certificate_file:
            # The password keeps OpenSSL from asking for one at the terminal.
            context.load_cert_chain(settings.certificate_file, settings.key_file, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise StorageUnavailable(
            f"our certificates for etcd are of no use ({error})",
            remedy="correct --etcd-cafile, --etcd-certfile, --etcd-keyfile",
        ) from None
    context.set_alpn_protocols(["h2"])
    return context


def _check_readable(path: Path | None) -> None:
    """OpenSSL does not say which of its files it could not read."""
    try:
        if path:
            path.read_bytes()
    except OSError as error:
        raise StorageUnavailable(
            f"{error.filename} cannot be read: {error.strerror}",
            remedy="correct --etcd-cafile, --etcd-certfile and --etcd-keyfile",
        ) from None
