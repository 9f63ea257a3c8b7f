"""Classifies errors of etcd and of the connection to it, and translates them into storage errors.

    StorageError
    ├── CompactedError         the requested revision is compacted
    ├── FutureRevisionError    the requested revision has not happened yet
    ├── LeaseNotFoundError     the lease has expired or was revoked
    ├── RequestTooLargeError   a write that etcd will never accept
    └── StorageUnavailable
        └── NoSpaceError       writes fail until there is space again; reads work

All but StorageUnavailable are caught within this package.
"""

from __future__ import annotations

from clusterregistry.apiserver.storage.errors import StorageError, StorageUnavailable
from clusterregistry.apiserver.storage.etcd.http2.channel import HANDSHAKE_FAILED
from clusterregistry.apiserver.storage.etcd.http2.connection import CLOSED, SPEAKS_HTTP1, SPEAKS_TLS, TLS_REFUSED
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError, StatusCode

_COMPACTED = "required revision has been compacted"
_FUTURE = "required revision is a future revision"
_LEASE_NOT_FOUND = "requested lease not found"
_TOO_LARGE = ("request is too large", "message larger than max")
_BAD_TOKEN = ("invalid auth token", "user name is empty", "revision of auth store is old")
_DENIED = "permission denied"
_NO_SPACE = "database space exceeded"
_AUTH_DISABLED = "authentication is not enabled"

_NOT_PROPOSED = (
    "etcdserver: no leader",
    "etcdserver: not leader",
    "etcdserver: too many requests",
    "raft proposal dropped",
)
"""Errors of a request that was not executed: it may be sent again."""

_TRANSIENT = (StatusCode.UNAVAILABLE, StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED)

_UNEXPECTED = (StatusCode.UNKNOWN, StatusCode.INTERNAL)
"""etcd does not refuse a request with these: something failed, perhaps after the request was executed."""

_REACH = "see that etcd runs and that --etcd-servers names it"

_CERTIFICATE_REFUSED = (
    "it does not accept the client certificate, or none was sent",
    "give --etcd-certfile and --etcd-keyfile, from an authority that etcd trusts and not expired",
)

_EXPLANATIONS = {
    _NO_SPACE: (
        "its quota of space is used up",
        "compact and defragment etcd or raise its quota, then clear the alarm (etcdctl alarm disarm)",
    ),
    "invalid user ID or password": (
        "it does not accept the user and password",
        "correct --etcd-username and the content of --etcd-password-file",
    ),
    "user name is empty": ("it requires a user", "give --etcd-username and --etcd-password-file"),
    _DENIED: (
        "the user may not use the keys under --etcd-prefix",
        "grant its role access to them (etcdctl role grant-permission ROLE readwrite PREFIX/ --prefix)",
    ),
    "CERTIFICATE_VERIFY_FAILED": (
        "its certificate is not from a trusted authority, or not for this address",
        "name that authority with --etcd-cafile, and in --etcd-servers use a name that the certificate has",
    ),
    "_ALERT_": _CERTIFICATE_REFUSED,
    TLS_REFUSED: _CERTIFICATE_REFUSED,
    HANDSHAKE_FAILED: ("it does not speak TLS", "write http:// in --etcd-servers, or have etcd serve TLS"),
    SPEAKS_TLS: ("it speaks TLS", "write https:// in --etcd-servers"),
    SPEAKS_HTTP1: ("it does not speak etcd's protocol", _REACH),
    CLOSED: (
        CLOSED,
        "see that etcd runs, and write https:// in --etcd-servers if it serves TLS",
    ),
}
"""By a part of the error's text: the explanation and the remedy for an operator."""

_GENERAL = {
    StatusCode.UNAVAILABLE: ("it cannot be reached, or has no leader", _REACH),
    StatusCode.DEADLINE_EXCEEDED: ("it did not answer in time", _REACH),
}


class CompactedError(StorageError):
    """The requested revision is compacted. etcd does not return the oldest one that is left."""


class FutureRevisionError(StorageError):
    """The requested revision is in the future."""


class LeaseNotFoundError(StorageError):
    """The lease does not exist any more, nor do the keys attached to it."""


class NoSpaceError(StorageUnavailable):
    """etcd refuses writes until there is space again. It answers reads."""


class RequestTooLargeError(StorageError):
    """A write that etcd will never accept. Smaller writes are not affected."""


def had_no_effect(error: RpcError) -> bool:
    """True if the request was not executed and will not be."""
    return not error.reached or _mentions(error, *_NOT_PROPOSED)


def is_transient(error: RpcError) -> bool:
    """True if another member, or the same one a second later, may succeed."""
    return error.code in _TRANSIENT or had_no_effect(error) or _mentions(error, "leader")


def leaves_outcome_unknown(error: RpcError) -> bool:
    """True if a write may have been executed despite the error. etcd executes the write that exceeds its quota."""
    may_be = is_transient(error) or error.code in _UNEXPECTED
    return (may_be and not had_no_effect(error)) or _mentions(error, _NO_SPACE)


def is_auth_disabled(error: RpcError) -> bool:
    """True if the sign-in failed because authentication is disabled."""
    return _mentions(error, _AUTH_DISABLED)


def needs_new_token(error: RpcError) -> bool:
    """True if a new sign-in may help. A watch with an invalid token fails with permission denied."""
    return error.code is StatusCode.UNAUTHENTICATED or _mentions(error, *_BAD_TOKEN, _DENIED)


def to_storage_error(error: RpcError, shown: str, *, outcome_unknown: bool) -> StorageError:
    """The storage error to raise instead; ``outcome_unknown`` if a write may have been executed."""
    if _mentions(error, _COMPACTED):
        return CompactedError(error.details)
    if _mentions(error, _FUTURE):
        return FutureRevisionError(error.details)
    if _mentions(error, _LEASE_NOT_FOUND):
        return LeaseNotFoundError(error.details)
    if _mentions(error, *_TOO_LARGE):
        return RequestTooLargeError(error.details)
    general = _GENERAL.get(error.code, (error.code.name, ""))
    special = (explained for text, explained in _EXPLANATIONS.items() if _mentions(error, text))
    explanation, remedy = next(special, general)
    outcome = "; whether the write was done is not known" if outcome_unknown else ""
    kind = NoSpaceError if _mentions(error, _NO_SPACE) else StorageUnavailable
    message = f"{shown}: {explanation} ({error.details}){outcome}"
    return kind(message, remedy=remedy, outcome_unknown=outcome_unknown)


def _mentions(error: RpcError, *texts: str) -> bool:
    return any(text in error.details for text in texts)
