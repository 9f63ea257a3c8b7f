"""The lines of a YAML document, so that a mistake in it can be named with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import yaml

Path = tuple[str | int, ...]

MAX_NODES = 200_000
"""Nodes whose lines are kept."""


@dataclass(slots=True)
class _Open:
    """A list or a mapping whose end was not read yet. ``key`` is None while a key is expected."""

    path: Path
    is_mapping: bool
    count: int = 0
    key: str | None = None

    def next_path(self) -> Path:
        """The path of the next value, which counts as read."""
        if not self.is_mapping:
            self.count += 1
            return (*self.path, self.count - 1)
        path, self.key = (*self.path, self.key or ""), None
        return path


def lines_of(content: bytes) -> Mapping[Path, int]:
    """The line (from 1) of each value of the first document, that of its key for a value in a mapping.

    What stands behind an alias or a merge has no line of its own. For a document that is not YAML, the lines so far.
    """
    lines: dict[Path, int] = {(): 1}
    stack: list[_Open] = []
    try:
        for event in yaml.parse(content, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentEndEvent) or len(lines) > MAX_NODES:
                break
            _read(event, stack, lines)
    except (yaml.YAMLError, ValueError):
        pass
    return lines


def _read(event: yaml.Event, stack: list[_Open], lines: dict[Path, int]) -> None:
    if isinstance(event, yaml.CollectionEndEvent):
        stack.pop()
        return
    if not isinstance(event, yaml.NodeEvent):
        return
    top = stack[-1] if stack else None
    line = event.start_mark.line + 1 if event.start_mark else 0
    if top is not None and top.is_mapping and top.key is None and isinstance(event, yaml.ScalarEvent):
        top.key = event.value
        lines[(*top.path, event.value)] = line
        return
    path = top.next_path() if top is not None else ()
    lines.setdefault(path, line)
    if isinstance(event, yaml.CollectionStartEvent):
        stack.append(_Open(path, isinstance(event, yaml.MappingStartEvent)))


def line_of(lines: Mapping[Path, int], path: Path) -> int:
    """The line of a value, or of the nearest value around it."""
    while path not in lines:
        path = path[:-1]
    return lines[path]


def shown(path: Path) -> str:
    """A path as people write it: ``rules[2].use.exec``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
