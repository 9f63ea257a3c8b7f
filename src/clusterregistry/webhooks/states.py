"""Whether somebody we call answers: logged when it changes, not at each call."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)


class State:
    """Of one whom we call. ``consequence`` says what it means to users when it fails."""

    def __init__(self, name: str, *, consequence: str) -> None:
        self._name, self._consequence = name, consequence
        self._failing = False

    def failed(self, why: object) -> None:
        if not self._failing:
            _log.warning("%s fails: %s; %s", self._name, why, self._consequence)
        self._failing = True

    def worked(self) -> None:
        if self._failing:
            _log.info("%s answers again", self._name)
        self._failing = False
