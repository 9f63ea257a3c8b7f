"""The errors of calls.

CallFailed          there is no usable response; the message never shows what was sent
ConfigFileError     an OperatorError: the configuration file of a webhook cannot be used
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clusterregistry.apimachinery.operator_error import OperatorError


class CallFailed(Exception):  # noqa: N818 - the name says it
    """There is no usable response. ``status`` is the HTTP status of a refusal; 0 if there was no response."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ConfigFileError(OperatorError):
    """A configuration file with all its problems; ``server`` is its server in words, such as ``the webhook``."""

    def __init__(self, path: Path, problems: Sequence[str], *, server: str) -> None:
        super().__init__(
            f"{path}: {'; '.join(problems)}",
            remedy=f"correct the file: a kubeconfig whose current context names {server} as its cluster",
        )
        self.problems = tuple(problems)
