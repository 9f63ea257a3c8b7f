"""The names of objects in a store: ``/GROUP/PLURAL/NAME``."""

from __future__ import annotations


def prefix_of(group: str, plural: str) -> str:
    """The prefix that all objects of a resource share."""
    return f"/{group}/{plural}/"
