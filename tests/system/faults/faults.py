"""The kinds of violations that a check can find."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Fault(enum.StrEnum):
    """The values are texts for reports."""

    LOST_WRITE = "an acknowledged write is lost"
    PHANTOM = "something appeared that was never written"
    REFUSED_BUT_DONE = "a write took effect although it was refused"
    APPLIED_TWICE = "a write took effect twice"
    WRONG_ANSWER = "a write was answered with something else than it made"
    LOST_UPDATE = "a write was made on another version than it was based on"
    RESURRECTED = "a deleted object came back"
    SURVIVED = "an object outlived its namespace"
    LET_IN = "an object was created in a namespace that was known to be deleted"
    STALE_READ = "a read showed what was no longer so"
    WRONG_REFUSAL = "a request was refused for a reason that did not hold"
    REVISION_WENT_BACK = "a revision is not above those seen before the write began"
    GAP = "a watch missed a change"
    DUPLICATE = "a watch had a change twice"
    REORDERED = "a watch had changes out of order"
    DISAGREEMENT = "two watches had different changes of one revision"
    TROUBLE = "a client got an answer that it must not get"
    TRACEBACK = "a server met an error that it was not prepared for"


@dataclass(frozen=True, slots=True)
class Violation:
    """A fault, and where it shows."""

    fault: Fault
    text: str

    def __str__(self) -> str:
        return f"{self.fault}: {self.text}"
