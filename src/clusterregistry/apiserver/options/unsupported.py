"""Flags that are promised and do not work yet.

Each is known by name so that it is refused, never ignored: a server that silently does without its audit log is worse
than one that does not start. A change that implements a flag removes it here and adds a field to a group.
"""

from __future__ import annotations

from collections.abc import Mapping

_BY_TOPIC: Mapping[str, tuple[str, ...]] = {
    "authorization": ("authorization-always-allow",),
    "profiling": ("profiling",),
}

PLANNED: Mapping[str, str] = {flag: topic for topic, flags in _BY_TOPIC.items() for flag in flags}

# Some of them have a way to get the same today.
INSTEAD: Mapping[str, str] = {"authorization-always-allow": "use --authorization-mode=AlwaysAllow"}
