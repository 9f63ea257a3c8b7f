"""What etcd's errors mean, and those of the way to it."""

from __future__ import annotations

from clusterregistry.apiserver.storage.errors import StorageError, StorageUnavailable
from clusterregistry.apiserver.storage.etcd.http2.channel import HANDSHAKE_FAILED
from clusterregistry.apiserver.storage.etcd.http2.handshake import HUNG_UP, REFUSED_BY_TLS, SPEAKS_HTTP1, SPEAKS_TLS
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, StatusCode

_COMPACTED = "required revision has been compacted"
_FUTURE = "required revision is a future revision"
_LEASE_ENDED = "requested lease not found"
_TOO_LARGE = ("request is too large", "message larger than max")
_BAD_TOKEN = ("invalid auth token", "user name is empty", "revision of auth store is old")
_DENIED = "permission denied"
_NO_SPACE = "database space exceeded"
_NO_USERS = "authentication is not enabled"

_NOT_STARTED = (
    "etcdserver: no leader",
    "etcdserver: not leader",
    "etcdserver: too many requests",
    "raft proposal dropped",
)
"""Answers to a request that was never begun: it may be sent again."""

_PASSING = (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED)

_UNCLEAR = (StatusCode.UNKNOWN, StatusCode.INTERNAL)
"""No answers of etcd's own to a request that it refuses: something went wrong, perhaps only afterwards."""

_REACH = "see that etcd runs and that --etcd-servers names it"

_CERTIFICATE_REFUSED = (
    "it does not accept our certificate, or we have none to show",
    "give --etcd-certfile and --etcd-keyfile, from an authority that etcd trusts and not expired",
)

_EXPLANATIONS = {
    _NO_SPACE: (
        "its quota of space is used up",
        "compact and defragment etcd or raise its quota, then clear the alarm (etcdctl alarm disarm)",
    ),
    "invalid user ID or password": (
        "it does not accept our user and password",
        "correct --etcd-username and what is in --etcd-password-file",
    ),
    "user name is empty": ("it asks for a user", "give --etcd-username and --etcd-password-file"),
    _DENIED: (
        "our user may not use the keys under --etcd-prefix",
        "grant its role reading and writing there (etcdctl role grant-permission ROLE readwrite PREFIX/ --prefix)",
    ),
    "CERTIFICATE_VERIFY_FAILED": (
        "its certificate is not from an authority that we trust, or not for this address",
        "give that authority with --etcd-cafile, and in --etcd-servers a name that the certificate has",
    ),
    "_ALERT_": _CERTIFICATE_REFUSED,
    REFUSED_BY_TLS: _CERTIFICATE_REFUSED,
    HANDSHAKE_FAILED: ("it does not speak TLS", "write http:// in --etcd-servers, or have etcd serve TLS"),
    SPEAKS_TLS: ("it speaks TLS", "write https:// in --etcd-servers"),
    SPEAKS_HTTP1: ("it does not speak etcd's protocol", _REACH),
    HUNG_UP: (
        HUNG_UP,
        "see that etcd runs, and write https:// in --etcd-servers if it serves TLS",
    ),
}
"""For what an error may say: the same for a person, and what an operator can do."""

_GENERAL = {
    StatusCode.UNAVAILABLE: ("it cannot be reached, or has no leader", _REACH),
    StatusCode.DEADLINE_EXCEEDED: ("it did not answer in time", _REACH),
}


class CompactedError(StorageError):
    """etcd has forgotten the revision that was asked for. It does not say what is left."""


class NotYetError(StorageError):
    """The revision that was asked for is in the future."""


class LeaseEndedError(StorageError):
    """There is no such lease any longer, nor anything that hung on it."""


class NoSpaceError(StorageUnavailable):
    """etcd takes no writes until there is space again. It goes on answering reads."""


class TooLargeError(StorageError):
    """A write that etcd never takes. It says nothing about others."""


def was_not_started(error: RpcError) -> bool:
    """Whether a request that failed so has had no effect, and will have none."""
    return not error.reached or _says(error, *_NOT_STARTED)


def is_passing(error: RpcError) -> bool:
    """Whether another member, or a second later this one, may do better."""
    return error.code in _PASSING or was_not_started(error) or _says(error, "leader")


def leaves_unsure(error: RpcError) -> bool:
    """Whether a write may have been done in spite of the error. Above its quota etcd does the one that exceeds it."""
    may_be = is_passing(error) or error.code in _UNCLEAR
    return (may_be and not was_not_started(error)) or _says(error, _NO_SPACE)


def knows_no_users(error: RpcError) -> bool:
    """Whether signing in failed because there is nothing to sign in to."""
    return _says(error, _NO_USERS)


def needs_new_token(error: RpcError) -> bool:
    """Whether to sign in again. A watch is just denied when its token is of no use any longer."""
    return error.code is StatusCode.UNAUTHENTICATED or _says(error, *_BAD_TOKEN, _DENIED)


def translated(error: RpcError, shown: str, *, unsure: bool) -> StorageError:
    """The error to raise in its place; ``unsure`` if the request may have had an effect."""
    if _says(error, _COMPACTED):
        return CompactedError(error.details)
    if _says(error, _FUTURE):
        return NotYetError(error.details)
    if _says(error, _LEASE_ENDED):
        return LeaseEndedError(error.details)
    if _says(error, *_TOO_LARGE):
        return TooLargeError(error.details)
    general = _GENERAL.get(error.code, (error.code.name, ""))
    special = (explained for text, explained in _EXPLANATIONS.items() if _says(error, text))
    explanation, remedy = next(special, general)
    outcome = "; whether the write was done is not known" if unsure else ""
    kind = NoSpaceError if _says(error, _NO_SPACE) else StorageUnavailable
    return kind(f"{shown}: {explanation} ({error.details}){outcome}", remedy=remedy)


def _says(error: RpcError, *texts: str) -> bool:
    return any(text in error.details for text in texts)
