"""The log of refused credentials: whose, from where and why, at a rate that strangers cannot raise."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from clusterregistry.apiserver.authn.refused import CredentialRefused

MAX_LINES = 5
"""Lines a second. The rest of a second is only counted: neither the disk nor the memory fills up."""

MAX_CHARACTERS = 500

_SECOND = 1.0

_log = logging.getLogger(__name__)

Later = Callable[[float, Callable[[], None]], object]


def _in_the_loop(seconds: float, call: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_later(seconds, call)


class RefusedCredentials:
    """Writes a line for each, and a count in the place of those that were too many."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, later: Later = _in_the_loop) -> None:
        self._clock, self._later = clock, later
        self._since = float("-inf")
        self._lines = self._left_out = 0

    def note(self, refused: CredentialRefused, address: str) -> None:
        now = self._clock()
        if now - self._since >= _SECOND:
            self._tell_left_out()
            self._since, self._lines = now, 0
        if self._lines >= MAX_LINES:
            self._leave_out()
            return
        self._lines += 1
        _log.warning("refused a %s, from %s", _shown(refused.describe()), address or "an unknown address")

    def _leave_out(self) -> None:
        if not self._left_out:
            self._later(_SECOND, self._tell_left_out)  # also when none is refused any more
        self._left_out += 1

    def _tell_left_out(self) -> None:
        if self._left_out:
            _log.warning("refused credentials not logged: %d; at most %d a second are", self._left_out, MAX_LINES)
            self._left_out = 0


def _shown(text: str) -> str:
    """On one line and not too long: a certificate's subject is what its owner asked for."""
    escaped = text if text.isprintable() else ascii(text)[1:-1]
    return escaped if len(escaped) <= MAX_CHARACTERS else f"{escaped[:MAX_CHARACTERS]}..."
