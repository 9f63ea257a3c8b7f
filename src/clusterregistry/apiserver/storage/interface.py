"""The storage interface: a revisioned key-value store with history and watches, like etcd.

The key of an object is ``/GROUP/PLURAL/NAME``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from msgspec import Struct


class KeyValue(Struct, gc=False, eq=False):
    """A key with its value and the revision of its last change. Immutable, except for ``memo``.

    ``memo`` holds what ``object_bytes`` and the table encoder derived from the value. It lives as long as a cache keeps
    the key-value, and must not refer to the key-value.

    The garbage collector does not track key-values and events (``gc=False``): there is one per cached object, none is
    ever part of a reference cycle, and traversing those of some thousand writes took up to 30 ms.
    """

    key: str
    value: bytes
    revision: int
    memo: Any = None
    slot: int = -1
    """The byte offset of the resourceVersion in the value, -1 if there is none: see ``object_bytes``."""

    def __eq__(self, other: object) -> bool:
        """Compares key, value and revision; not ``memo``."""
        if not isinstance(other, KeyValue):
            return NotImplemented
        return (self.key, self.value, self.revision) == (other.key, other.value, other.revision)

    def __ne__(self, other: object) -> bool:
        """Needed because Struct defines its own."""
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # not hashable, like every class with its own __eq__


@dataclass(slots=True)
class Page:
    """Part of a range in the order of the keys, at ``revision``.

    ``remaining`` counts the keys of the range after the last item.
    """

    items: Sequence[KeyValue]
    revision: int
    remaining: int


class Event(Struct, gc=False):
    """One change: a create (``previous`` is None), an update, or a delete (``current`` is None)."""

    key: str
    revision: int
    current: KeyValue | None
    previous: KeyValue | None


Sink = Callable[[Sequence[Event]], None]
"""Receives committed events in the order of their revisions. Called on the event loop; must not block or raise.

A sink that raises has missed these events: its ``Interrupted`` callback is called.
"""

Interrupted = Callable[[], None]
"""Called when events may have been missed: a subscriber with a copy has to read everything again."""


class Guard(NamedTuple):
    """Puts writes of different keys into an order, where each was decided on what the others have written.

    A write with a guard is refused with GuardConflict if another write with a guard of this ``name`` was committed
    after ``revision``. The caller has seen everything up to that revision, decides again, and repeats its write. Names
    are few: an engine may remember all of them.
    """

    name: str
    """Without a slash at its beginning or end."""
    revision: int


class Subscription(Protocol):
    """A registered sink."""

    def close(self) -> None:
        """Ends the subscription; the sink is not called again. Idempotent."""


class Storage(Protocol):
    """A storage engine, or the cache around one."""

    @property
    def sole_writer(self) -> bool:
        """True if no other process writes to this store. ``revision`` then is the current revision."""

    @property
    def revision(self) -> int:
        """The newest committed revision that this store has seen. It may lag behind, unless ``sole_writer`` is true.

        All subscribers have the events up to it.
        """

    async def current_revision(self) -> int:
        """The newest committed revision of the whole store at the time of the call, or a later one."""

    def known_revision(self) -> int | None:
        """A revision that includes everything committed now; None if finding it takes I/O. Never raises."""

    async def wait_for(self, revision: int) -> None:
        """Returns once ``revision`` is seen. Raises RevisionInFuture after a few seconds."""

    def get_cached(self, key: str) -> KeyValue | None:
        """The current key-value if it is in memory and certainly current; None: call ``get``. Never raises."""

    def get_stale(self, key: str) -> KeyValue | None:
        """The key-value in memory, which may be outdated; None if there is none in memory. Never raises."""

    async def get(self, key: str) -> KeyValue | None:
        """The current key-value; None if the key does not exist."""

    async def list(self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0) -> Page:
        """The keys with a prefix at ``revision`` (0: now) that sort after ``after``, at most ``limit`` (0: all).

        Raises RevisionCompacted or RevisionInFuture.
        """

    async def create(self, key: str, value: bytes, *, guards: Sequence[Guard] = ()) -> int:
        """Creates a key and returns its revision once it is durable. Raises KeyExists, GuardConflict."""

    async def update(
        self, key: str, value: bytes, *, expected: int, known: KeyValue | None = None, guards: Sequence[Guard] = ()
    ) -> int:
        """Replaces the value if the key is at revision ``expected``.

        ``known`` is the key-value at that revision, if the caller got it from this store: it saves a read for the
        event's ``previous``. A key-value at another revision is ignored. Raises KeyNotFound, RevisionConflict,
        GuardConflict.
        """

    async def delete(self, key: str, *, expected: int, known: KeyValue | None = None) -> int:
        """Deletes the key if it is at revision ``expected``. ``known`` and exceptions as for ``update``."""

    async def history(self, prefix: str, *, after: int, limit: int = 0) -> Sequence[Event]:
        """The events after revision ``after`` up to ``revision``: the oldest ``limit`` (0: all) of them.

        Always whole revisions: where one revision changed several keys, there can be more events than ``limit``.
        Raises RevisionCompacted.
        """

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        """Calls the sink with every event committed from now on.

        If ``sole_writer`` is true, the sink is called before the write returns, otherwise soon after. A store with
        other writers also reports gaps (``interrupted``).
        """

    def count(self, prefix: str) -> int:
        """The number of keys with a prefix that this store has seen; for metrics."""

    def problem(self) -> str:
        """Why writes fail now, for an operator; empty when they succeed. Never blocks."""

    async def compact(self, revision: int) -> None:
        """Removes what was superseded at or before ``revision``; that revision itself stays readable."""

    async def close(self) -> None:
        """Finishes the writes in flight and frees all resources. Idempotent."""


def prefix_of(group: str, plural: str) -> str:
    """The prefix of all keys of a resource. The core group, whose name is empty, has no part in it."""
    return f"/{group}/{plural}/" if group else f"/{plural}/"
