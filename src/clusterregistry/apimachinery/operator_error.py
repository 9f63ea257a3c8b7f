"""The error that an operator can correct: a message that states the problem, and a remedy."""

from __future__ import annotations

import errno
import os
from pathlib import Path


class OperatorError(Exception):
    """A problem that an operator has to correct; ``remedy`` says what to do. ``cli.program`` prints both."""

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


class CertificateError(OperatorError):
    """A certificate, key or kubeconfig that cannot be used or made."""


FREE_SPACE = "free some space on that disk, or raise the quota; or name another --data-dir"

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_DENIED = frozenset({errno.EACCES, errno.EPERM})


def explain(path: Path, error: OSError, *, action: str) -> tuple[str, str]:
    """Returns a message and a remedy for a file that cannot be ``action`` (read, written, made, opened)."""
    message = f"{path} cannot be {action}: {error.strerror or error}"
    if error.errno in _NO_SPACE:
        return message, FREE_SPACE
    if error.errno == errno.EROFS:
        return message, "make that file system writable, or name another --data-dir"
    denying = _denied_by(path) if error.errno in _DENIED else None
    if denying is None:
        runs = f"the user that runs the server (uid {os.getuid()})"
        if action == "read":
            return message, f"make it readable for {runs}"
        return message, f"let {runs} write there, or name another --data-dir"
    owner, own = _user(denying.stat().st_uid), _user(os.getuid())
    why = f"{message}: {denying} belongs to {owner}, and the server runs as {own}"
    given = f"{denying} and what is in it" if denying.is_dir() else str(denying)
    return why, f"run the server as {owner}, give {given} to {own}, or name another --data-dir"


def is_known(error: OSError) -> bool:
    """Whether ``explain`` has a specific remedy for the error: no space, no permission, or a read-only file system."""
    return error.errno in {*_NO_SPACE, *_DENIED, errno.EROFS}


def _denied_by(path: Path) -> Path | None:
    """The path, or the directory above it, that denies access and belongs to another user."""
    for each in (path, *path.parents):
        try:
            owner = each.stat().st_uid
        except OSError:  # missing, or below a directory that denies access
            continue
        if not os.access(each, os.R_OK | os.W_OK | (os.X_OK if each.is_dir() else 0)):
            return each if owner != os.getuid() else None
    return None


def _user(number: int) -> str:
    import pwd  # noqa: PLC0415 - only for failures

    try:
        return f"uid {number} ({pwd.getpwuid(number).pw_name})"
    except KeyError:
        return f"uid {number}"
