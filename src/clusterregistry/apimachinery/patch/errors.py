"""Errors of patches.

PatchError
├── InvalidPatch     the patch is malformed: 400
├── PatchFailed      the patch does not apply to the object: 422
└── PatchTooLarge    the patch exceeds a limit: 413
"""

from __future__ import annotations

from typing import Any

from clusterregistry.apimachinery.meta.json_types import json_type


class PatchError(Exception):
    """A patch cannot be applied. The message is for the client."""


class InvalidPatch(PatchError):  # noqa: N818 - says what happened
    """The patch itself is malformed."""


class PatchFailed(PatchError):  # noqa: N818 - says what happened
    """The patch does not apply to this object."""


class PatchTooLarge(PatchError):  # noqa: N818 - says what happened
    """The patch exceeds a limit."""


def not_decodable(value: Any, target: str) -> InvalidPatch:
    """The error for a patch, or a part of it, of a wrong type, in the words of Go's JSON decoder."""
    return InvalidPatch(f"error decoding patch: json: cannot unmarshal {json_type(value)} into Go {target}")
