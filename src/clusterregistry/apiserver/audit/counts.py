"""What is counted about the audit log."""

from __future__ import annotations

from clusterregistry.apiserver.audit.levels import Level


class Counts:
    """Each field has one writer: the loop counts ``levels``, ``events`` and ``dropped``, the thread the others."""

    def __init__(self) -> None:
        self.levels = [0] * len(Level)
        """Requests, by how much of them is recorded."""
        self.events = 0
        self.dropped = 0
        """Events that found the queue full."""
        self.lost = 0
        """Events that could not be rendered, or not be written before the end."""
        self.failed_writes = 0
