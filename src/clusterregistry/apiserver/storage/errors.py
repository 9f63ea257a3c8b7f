"""The exceptions of a store. ``registry.errors`` translates them into API errors.

    StorageError
    ├── KeyExists             create of a key that exists
    ├── KeyNotFound           update or delete of a key that does not exist
    ├── RevisionConflict      the key is at another revision than the caller expected
    ├── GuardConflict         another write with the same guard came first
    ├── RevisionCompacted     the revision is no longer kept
    ├── RevisionInFuture      the revision has not happened yet
    ├── ValueTooLarge         a write that the engine will never accept
    ├── CorruptObject         a key whose value is not an object that this server can read
    └── StorageUnavailable    the engine cannot answer now (full, locked, closed, unreachable)

Exceptions of an engine (``sqlite3.Error``, gRPC's ``RpcError``) never leave this package.
"""

from __future__ import annotations

from clusterregistry.apimachinery.operator_error import OperatorError


class StorageError(Exception):
    """Base class of all exceptions of a store."""


class KeyExists(StorageError):
    def __init__(self, key: str) -> None:
        super().__init__(f"key {key!r} exists")
        self.key = key


class KeyNotFound(StorageError):
    def __init__(self, key: str) -> None:
        super().__init__(f"key {key!r} not found")
        self.key = key


class RevisionConflict(StorageError):
    def __init__(self, key: str, *, expected: int, actual: int) -> None:
        super().__init__(f"key {key!r} is at revision {actual}, not {expected}")
        self.key, self.expected, self.actual = key, expected, actual


class GuardConflict(StorageError):
    """``revision`` is that of the other write: once it is seen, the write can be decided again."""

    def __init__(self, name: str, *, revision: int) -> None:
        super().__init__(f"guard {name!r} is at revision {revision}")
        self.name, self.revision = name, revision


class RevisionCompacted(StorageError):
    def __init__(self, requested: int, *, compacted: int) -> None:
        super().__init__(f"revision {requested} is compacted; the oldest kept is {compacted}")
        self.requested, self.compacted = requested, compacted


class RevisionInFuture(StorageError):
    def __init__(self, requested: int, *, current: int) -> None:
        super().__init__(f"revision {requested} is in the future; the current one is {current}")
        self.requested, self.current = requested, current


class ValueTooLarge(StorageError):
    """``remedy`` says what an operator can do. A client can only write less."""

    def __init__(self, key: str, *, size: int, remedy: str) -> None:
        super().__init__(f"key {key!r}: {size} bytes are more than the storage takes")
        self.key, self.size, self.remedy = key, size, remedy


class CorruptObject(StorageError):
    """The key exists, but another program or a damaged disk wrote its value. The name is kube-apiserver's."""

    def __init__(self, key: str, *, revision: int, reason: str) -> None:
        super().__init__(f"what is stored under {key!r} at revision {revision} cannot be read: {reason}")
        self.key, self.revision, self.reason = key, revision, reason


class StorageUnavailable(StorageError, OperatorError):
    """The message gives the reason; ``remedy``, if any, what an operator can do.

    ``outcome_unknown``: a write may have been done, so it must not be repeated without a look.
    """

    def __init__(self, message: str, *, remedy: str = "", outcome_unknown: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.outcome_unknown = outcome_unknown
