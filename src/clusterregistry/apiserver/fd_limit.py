"""File descriptors: each connection needs one, and the system gives a process only so many.

Raises the limit as far as that goes without privileges, and says how many connections fit under it, so that the
server turns clients away itself rather than find that it can open nothing any more.
"""

from __future__ import annotations

import contextlib
import logging
import resource
from pathlib import Path

OWN = 256
"""Descriptors kept for what is no client: storage, logs, and connections of our own to others."""

_LEAST = 4
"""Descriptors that are kept however few there are: for reading what is not in memory."""

_UNLIMITED = 2**31

_log = logging.getLogger(__name__)


def connection_limit(connections: int) -> int:
    """How many of so many connections can be had, at least 1. Warns when they are fewer."""
    limit = _raised()
    possible = max(min(max(limit - OWN, limit // 2), limit - _in_use() - _LEAST), 1)
    if connections <= possible:
        return connections
    _log.warning(
        "at most %d connections are taken, not %d: the process may have only %d open files; "
        "raise the hard limit (ulimit -Hn, LimitNOFILE= of systemd), or lower --max-connections",
        possible,
        connections,
        limit,
    )
    return possible


def _raised() -> int:
    """The number of open files that the process may have, after raising it to what it may raise it to."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems call it unlimited and refuse to make it so
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return _UNLIMITED if soft == resource.RLIM_INFINITY else soft


def _in_use() -> int:
    """How many files the process has open; 0 where the system does not tell."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0
