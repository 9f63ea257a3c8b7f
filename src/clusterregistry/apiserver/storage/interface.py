"""The names of objects in a store: ``/GROUP/PLURAL/NAME``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Struct


class KeyValue(Struct, gc=False, eq=False):
    """A key at one revision, that of its last change. Never changed, but for ``memo``.

    ``memo`` belongs to the layer above: what it derived from the value (labels, a table row) lives as
    long as a cache keeps the object. It must not refer to what it belongs to.

    The garbage collector does not look at these (``gc=False``), nor at events: there are as many as objects are kept,
    none is ever part of a circle, and to look at those of some thousand writes took up to 30 ms.
    """

    key: str
    value: bytes
    revision: int
    memo: Any = None
    slot: int = -1
    """Where in the value its revision stands, if it does: see ``revisions``."""

    def __eq__(self, other: object) -> bool:
        """Whatever was derived from them."""
        if not isinstance(other, KeyValue):
            return NotImplemented
        return (self.key, self.value, self.revision) == (other.key, other.value, other.revision)

    def __ne__(self, other: object) -> bool:
        """Said too, since a Struct compares whether it is another one."""
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # as for all that are compared by what they hold


@dataclass(slots=True)
class Page:
    """Part of a range, in the order of the keys, all as of ``revision``.

    ``remaining`` counts the keys of the range behind the last item.
    """

    items: Sequence[KeyValue]
    revision: int
    remaining: int


class Event(Struct, gc=False):
    """One change: created (``previous`` is None), changed, or deleted (``current`` is None)."""

    key: str
    revision: int
    current: KeyValue | None
    previous: KeyValue | None


Sink = Callable[[Sequence[Event]], None]
"""Takes committed events in the order of their revisions. Called on the loop; must not block or raise.

One that raises all the same is interrupted: it has missed these events.
"""

Progressed = Callable[[int], None]
"""Told a revision up to which there are no more events than those handed out."""

Interrupted = Callable[[], None]
"""Told that events may have been missed: who keeps a copy has to read everything anew."""


class Subscription(Protocol):
    """An open watch."""

    def close(self) -> None:
        """Ends the watch; the sink is not called again. Idempotent."""


class Storage(Protocol):
    """One engine, or the cache around one."""

    @property
    def sole_writer(self) -> bool:
        """Whether nobody else writes to this store: when it knows a revision, ``revision`` is the current one."""

    @property
    def revision(self) -> int:
        """The newest revision that this store has seen committed."""

    async def current_revision(self) -> int:
        """The newest committed revision of the whole store, at or after the moment of the call."""

    def known_revision(self) -> int | None:
        """A revision that has all that is committed at the call, if one is known without asking. Never raises."""

    async def wait_for(self, revision: int) -> None:
        """Returns once ``revision`` is seen. Raises RevisionInFuture when it does not come in a few seconds."""

    def get_cached(self, key: str) -> KeyValue | None:
        """The key as of now, if that is known without waiting; None says nothing, and ``get`` knows. Never raises."""

    def get_stale(self, key: str) -> KeyValue | None:
        """The key as this store remembers it, which may be old by now; None says nothing. Never raises."""

    async def get(self, key: str) -> KeyValue | None:
        """The key as of now; None when it does not exist."""

    async def list(self, prefix: str, *, revision: int = 0, after: str = "", limit: int = 0) -> Page:
        """The keys with a prefix, as of ``revision`` (0: now), behind ``after``, at most ``limit`` (0: all).

        Raises RevisionCompacted or RevisionInFuture.
        """

    async def create(self, key: str, value: bytes) -> int:
        """Adds a key and returns its revision, once durable. Raises KeyExists."""

    async def update(self, key: str, value: bytes, *, expected: int, known: KeyValue | None = None) -> int:
        """Replaces the value if the key is at revision ``expected``. Raises KeyNotFound, RevisionConflict.

        Who has the key at that revision, as this store told it, may say so (``known``): the store then need not read it
        to tell of the change. It counts for nothing else, and at another revision for nothing at all.
        """

    async def delete(self, key: str, *, expected: int, known: KeyValue | None = None) -> int:
        """Removes the key if it is at revision ``expected``. ``known`` as for ``update``. Raises what that raises."""

    async def history(self, prefix: str, *, after: int, limit: int = 0) -> Sequence[Event]:
        """The events with a revision above ``after``, up to ``revision``: the oldest ``limit`` (0: all) of them.

        All of a revision or nothing: where others have changed several keys in one, there can be more than ``limit``.
        Raises RevisionCompacted.
        """

    def subscribe(
        self,
        prefix: str,
        sink: Sink,
        *,
        progressed: Progressed | None = None,
        interrupted: Interrupted | None = None,
    ) -> Subscription:
        """Feeds the sink every event committed from now on.

        The ``sole_writer`` of a store does so before the write that made it returns, others soon after. They also
        tell of revisions without an event here (``progressed``), and of a gap that they could not bridge.
        """

    def count(self, prefix: str) -> int:
        """How many keys with a prefix there are, as far as this store has seen; for metrics."""

    def problem(self) -> str:
        """Why writes cannot be taken now, for a person; empty when they can. Never blocks."""

    async def compact(self, revision: int) -> None:
        """Forgets what was superseded at or before ``revision``; that revision itself stays readable."""

    async def close(self) -> None:
        """Finishes the writes under way and frees everything. Idempotent."""


def prefix_of(group: str, plural: str) -> str:
    """The prefix that all objects of a resource share."""
    return f"/{group}/{plural}/"
