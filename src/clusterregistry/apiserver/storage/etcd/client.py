"""Client of one etcd cluster: sign-in, TLS, failover between members, and a check that etcd was not restored.

``Client`` sends each request to one member and, when that member fails, to the next. ``Member`` holds the connections
to one server, ``Session`` the token of the user. ``RestoreDetector`` compares the header of every response with those
before it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.etcd import errors, messages
from clusterregistry.apiserver.storage.etcd.http2.channel import Channel
from clusterregistry.apiserver.storage.etcd.http2.frames import Metadata
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, Stream, unavailable
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings

T = TypeVar("T")

ATTEMPT_SECONDS = 2.0
"""How long one member may take to answer before the next member is used."""

PATIENCE_SECONDS = 5.0
"""How long a request is retried on other members: longer than etcd takes to elect a leader."""

_PAUSE_SECONDS = 0.1
_SIGN_IN_SECONDS = 2.0

_CLUSTER_WIDE = ("range", "txn")
"""Calls whose response header holds the revision of the whole cluster. Other calls return the revision of one member,
which may lag behind."""

_REQUIRE_LEADER = ("hasleader", "true")
"""Makes a member without a leader fail at once instead of waiting for one."""

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
_KEEP_ALIVE = "/etcdserverpb.Lease/LeaseKeepAlive"

_log = logging.getLogger(__name__)


class Client:
    """The members of an etcd cluster, one of which is in use."""

    def __init__(self, settings: EtcdSettings, restore_detector: RestoreDetector | None = None) -> None:
        """Opens no connection yet. Raises StorageUnavailable for an unusable certificate file."""
        self.restore_detector = restore_detector or RestoreDetector()
        tls = tls_context(settings)
        self.session = Session(settings)
        self._shown = settings.shown
        self._members = [Member(endpoint, tls) for endpoint in settings.endpoints]
        self._current = 0
        self._healthy: Member | None = None
        """The member in use, if it has answered since the last failure."""
        self._health_log = _HealthLog(settings.shown)
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._closed = False

    @property
    def member(self) -> Member:
        """The member in use."""
        return self._members[self._current]

    def call(
        self, name: str, request: Any, *, repeatable: bool = True, seconds: float = ATTEMPT_SECONDS
    ) -> Coroutine[Any, Any, Any]:
        """Returns the response to a request, with failover. One member may take ``seconds`` for it."""

        async def attempt(member: Member) -> Any:
            metadata = await self.session.metadata(member)
            known = self.restore_detector.revision
            response = await member.call(name, request, metadata=metadata, seconds=seconds)
            if name in _CLUSTER_WIDE:
                self.restore_detector.check(response.header, known=known)
            return response

        return self.with_failover(attempt, repeatable=repeatable)

    async def with_failover(self, attempt: Callable[[Member], Awaitable[T]], *, repeatable: bool = True) -> T:
        """Runs ``attempt`` with a member, and with the next member when it fails with RpcError.

        If it is not ``repeatable``, it runs again only when the request cannot have had an effect. Raises what
        ``errors.to_storage_error`` makes of the last error.
        """
        self._in_flight += 1
        deadline, may_sign_in = asyncio.get_running_loop().time() + PATIENCE_SECONDS, True
        try:
            while not self._closed:
                member, token = self.member, self.session.token
                try:
                    result = await attempt(member)
                except RpcError as error:
                    if may_sign_in and errors.needs_new_token(error) and self.session.forget(token):
                        may_sign_in = False
                        continue
                    self.mark_failed(member, error)
                    may_retry = errors.is_transient(error) if repeatable else errors.had_no_effect(error)
                    if asyncio.get_running_loop().time() > deadline or not may_retry:
                        unknown = not repeatable and errors.leaves_outcome_unknown(error)
                        raise errors.to_storage_error(error, self._shown, outcome_unknown=unknown) from error
                else:
                    self.mark_healthy(member)
                    return result
                await asyncio.sleep(_PAUSE_SECONDS)
            raise StorageUnavailable(self.closed_message)
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    def mark_failed(self, member: Member, error: RpcError) -> None:
        """Switches to the next member, if this one is in use and the error may be its own."""
        if member is self.member and errors.is_transient(error):
            self._healthy = None
            self._current = (self._current + 1) % len(self._members)
            self._health_log.failed(error, members=len(self._members))

    def mark_healthy(self, member: Member) -> None:
        """Records that a member has answered."""
        if member is not self._healthy and member is self.member:
            self._healthy = member
            self._health_log.answered(member)

    @property
    def closed_message(self) -> str:
        return f"{self._shown}: the store is closed"

    async def close(self) -> None:
        """Waits for the requests in flight and starts no others. To be called once."""
        self._closed = True
        if self._in_flight:
            self._idle.clear()
            await self._idle.wait()
        await asyncio.gather(*(member.close() for member in self._members))


class Member:
    """The connections to one server of the cluster. They open when they are first used, and again when lost.

    Every failure is an RpcError.
    """

    def __init__(self, endpoint: str, tls: ssl.SSLContext | None) -> None:
        self.endpoint = endpoint
        # Two connections, so that calls do not wait behind the events of a watch.
        self._calls, self._watches = Channel(endpoint, tls), Channel(endpoint, tls)

    async def call(self, name: str, request: Any, *, metadata: Metadata, seconds: float) -> Any:
        """Sends a request, a message or its bytes, once and returns the response."""
        path, decode = _METHODS[name]
        content = request if isinstance(request, bytes) else request.SerializeToString()
        response = await self._calls.call(path, content, metadata=metadata, seconds=seconds)
        try:
            return decode(response)
        except DecodeError as error:
            raise unavailable(f"its response cannot be decoded: {error}") from None

    async def watch(self, metadata: Metadata, request: Any) -> Stream:
        """Opens a stream of watch requests and responses with its first request. The caller cancels it."""
        return await self._watches.stream(_WATCH, request.SerializeToString(), metadata=metadata)

    async def keep_alive(self, metadata: Metadata, request: bytes) -> Stream:
        """Opens a stream of lease renewals with its first request. The caller cancels it."""
        return await self._calls.stream(_KEEP_ALIVE, request, metadata=metadata)

    async def close(self) -> None:
        await asyncio.gather(self._calls.close(), self._watches.close())


class Session:
    """The user's sign-in at all members. It lasts until etcd refuses the token; without a user there is none."""

    def __init__(self, settings: EtcdSettings) -> None:
        self._settings = settings
        self._lock = asyncio.Lock()
        self._auth_disabled = False
        self.token = ""

    async def metadata(self, member: Member) -> Metadata:
        """The headers of a request. Signs in first if there is no token.

        Raises RpcError, and StorageUnavailable if the password cannot be read.
        """
        if not self._settings.user:
            return (_REQUIRE_LEADER,)
        if not (self.token or self._auth_disabled):
            async with self._lock:
                if not (self.token or self._auth_disabled):
                    self.token = await self._sign_in(member)
                    self._auth_disabled = not self.token
        return (_REQUIRE_LEADER, ("token", self.token)) if self.token else (_REQUIRE_LEADER,)

    def forget(self, token: str) -> bool:
        """Drops a token that was refused. True if a new one can be requested."""
        if self.token == token:
            self.token, self._auth_disabled = "", False
        return bool(self._settings.user)

    async def _sign_in(self, member: Member) -> str:
        """Returns the token; empty if authentication is disabled, in which case etcd's own client continues too."""
        request = messages.AuthenticateRequest(name=self._settings.user, password=self._password())
        try:
            response = await member.call("authenticate", request, metadata=(_REQUIRE_LEADER,), seconds=_SIGN_IN_SECONDS)
        except RpcError as error:
            if errors.is_auth_disabled(error):
                _log.warning("authentication is disabled in etcd (etcdctl auth enable): --etcd-username is not used")
                return ""
            if not (errors.is_transient(error) or errors.leaves_outcome_unknown(error)):
                raise
            # Not reached: otherwise the write that follows would count as one that may have been executed.
            raise RpcError(error.code, f"sign-in: {error.details}", reached=False) from error
        return str(response.token)

    def _password(self) -> str:
        """Read at each sign-in, so that the file may change."""
        path = self._settings.password_file
        try:
            return path.read_text().rstrip("\r\n") if path else ""
        except (OSError, UnicodeDecodeError) as error:
            raise StorageUnavailable(
                f"the password for etcd cannot be read: {error}", remedy="correct --etcd-password-file"
            ) from None


class EtcdRestored(StorageUnavailable):
    """etcd was restored or replaced: everything has to be read again before requests can be answered."""


class RestoreDetector:
    """Detects that etcd was restored from a snapshot, or is another cluster.

    Revisions then continue from an earlier one, and the same revision is another state. Each response header holds the
    ID of the cluster and its revision, so each header is compared with those before it. ``on_restored`` is called with
    the reason, once until ``reset``.
    """

    def __init__(self, on_restored: Callable[[str], None] = lambda _: None) -> None:
        self._on_restored = on_restored
        self._cluster_id = 0
        self._is_reported = False
        self.revision = 0
        """The newest committed revision seen: requests sent from now on are answered at this one or a newer one."""

    def check(self, header: Any, *, known: int) -> None:
        """Checks the header of a cluster-wide response; ``known`` was the newest revision when it was requested."""
        revision = header.revision
        if revision < known or header.etcd_id != self._cluster_id:
            self._compare(header.etcd_id, revision, known)
        self.observe(revision)

    def observe(self, revision: int) -> None:
        """Records a committed revision."""
        self.revision = max(self.revision, revision)

    def reset(self) -> None:
        """Accepts the next response, whatever its cluster and revision."""
        self._cluster_id = self.revision = 0
        self._is_reported = False

    def report(self, reason: str) -> None:
        """Records that etcd was restored."""
        if not self._is_reported:
            self._is_reported = True
            self._on_restored(reason)

    def _compare(self, cluster_id: int, revision: int, known: int) -> None:
        self._cluster_id = self._cluster_id or cluster_id
        if cluster_id != self._cluster_id:
            self.report(f"its cluster ID is {cluster_id:x} and was {self._cluster_id:x}")
        elif revision < known and revision < self.revision:  # otherwise it was requested before the last reset
            self.report(f"it is at revision {revision} and was at {known}")


class _HealthLog:
    """Logs changes of etcd's health: once per change, since members are tried many times a second."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._last = ""
        self._failures = 0
        self._is_down = False

    def failed(self, error: RpcError, *, members: int) -> None:
        """The member in use did not answer. Logs a warning once all members have failed."""
        self._failures += 1
        if self._failures < members or self._is_down:
            return
        self._is_down = True
        explained = errors.to_storage_error(error, self._shown, outcome_unknown=False)
        remedy = getattr(explained, "remedy", "") or "see that etcd runs"
        _log.warning("%s. What to do: %s; it is tried again all the time", explained, remedy)

    def answered(self, member: Member) -> None:
        self._failures = 0
        if self._is_down:
            _log.info("%s answers again, at %s", self._shown, member.endpoint)
        elif self._last not in {"", member.endpoint}:
            _log.info("%s: %s does not answer; continuing with %s", self._shown, self._last, member.endpoint)
        self._is_down, self._last = False, member.endpoint


def tls_context(settings: EtcdSettings) -> ssl.SSLContext | None:
    """The TLS configuration of all members; None without TLS. Raises StorageUnavailable for unusable files."""
    if not settings.tls:
        return None
    for path in (settings.ca_file, settings.certificate_file, settings.key_file):
        _check_readable(path)
    try:
        # With a file only that authority is trusted, without one those of the system.
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.certificate_file:
            # The password keeps OpenSSL from asking for one at the terminal.
            context.load_cert_chain(settings.certificate_file, settings.key_file, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise StorageUnavailable(
            f"the certificates for etcd cannot be used ({error})",
            remedy="correct --etcd-cafile, --etcd-certfile, --etcd-keyfile",
        ) from None
    context.set_alpn_protocols(["h2"])
    return context


def _check_readable(path: Path | None) -> None:
    """Raises StorageUnavailable with the file's name, which OpenSSL does not report."""
    try:
        if path:
            path.read_bytes()
    except OSError as error:
        raise StorageUnavailable(
            f"{error.filename} cannot be read: {error.strerror}",
            remedy="correct --etcd-cafile, --etcd-certfile and --etcd-keyfile",
        ) from None
