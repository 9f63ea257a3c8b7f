"""Why a patch changed nothing.

PatchError
├── InvalidPatch     it is no patch of its kind: 400
├── PatchFailed      it is one, and does not fit the object: 422
└── PatchTooLarge    it is more than we are ready to do: 413
"""

from __future__ import annotations

from typing import Any


class PatchError(Exception):
    """A patch that cannot be applied; the message is for the caller."""


class InvalidPatch(PatchError):  # noqa: N818 - says what happened
    """The patch itself is malformed."""


class PatchFailed(PatchError):  # noqa: N818 - says what happened
    """The patch does not apply to this object."""


class PatchTooLarge(PatchError):  # noqa: N818 - says what happened
    """The patch exceeds a limit."""


_GO_KINDS: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
}


def not_decodable(value: Any, target: str) -> InvalidPatch:
    """The patch, or a part of it, has the wrong type; worded as Go's JSON decoder words it."""
    kind = _GO_KINDS.get(type(value), "null")
    return InvalidPatch(f"error decoding patch: json: cannot unmarshal {kind} into Go {target}")
