"""What every decoder answers with, and the limit that every decoded value keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 200
"""Levels of lists and maps. orjson writes no more than 254, and answers wrap objects in a few more; code that
recurses into a value stays well clear of Python's own limit."""

MAX_VALUES = 200_000
"""Values in one document, about. Three megabytes of nothing but empty lists would be a million: seconds of work, and a
hundred megabytes, for each request that sends them. No object that anybody stores comes near."""

MAX_STRICT_ERRORS = 100
"""Repeated or unknown fields that are told of one document, as in sigs.k8s.io/json."""

MAX_SHOWN = 4096
"""Characters of a key or a path that a message shows. A key of one megabyte can have a hundred thousand below it."""

TOO_MANY_VALUES = f"the document has more than {MAX_VALUES} values"

YAML_ERRORS = "yaml: unmarshal errors:\n"
"""What go-yaml's one strict error starts with, before a line for each wrong key."""


class DecodeError(Exception):
    """The bytes are not a document of the format; the message says why, worded as Go's decoders word it."""


@dataclass(slots=True)
class Decoded:
    """A value and what strict decoding would have refused about it.

    ``duplicates`` are the paths of keys that stand twice in one JSON map, in document order; ``strict_errors`` are
    the texts for warnings or a strict decoding error, whatever the format was. Of both there are MAX_STRICT_ERRORS at
    most, and none unless decoding was strict.
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
    """A text that a client chose, no longer than a message shows it."""
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
