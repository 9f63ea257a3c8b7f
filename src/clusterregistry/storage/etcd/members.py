"""One server of an etcd, and the connections to it. What goes wrong comes out as grpc's own error."""

from __future__ import annotations

from typing import Any

import grpc
from grpc.aio import Channel

from clusterregistry.storage.errors import StorageUnavailable
from clusterregistry.storage.etcd import messages
from clusterregistry.storage.etcd.settings import EtcdSettings

Metadata = tuple[tuple[str, str], ...]

_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # Not more often than etcd allows by default: it ends connections that ask every five seconds or more.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Whether something may be sent again is not for grpc to say.
    ("grpc.enable_retries", 0),
    # Otherwise the two channels to a member would be one connection.
    ("grpc.use_local_subchannel_pool", 1),
    # What the environment says about proxies is meant for other traffic.
    ("grpc.enable_http_proxy", 0),
)

_METHODS: dict[str, tuple[str, Any]] = {
    "range": ("/etcdserverpb.KV/Range", messages.RangeResponse),
    "txn": ("/etcdserverpb.KV/Txn", messages.TxnResponse),
    "compact": ("/etcdserverpb.KV/Compact", messages.CompactionResponse),
    "authenticate": ("/etcdserverpb.Auth/Authenticate", messages.AuthenticateResponse),
    "status": ("/etcdserverpb.Maintenance/Status", messages.StatusResponse),
}
_WATCH = "/etcdserverpb.Watch/Watch"


class Member:
    """Connects when it is first used, and again whenever the connection is lost."""

    def __init__(self, endpoint: str, found: grpc.ChannelCredentials | None) -> None:
        self.endpoint = endpoint
        # Calls do not wait behind what a watch has to tell.
        self._calls, self._watches = _channel(endpoint, found), _channel(endpoint, found)
        self._methods: dict[str, Any] = {
            name: self._calls.unary_unary(
                path, request_serializer=_serialized, response_deserializer=response.FromString
            )
            for name, (path, response) in _METHODS.items()
        }
        self._watch: Any = self._watches.stream_stream(
            _WATCH, request_serializer=_serialized, response_deserializer=messages.WatchResponse.FromString
        )

    async def call(self, name: str, request: Any, *, metadata: Metadata, seconds: float) -> Any:
        """The answer to one request, sent once."""
        return await self._methods[name](request, metadata=metadata, timeout=seconds)

    def watch(self, metadata: Metadata) -> Any:
        """A stream of watch requests and answers; to be cancelled by who asked for it."""
        return self._watch(metadata=metadata)

    async def close(self) -> None:
        await self._calls.close()
        await self._watches.close()


def credentials(settings: EtcdSettings) -> grpc.ChannelCredentials | None:
    """Raises StorageUnavailable for a file that cannot be read."""
    if not settings.tls:
        return None
    files = (settings.ca_file, settings.key_file, settings.certificate_file)
    try:
        ca, key, certificate = (path.read_bytes() if path else None for path in files)
    except OSError as error:
        raise StorageUnavailable(
            f"{error.filename} cannot be read: {error.strerror}",
            remedy="correct --etcd-cafile, --etcd-certfile and --etcd-keyfile",
        ) from None
    return grpc.ssl_channel_credentials(ca, key, certificate)


def _channel(endpoint: str, found: grpc.ChannelCredentials | None) -> Channel:
    if found is None:
        return grpc.aio.insecure_channel(endpoint, options=_OPTIONS)
    return grpc.aio.secure_channel(endpoint, found, options=_OPTIONS)


def _serialized(message: Any) -> bytes:
    encoded: bytes = message.SerializeToString()
    return encoded
