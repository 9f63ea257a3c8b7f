"""Levels, stages, settings and counts of the audit log. Imported at start-up, so it imports nothing heavy."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args


class Level(enum.IntEnum):
    """Each level records more than the one before. The names are those on the wire."""

    None_ = 0
    Metadata = 1
    Request = 2
    RequestResponse = 3

    @property
    def shown(self) -> str:
        return self.name.rstrip("_")


LEVELS: Final = {level.shown: level for level in Level}

Stage = Literal["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"]
REQUEST_RECEIVED: Final = "RequestReceived"
RESPONSE_STARTED: Final = "ResponseStarted"
RESPONSE_COMPLETE: Final = "ResponseComplete"
PANIC: Final = "Panic"
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)


class Counts:
    """Each field has one writer: the loop counts ``levels``, ``events`` and ``dropped``, the thread the others."""

    def __init__(self) -> None:
        self.levels = [0] * len(Level)
        """Requests by their level."""
        self.events = 0
        self.dropped = 0
        """Events that found the queue full."""
        self.lost = 0
        """Events that could not be rendered, or not be written before the end."""
        self.failed_writes = 0


MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """The size of a file, and the number and age in days of old ones; 0 sets no limit."""

    most_bytes: int = 0
    most_backups: int = 0
    most_days: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of the queue, and times of the writing thread."""

    most_events: int = 10_000
    most_bytes: int = 64 * MEGABYTE
    gathering: float = 0.02
    """Seconds from the first event to the write, so that one write has many events."""
    retry: float = 1.0
    """Seconds after which a failed write is retried."""
    farewell: float = 5.0
    """Seconds that a shutdown waits for queued events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The policy and the output of the audit log."""

    policy_file: Path | None
    """None: the built-in policy."""
    path: Path | None
    """None: standard output."""
    rotation: Rotation
