"""Why a configuration could not be applied.

* ApplyError
    * InvalidConfigurationError -- it does not fit the schema or the object: the client's mistake
    * ConflictsError            -- others own fields that it would change
"""

from __future__ import annotations

from dataclasses import dataclass


class ApplyError(Exception):
    """Nothing was applied."""


class InvalidConfigurationError(ApplyError):
    """``str()`` of it says what is wrong, in kube-apiserver's words."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One field that another manager owns; ``manager`` is described for people."""

    field: str
    manager: str


class ConflictsError(ApplyError):
    """``str()`` of it names them all; ``conflicts`` has them one by one."""

    def __init__(self, message: str, conflicts: list[Conflict]) -> None:
        super().__init__(message)
        self.conflicts = conflicts
