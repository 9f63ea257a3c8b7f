"""The limit of open files: each connection needs a file descriptor.

Raises the limit as far as it goes without privileges, and computes how many connections fit under it, so that the
server refuses connections itself rather than fail to open files.
"""

from __future__ import annotations

import contextlib
import logging
import resource
from pathlib import Path

OWN = 256
"""Descriptors kept for storage, logs, and connections to other servers."""

_LEAST = 4
"""Descriptors that are kept however low the limit is: for reading objects that are not in memory."""

_UNLIMITED = 2**31

_log = logging.getLogger(__name__)


def connection_limit(connections: int) -> int:
    """Returns how many of the wanted connections fit under the limit, at least 1. Warns when they are fewer."""
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
    """Raises the soft limit to the hard one and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems call it unlimited and refuse to make it so
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return _UNLIMITED if soft == resource.RLIM_INFINITY else soft


def _in_use() -> int:
    """How many files the process has open; 0 where the system has no /proc."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0
