"""The keys whose values cannot be read. They are set aside, so that all others are served, and logged."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from clusterregistry.apiserver.storage.errors import CorruptObject

_MOST_LOGGED = 100
"""The log names at most so many keys: a program that overwrites all of them needs no line for each."""

_log = logging.getLogger(__name__)


class Finding(NamedTuple):
    """Why a value cannot be read, and since which revision."""

    revision: int
    reason: str


class CorruptObjects(Mapping[str, Finding]):
    """Findings by key. Only the cache changes them.

    Neither the values are kept nor the exceptions, which would keep them.
    """

    def __init__(self) -> None:
        self._findings: dict[str, Finding] = {}

    def __getitem__(self, key: str) -> Finding:
        return self._findings[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._findings)

    def __len__(self) -> int:
        return len(self._findings)

    def add(self, error: CorruptObject) -> None:
        """Sets a key aside, and logs it once per revision."""
        found = Finding(error.revision, error.reason)
        if self._findings.get(error.key) == found:
            return
        self._findings[error.key] = found
        if len(self._findings) <= _MOST_LOGGED:
            _log.error(
                "%s. It is set aside: no list or watch shows it. What to do: delete the object through the API, "
                "or write a good value to the key",
                error,
            )
        elif len(self._findings) == _MOST_LOGGED + 1:
            _log.error("more than %d stored objects cannot be read; the others are not named here", _MOST_LOGGED)

    def discard(self, key: str) -> None:
        """Removes a key that was deleted or can be read again."""
        if self._findings.pop(key, None) is not None and len(self._findings) < _MOST_LOGGED:
            _log.info("what was set aside under %r is gone, or can be read again", key)

    def check(self, key: str) -> None:
        """Raises CorruptObject for a key that is set aside."""
        found = self._findings.get(key)
        if found is not None:
            raise CorruptObject(key, revision=found.revision, reason=found.reason)
