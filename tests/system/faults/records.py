"""What clients did and saw: the record that a check is made on.

Every write puts a token of its own into the object, so what a change shows says which write made it. Times are
those of one monotonic clock in the process of the clients.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LEASES, NAMESPACES = "leases", "namespaces"
ENDING = "Terminating"
"""The status of a namespace that is being deleted."""


def is_in(key: str, collection: str) -> bool:
    """Whether a collection has a key: directly, or in a namespace. The collection "" has the keys without a slash."""
    return key.rpartition("/")[0] == collection or key.startswith(f"{collection}/")


def namespace_of(key: str) -> str:
    """The key of the namespace that a key is in; "" for those in none."""
    resource, _, rest = key.partition("/")
    namespace, slash, _ = rest.partition("/")
    return f"{NAMESPACES}/{namespace}" if resource and slash else ""


class Value(NamedTuple):
    """What the workload keeps in an object: the token of its last whole write, and those of other writes since.

    A whole write takes those of patches and applies away. The status is not its business.
    """

    whole: str
    patch: str | None = None
    applied: str | None = None
    status: str | None = None

    def __str__(self) -> str:
        return "/".join(token or "-" for token in self).rstrip("/-") or "-"


class Version(NamedTuple):
    """An object at one revision."""

    revision: int
    uid: str
    value: Value


State = Version | None
"""A key at some moment; None: it does not exist."""


class Kind(enum.StrEnum):
    """How a watch names a change."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(NamedTuple):
    """The event of one revision. A deletion shows the last value, under the revision of the deletion."""

    revision: int
    kind: Kind
    key: str
    uid: str
    value: Value


class Action(enum.StrEnum):
    """What a client asks for."""

    CREATE = "create"
    UPDATE = "update"
    """Of a Lease that is not there: creates it, also when it names a revision, as in kube-apiserver."""
    PATCH = "patch"
    APPLY = "apply"
    """Creates what is not there; alone among the writes it is never refused."""
    STATUS = "status"
    DELETE = "delete"
    """Of a namespace: marks it. The server deletes all that is in it, and then the namespace itself."""
    GET = "get"
    LIST = "list"


READS = frozenset({Action.GET, Action.LIST})


class Selection(enum.StrEnum):
    """Which objects a list or a watch is about; a label selector."""

    ALL = ""
    PATCHED = "patched"
    """Those which were patched since their last whole write."""

    def has(self, value: Value) -> bool:
        return self is Selection.ALL or value.patch is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A request in the terms of the check.

    ``expected`` is the revision that a write is made on (None: any). For a read it is the oldest revision that
    may be shown (None: the read must show the present). ``uid`` is that of the object to be deleted, if it matters.
    """

    action: Action
    key: str = ""
    token: str = ""
    expected: int | None = None
    uid: str = ""
    selection: Selection = Selection.ALL
    collection: str = ""
    """Of a list."""
    limit: int = 0
    """A list comes in pages of so many; 0: in one piece. It is one operation nevertheless, and of one revision."""

    @property
    def creates_by_update(self) -> bool:
        return self.action is Action.UPDATE and is_in(self.key, LEASES)

    def allows(self, state: State) -> bool:
        """Whether a write may be made on this: on what it names, if it names anything."""
        if state is None:
            return self.creates_by_update or (self.expected is None and not self.uid)
        return self.expected in (None, state.revision) and self.uid in ("", state.uid)


class Result(enum.StrEnum):
    """What became of a request, as far as its client knows."""

    OK = "ok"
    EXISTS = "exists"
    """Refused: the key is there already."""
    ABSENT = "absent"
    """Refused: the key is not there."""
    CONFLICT = "conflict"
    """Refused: the key is not at the expected revision."""
    HOMELESS = "homeless"
    """Refused: the namespace is not there."""
    SHUT_OUT = "shut out"
    """Refused: the namespace is being deleted."""
    REFUSED = "refused"
    """Not done, for reasons that say nothing about the key."""
    UNKNOWN = "unknown"
    """Lost, late or failed: it may have happened, or may yet happen."""
    UNEXPECTED = "unexpected"
    """An answer that the workload should never get; ``text`` has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An answer. A deletion answers the uid alone, a list its revision and ``items``, the others a version."""

    result: Result
    revision: int = 0
    uid: str = ""
    version: State = None
    items: Mapping[str, Version] | None = None
    more: str = ""
    """What to ask for the next page with."""
    status: int = 0
    """Of the HTTP answer; 0: there was none."""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A request from when it was about to be sent to when its answer was complete (never: infinity)."""

    client: str
    intent: Intent
    invoked: float
    answered: float
    outcome: Outcome

    @property
    def is_write(self) -> bool:
        return self.intent.action not in READS

    @property
    def acknowledged(self) -> bool:
        return self.outcome.result is Result.OK

    def __str__(self) -> str:
        intent = self.intent
        parts = [f"{self.client}: {intent.action}", intent.key, intent.token]
        parts += [f"in {intent.collection}"] if intent.collection else []
        parts += [f"of {intent.selection}"] if intent.selection else []
        parts += [f"in pages of {intent.limit}"] if intent.limit else []
        parts += [] if intent.expected is None else [f"on revision {intent.expected}"]
        parts += [f"of uid {intent.uid}"] if intent.uid else []
        until = "no answer" if math.isinf(self.answered) else f"{self.answered:.6f}"
        return f"{' '.join(part for part in parts if part)} ({self.invoked:.6f} to {until}: {self.outcome.result})"


class Sight(NamedTuple):
    """A change as a watcher got it; ``change`` is None for a bookmark."""

    at: float
    revision: int
    change: Change | None


@dataclass(slots=True, kw_only=True)
class WatchRecord:
    """All that one watcher got since ``start``, over all of its connections."""

    name: str
    start: int
    selection: Selection = Selection.ALL
    collection: str = ""
    sights: list[Sight] = field(default_factory=list)
    connections: int = 0
    troubles: list[str] = field(default_factory=list)
    """Answers that a watch which resumes in time must not get, such as 410."""

    @property
    def is_of_everything(self) -> bool:
        """Whether it is of all objects of a resource."""
        return self.selection is Selection.ALL and "/" not in self.collection


@dataclass(slots=True, kw_only=True)
class Record:
    """A whole run: what there was when it began, and everything since.

    ``end`` is a revision that every watcher was waited for. ``notes`` is what else happened when, such as harm.
    """

    start: int
    initial: Mapping[str, Version]
    operations: Sequence[Operation]
    watches: Sequence[WatchRecord]
    end: int
    notes: Sequence[tuple[float, str]] = ()
    troubles: Sequence[str] = ()
    """What went so wrong that the run was ended."""

    def lines(self) -> list[str]:
        """Everything in the order of time, for a person who looks for the cause of a violation."""
        lines = [(operation.invoked, f"{operation} {operation.outcome}") for operation in self.operations]
        lines += [(at, f"--- {text}") for at, text in self.notes]
        for watch in self.watches:
            lines += [
                (sight.at, f"{watch.name}: {sight.change or 'BOOKMARK'} {sight.revision}") for sight in watch.sights
            ]
        return [f"{at:.6f} {text}" for at, text in sorted(lines)]
