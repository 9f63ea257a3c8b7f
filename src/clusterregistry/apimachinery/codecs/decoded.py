"""The result of every decoder, and the limits of every decoded value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 200
"""Levels of lists and maps. orjson encodes 254 at most, and responses wrap objects in a few more; recursive code stays
far below Python's limit."""

MAX_VALUES = 200_000
"""Values in one document, about. Three megabytes of nothing but empty lists would be a million: seconds of work, and a
hundred megabytes, for each request. No real object comes near."""

MAX_STRICT_ERRORS = 100
"""The most repeated or unknown fields that are reported for one document, as in sigs.k8s.io/json."""

MAX_SHOWN = 4096
"""Characters of a key or a path in a message. A key of one megabyte can have a hundred thousand fields below it."""

TOO_MANY_VALUES = f"the document has more than {MAX_VALUES} values"

YAML_ERRORS = "yaml: unmarshal errors:\n"
"""What go-yaml's one strict error starts with, before a line for each wrong key."""


class DecodeError(Exception):
    """The bytes are not a document of the format; the message says why, worded as Go's decoders word it."""


@dataclass(slots=True)
class Decoded:
    """A value and the errors of strict decoding.

    ``duplicates`` are the paths of duplicate keys of a JSON document, in its order; ``strict_errors`` are the texts for
    warnings or a strict decoding error, in any format. There are MAX_STRICT_ERRORS of both at most, and none unless
    decoding was strict.
    """

    value: Any
    duplicates: list[str] = field(default_factory=list)
    strict_errors: list[str] = field(default_factory=list)

    @property
    def warnings(self) -> list[str]:
        """The strict errors one by one: as kube-apiserver does, each line of a YAML error is a warning of its own."""
        found: list[str] = []
        for error in self.strict_errors:
            lines = error.removeprefix(YAML_ERRORS)
            found += [error] if lines == error else [line.strip() for line in lines.split("\n")]
        return found


def cut(text: str, limit: int = MAX_SHOWN) -> str:
    """A client's text, cut for a message."""
    return text if len(text) <= limit else f"{text[:limit]}..."


def too_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Whether lists and maps are nested deeper than ``limit``. Never recurses."""
    level = [value]
    for _ in range(limit + 1):
        containers = [item for item in level if isinstance(item, (dict, list))]
        if not containers:
            return False
        level = [
            child
            for container in containers
            for child in (container.values() if isinstance(container, dict) else container)
        ]
    return True
