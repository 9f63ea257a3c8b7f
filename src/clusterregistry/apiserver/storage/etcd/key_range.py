"""Which keys of an etcd are ours, what they are called in the port, and what becomes of its messages there.

A key of the port begins with a slash and is stored behind the prefix. What cannot be one is shown to nobody: keys of
our own making, and those that are no text.
"""

from __future__ import annotations

from typing import Any

from clusterregistry.apiserver.storage.errors import RevisionCompacted
from clusterregistry.apiserver.storage.etcd import messages
from clusterregistry.apiserver.storage.interface import Event, KeyValue

INTERNAL = "/.clusterregistry/"
"""What begins so is not an object."""

TOUCHED = INTERNAL + "touched"
"""This key is written to have an event of ours at a new revision."""


class Range:
    """The keys under a prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix.encode()

    def key(self, name: str) -> bytes:
        """A name without UTF-8 form gets a key too, which nobody can have written."""
        return self._prefix + name.encode(errors="surrogatepass")

    def name(self, key: bytes) -> str:
        """What the port calls a key; "" for one that is not an object."""
        try:
            name = key[len(self._prefix) :].decode()
        except UnicodeDecodeError:
            return ""
        return "" if name.startswith(INTERNAL) else name

    def bounds(self, prefix: str, after: str = "") -> tuple[bytes, bytes]:
        """The first key of those with a prefix that are behind another key, and the one behind the last."""
        # Without the slash the keys of our neighbours would count, whose prefix begins with ours.
        first = self.key(prefix or "/")
        return max(first, self.key(after) + b"\0" if after else b""), end_of(first)

    def key_values(self, kvs: Any) -> list[KeyValue]:
        """Those that are objects."""
        return [KeyValue(name, kv.value, kv.mod_revision) for kv in kvs if (name := self.name(kv.key))]

    def events(self, events: Any) -> list[Event]:
        """Those of objects. Raises RevisionCompacted for a change of something that etcd knows no longer."""
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


def end_of(prefix: bytes) -> bytes:
    """The first key behind all that have this prefix; a zero byte is etcd's word for none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b"\0"
