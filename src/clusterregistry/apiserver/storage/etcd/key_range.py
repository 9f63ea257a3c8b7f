"""The keys of one registry in etcd: translates keys, key-values and events between etcd and the storage interface.

A key of the interface begins with a slash and is stored behind the prefix of the registry. Internal keys and keys that
are not UTF-8 are hidden from the interface.
"""

from __future__ import annotations

from typing import Any

from clusterregistry.apiserver.storage.errors import RevisionCompacted
from clusterregistry.apiserver.storage.etcd import messages
from clusterregistry.apiserver.storage.interface import Event, KeyValue

INTERNAL = "/.clusterregistry/"
"""Keys with this prefix are no objects."""

TOUCHED = INTERNAL + "touched"
"""This key is written to get an event at a new revision."""


class KeyRange:
    """The keys under one prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.encode()

    def key(self, name: str) -> bytes:
        """The key in etcd. A name without a UTF-8 form gets a key that cannot have been written."""
        return self._prefix + name.encode(errors="surrogatepass")

    def name(self, key: bytes) -> str:
        """The key in the interface; "" for one that is not an object."""
        try:
            name = key[len(self._prefix) :].decode()
        except UnicodeDecodeError:
            return ""
        return "" if name.startswith(INTERNAL) else name

    def bounds(self, prefix: str, after: str = "") -> tuple[bytes, bytes]:
        """The first key with a prefix that is greater than ``after``, and the range end."""
        # Without the slash the range would include neighbours whose prefix begins with this one.
        first = self.key(prefix or "/")
        return max(first, self.key(after) + b"\0" if after else b""), prefix_range_end(first)

    def key_values(self, kvs: Any) -> list[KeyValue]:
        """The key-values that are objects."""
        return [KeyValue(name, kv.value, kv.mod_revision) for kv in kvs if (name := self.name(kv.key))]

    def events(self, events: Any) -> list[Event]:
        """The events of objects. Raises RevisionCompacted if etcd no longer has a previous value."""
        return [self._event(event, name) for event in events if (name := self.name(event.kv.key))]

    def _event(self, event: Any, name: str) -> Event:
        kv, revision, deleted = event.kv, event.kv.mod_revision, event.type == messages.DELETE
        if event.HasField("prev_kv"):
            previous = KeyValue(name, event.prev_kv.value, event.prev_kv.mod_revision)
        elif deleted or kv.create_revision != revision:
            raise RevisionCompacted(revision - 1, compacted=revision)
        else:
            previous = None
        return Event(name, revision, None if deleted else KeyValue(name, kv.value, revision), previous)


def prefix_range_end(prefix: bytes) -> bytes:
    """The first key after all keys with a prefix; a zero byte, which for etcd is no end, if there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b"\0"
