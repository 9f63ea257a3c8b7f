"""What is known about one cluster from observing it: an ``Observation`` with sections, each with its own time.

Times are Unix times in seconds, by the clock of the observer. Texts from a cluster are bounded and printable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Reason(StrEnum):
    """Why a cluster, or a part of it, is not well. The names are those of conditions."""

    NAME_NOT_RESOLVED = "NameNotResolved"
    CONNECTION_REFUSED = "ConnectionRefused"
    TIMED_OUT = "TimedOut"
    TLS_UNTRUSTED = "TLSUntrusted"
    CREDENTIAL_MISSING = "CredentialMissing"
    CREDENTIAL_EXPIRED = "CredentialExpired"
    UNAUTHORIZED = "Unauthorized"
    FORBIDDEN = "Forbidden"
    NOT_READY = "NotReady"
    BREAKER_OPEN = "BreakerOpen"
    NEVER_OBSERVED = "NeverObserved"
    IDENTITY_CHANGED = "IdentityChanged"
    NO_ENDPOINT = "NoEndpoint"
    """The cluster has no server endpoint, or none for the address of the observer."""
    BAD_RESPONSE = "BadResponse"
    """The cluster answered with something else than a Kubernetes API: too large, a redirect, no JSON, another kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A reason and a message for people: one line, at most 256 characters, without credentials."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section(Generic[T]):
    """One part of an observation: the value that was last read, when, and why the newest attempt failed.

    ``value`` with ``failure``: the last known value, read at ``at``. Neither: not asked yet.
    """

    value: T | None = None
    at: float = 0.0
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The answer of ``/readyz``."""

    ready: bool
    failed_checks: tuple[str, ...] = ()
    """The names of checks that fail; at most ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Counts and sums over the nodes. Quantities are in Kubernetes' notation, such as ``32`` and ``64Gi``."""

    total: int
    ready: int
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    not_ready: tuple[str, ...] = ()
    """The names of nodes that are not ready; at most ten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCertificate:
    """The certificate that the cluster's API server has shown, in a verified connection."""

    not_after: float
    authority: str
    """SHA-256 of the subject public key of the authority that verified it, in hexadecimal digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialInfo:
    """What is known about the credential that was used: where it came from and when it ends (None: not known)."""

    source: str
    """The rule and the resolver, such as ``rule 2 (file)``; never the credential."""
    expires_at: float | None = None
    renews: bool = False
    """The source makes a new credential before this one ends, so that its end needs no attention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What is known about one cluster after a round of probes."""

    at: float
    """The end of the newest round; also of one in which the cluster was not asked, because its breaker is open."""
    failure: Failure | None = None
    """Why the newest round learned nothing: no endpoint or credential, no connection, no answer in time, 401.

    None: the cluster answered, whatever it said.
    """
    endpoint: str = ""
    """The URL of the server that was asked."""
    credential: CredentialInfo | None = None
    serving: ServingCertificate | None = None
    health: Section[Health] = Section()
    version: Section[str] = Section()
    """``gitVersion`` of ``/version``, such as ``v1.36.4``."""
    nodes: Section[Nodes] = Section()
    kube_system_uid: Section[str] = Section()
    breaker_open_until: float = 0.0
    """Until then the cluster is not asked; 0: the breaker is closed. ``failure`` stays that of the last real round."""
    asked_at: float = 0.0
    """The end of the newest round in which the cluster was asked; 0: never."""
    failed_rounds: int = 0
    """Rounds that failed, one after the other."""
    more: Mapping[str, Section[Any]] = field(default_factory=dict)
    """Sections of probes that a program has added, by the names of the probes."""
