"""Exit statuses. They are part of the interface: --help lists them."""

from __future__ import annotations

OK = 0
FOUND = 1
"""A check found a problem; the check itself succeeded."""

USAGE = 2
STARTUP = 3
INTERRUPTED = 130
"""Ctrl-C ended a command before it was done, as shells report it."""
