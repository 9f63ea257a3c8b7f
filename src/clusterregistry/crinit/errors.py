"""The errors of crinit that code has to tell apart.

OperatorError            the message states the problem, the remedy says what to do (``apimachinery.operator_error``)
├── HostError            the host cluster refused, or cannot be reached; ``status`` is the HTTP status, 0 without one
│   └── ForeignAnswer    the server that answered is no Kubernetes API
└── NotReady             an applied object did not become ready in time; ``evidence`` holds events and logs
"""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.apimachinery.operator_error import OperatorError


class HostError(OperatorError):
    def __init__(self, message: str, *, remedy: str, status: int = 0) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status

    @property
    def is_transient(self) -> bool:
        """Whether a retry may succeed: no response, 429, or a server error."""
        return self.status in (0, 429) or self.status >= 500  # noqa: PLR2004 - HTTP's


class ForeignAnswer(HostError):  # noqa: N818 - the name says it
    """Also where its status is 404: it says nothing about an object."""


class NotReady(OperatorError):  # noqa: N818 - the name says it
    def __init__(self, message: str, *, remedy: str, evidence: Sequence[str] = ()) -> None:
        super().__init__(message, remedy=remedy)
        self.evidence = tuple(evidence)
