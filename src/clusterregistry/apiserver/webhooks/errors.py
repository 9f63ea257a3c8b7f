"""What can go wrong with a call.

CallFailed          no usable answer; the message says why, and never holds what was sent
ConfigFileError     a StartupProblem: the file that says whom to call cannot be used
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clusterregistry.apimachinery.operator_error import OperatorError


class CallFailed(Exception):  # noqa: N818 - the name says it
    """There is no usable answer. ``transient``: the same call may succeed in a moment.

    ``status`` is that of an HTTP answer which says no; 0 when there was none.
    """

    def __init__(self, message: str, *, transient: bool = False, status: int = 0) -> None:
        super().__init__(message)
        self.transient = transient
        self.status = status


class ConfigFileError(OperatorError):
    """A configuration file with everything that is wrong in it; ``whom`` it is about, such as ``the webhook``."""

    def __init__(self, path: Path, mistakes: Sequence[str], *, whom: str) -> None:
        super().__init__(
            f"{path}: {'; '.join(mistakes)}",
            remedy=f"correct the file: a kubeconfig whose current context names {whom} as its cluster",
        )
        self.mistakes = tuple(mistakes)
