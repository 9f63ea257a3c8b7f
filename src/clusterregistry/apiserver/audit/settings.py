"""What an audit log needs to know. Free of anything that takes time to import: options are read with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """How large a file may become, how many old ones are kept and for how long; 0 sets no limit."""

    most_bytes: int = 0
    most_backups: int = 0
    most_days: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may wait to be written, and how long what takes."""

    most_events: int = 10_000
    most_bytes: int = 64 * MEGABYTE
    gathering: float = 0.02
    """Seconds from the first event to the write, so that one write serves many."""
    retry: float = 1.0
    """Seconds after which a write that failed is tried again."""
    farewell: float = 5.0
    """Seconds that the end of the server waits for what is queued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """What to record, and where."""

    policy_file: Path | None
    """None is the policy that is built in."""
    path: Path | None
    """None is standard output."""
    rotation: Rotation
