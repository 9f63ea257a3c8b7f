"""What ends crinit early.

CrinitError          the message says what is wrong, the remedy what to do
├── UsageError       the command line; ``problems`` names every mistake
├── HostError        the host cluster refused, or cannot be reached; ``status`` is the HTTP status, 0 without an answer
│   └── ForeignAnswer    what answers is no Kubernetes API
└── NotReady         something was applied and did not come up in time; ``evidence`` holds events and logs
"""

from __future__ import annotations

from collections.abc import Sequence


class CrinitError(Exception):
    """Something that a person has to correct."""

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


class UsageError(CrinitError):
    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems), remedy="see: crinit --help")
        self.problems = tuple(problems)


class HostError(CrinitError):
    def __init__(self, message: str, *, remedy: str, status: int = 0) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed in a moment: no answer, too many calls, or a fault of the server."""
        return self.status in (0, 429) or self.status >= 500  # noqa: PLR2004 - HTTP's


class ForeignAnswer(HostError):  # noqa: N818 - the name says it
    """Also where its status is 404: it says nothing about an object."""


class NotReady(CrinitError):  # noqa: N818 - the name says it
    def __init__(self, message: str, *, remedy: str, evidence: Sequence[str] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.evidence = tuple(evidence)
