"""Whether a server that we call answers: logged when it changes, not at each call."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)


class HealthState:
    """The state of one server. ``consequence`` is what its failure means to users.

    ``at_first`` is the problem until the first call, for a server that must have answered once.
    """

    def __init__(self, name: str, *, consequence: str, at_first: str = "") -> None:
        self.name, self._consequence = name, consequence
        self._failing, self._problem = False, at_first

    def failed(self, why: object) -> None:
        if not self._failing:
            _log.warning("%s fails: %s; %s", self.name, why, self._consequence)
        self._failing, self._problem = True, str(why) or "no answer"

    def worked(self) -> None:
        if self._failing:
            _log.info("%s answers again", self.name)
        self._failing, self._problem = False, ""

    def problem(self) -> str:
        """Why the last call failed; empty when it did not. A health check."""
        return self._problem
