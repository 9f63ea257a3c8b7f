"""The defaults of a Cluster: there are none yet.

v1alpha1 leaves out what is not given. The function is here so that the first default has its place, and so
that conversion between versions, when it comes, finds objects that went through it.
"""

from __future__ import annotations

from typing import Any


def set_defaults(_cluster: dict[str, Any]) -> None:
    """Fills in, in place, what a client left out."""
