"""Where the frames of one watch come from: the beginning, the past and what is yet to come.

``WholeFeed`` is for clients that may see all objects: their frames are shared with all who want the same. Clients that
may see some have a ``FilteredFeed`` of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.registry.broadcaster import Encode, Hub, encoded
from clusterregistry.apiserver.registry.list import ListOptions, selected
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.watcher import Frame, Watcher
from clusterregistry.apiserver.storage.interface import Event, KeyValue, Page


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """What comes next in a watch. Once it is sent, the client has seen everything up to ``revision``.

    ``unmarked``: the last frames do not tell that revision though the client should learn it.
    """

    frames: Iterable[Frame]
    revision: int
    unmarked: bool = False


class Feed(Protocol):
    """One watch's source. It collects what happens from the moment it is made, begins, and goes on."""

    @property
    def watcher(self) -> Watcher[Any]: ...

    async def existing(self, page: Page) -> Iterable[KeyValue]:
        """Begins with what exists: which of all objects to tell. Raises APIError."""
        ...

    async def resume(self, revision: int) -> None:
        """Begins after a revision, up to which the client knows everything. Raises 410."""
        ...

    async def history(self, events: Sequence[Event]) -> Iterable[Frame]:
        """The next events after the revision that the watch resumes from. Raises APIError."""
        ...

    def begun(self, seen: int) -> None:
        """The beginning is over: the client has seen everything up to a revision."""
        ...

    async def coming(self, waited: Sequence[Any]) -> Coming:
        """What to send for what the watcher has collected. Raises APIError."""
        ...

    def leave(self) -> None:
        """Collects nothing more. Idempotent."""
        ...


class WholeFeed:
    """The frames of a client that may see everything. It ends when the client may no longer."""

    def __init__(  # noqa: PLR0913 - all but two by keyword
        self,
        store: Store,
        hub: Hub,
        *,
        options: ListOptions,
        encode: Encode,
        representation: Hashable,
        on_overflow: Callable[[], None],
    ) -> None:
        self._store, self._hub, self._options, self._encode = store, hub, options, encode
        self.watcher = hub.join(options, representation=representation, encode=encode, on_overflow=on_overflow)
        self._stop_listening = options.visible.on_change(self._end_if_refused)
        self._end_if_refused()

    def _end_if_refused(self) -> None:
        """The client comes back and is told what it may still do."""
        if self._options.visible.names() is not None:
            self.watcher.end()

    async def existing(self, page: Page) -> Iterable[KeyValue]:
        return page.items if self._options.selects_all else await selected(self._options, page.items)

    async def resume(self, revision: int) -> None:
        """Who has got the right to see everything only since then lacks what others have made visible before."""
        if revision < self._options.visible.granted_at:
            raise too_old(revision, self._options.visible.granted_at)

    async def history(self, events: Sequence[Event]) -> Iterable[Frame]:
        return encoded(self._options, self._encode, events)

    def begun(self, seen: int) -> None:
        self.watcher.seen = seen

    async def coming(self, waited: Sequence[Frame]) -> Coming:
        watcher = self.watcher
        frames = [frame for frame in waited if frame[0] > watcher.seen]
        if frames:
            watcher.seen = frames[-1][0]
        return Coming(frames=frames, revision=self._hub.told(watcher, self._store.storage.revision))

    def leave(self) -> None:
        self._stop_listening()
        self._hub.leave(self.watcher)


def too_old(requested: int, oldest: int) -> errors.APIError:
    """410: the client has to list anew."""
    return errors.gone(f"too old resource version: {requested} ({oldest})")
