"""Checks whether a stored value is an object as this server writes it."""

from __future__ import annotations

from typing import Any

_SLOT = b"\n"
"""The place of the resource version; see ``storage.object_bytes``."""


class ObjectCheck:
    """Calls ``object_problem``, and counts the problems."""

    def __init__(self) -> None:
        self.found = 0

    def __call__(self, key: str, value: bytes) -> str:
        problem = object_problem(key, value)
        self.found += bool(problem)
        return problem


def object_problem(key: str, value: bytes) -> str:
    """Returns the problem with the value of a key; empty when it is an object of that name."""
    import orjson  # noqa: PLC0415 - not for a mistyped command

    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        return f"its value is not JSON: {error}"
    metadata = found.get("metadata") if isinstance(found, dict) else None
    if not isinstance(metadata, dict):
        return "its value is not an object with metadata"
    return _metadata_problem(metadata, name=key.rpartition("/")[2]) or _slot_problem(value)


def _metadata_problem(metadata: dict[str, Any], *, name: str) -> str:
    if metadata.get("name") != name:
        return f"its metadata.name is {metadata.get('name')!r}"
    return "" if metadata.get("uid") else "it has no metadata.uid"


def _slot_problem(value: bytes) -> str:
    return "" if value.count(_SLOT) == 1 else "it has no place for its resource version"
