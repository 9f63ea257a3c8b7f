"""The defaults of a Cluster: there are none yet.

The function exists so that the first default has its place, and so that later conversions find defaulted objects.
"""

from __future__ import annotations

from typing import Any


def set_defaults(_cluster: dict[str, Any]) -> None:
    """Sets defaults, in place."""
