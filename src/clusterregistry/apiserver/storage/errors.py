"""What a store may raise; ``registry.interpreting`` is the one place that says what it means to a client.

    StorageError
    ├── KeyExists             create of a key that is there
    ├── KeyNotFound           update or delete of a key that is not
    ├── RevisionConflict      the key is at another revision than the caller expected
    ├── RevisionCompacted     history that is no longer kept
    ├── RevisionInFuture      a revision that has not happened yet
    ├── ValueTooLarge         a write that the engine will never take, whenever it is tried
    ├── CorruptObject         a key whose value is not an object that this server can read
    └── StorageUnavailable    the engine cannot answer now (full, locked, closed, out of reach)

Engine exceptions (those of ``sqlite3``, ``RpcError`` of etcd's protocol) never leave this package.
"""

from __future__ import annotations

from clusterregistry.apimachinery.operator_error import OperatorError


class StorageError(Exception):
    """Anything a store cannot do."""


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


class RevisionCompacted(StorageError):
    def __init__(self, requested: int, *, compacted: int) -> None:
        super().__init__(f"revision {requested} is compacted; the oldest kept is {compacted}")
        self.requested, self.compacted = requested, compacted


class RevisionInFuture(StorageError):
    def __init__(self, requested: int, *, current: int) -> None:
        super().__init__(f"revision {requested} is in the future; the current one is {current}")
        self.requested, self.current = requested, current


class ValueTooLarge(StorageError):
    """``remedy`` says what an operator can do; whoever wrote can only write less."""

    def __init__(self, key: str, *, size: int, remedy: str) -> None:
        super().__init__(f"key {key!r}: {size} bytes are more than the storage takes")
        self.key, self.size, self.remedy = key, size, remedy


class CorruptObject(StorageError):
    """As kube-apiserver calls it: the key is there, and another program or a damaged disk wrote its value."""

    def __init__(self, key: str, *, revision: int, reason: str) -> None:
        super().__init__(f"what is stored under {key!r} at revision {revision} cannot be read: {reason}")
        self.key, self.revision, self.reason = key, revision, reason


class StorageUnavailable(StorageError, OperatorError):
    """The message says why; ``remedy``, where there is one, what an operator can do."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
