"""Whether etcd is still the one whose past we know: it may have been restored from a snapshot, or be another one.

Revisions then begin anew from an earlier one. All that was read since is of no use, and the numbers do not show it: the
same revision is another state. Every answer of etcd names its cluster and its revision, so every answer is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterregistry.apiserver.storage.errors import StorageUnavailable


class Restored(StorageUnavailable):
    """Everything has to be read anew before anything can be said."""


class Lineage:
    """The cluster that answers, and the newest revision that is known of it.

    ``on_break`` is called with a reason when an answer does not belong to what was known; once, until ``begin_anew``.
    """

    def __init__(self, on_break: Callable[[str], None] = lambda _: None) -> None:
        self._on_break = on_break
        self._etcd = 0
        self._broken = False
        self.revision = 0
        """Whoever asks from now on is answered with this one or a newer one."""

    def check(self, header: Any, *, known: int) -> None:
        """Looks at an answer to a question that was asked when ``known`` was the newest revision.

        Not at those of a single member, such as to a watch: it may lag behind the others.
        """
        revision = header.revision
        if revision < known or header.etcd_id != self._etcd:
            self._compare(header.etcd_id, revision, known)
        self.heard(revision)

    def heard(self, revision: int) -> None:
        """Takes note of a revision that is committed."""
        self.revision = max(self.revision, revision)

    def begin_anew(self) -> None:
        """What is answered from now on counts, whatever it is."""
        self._etcd = self.revision = 0
        self._broken = False

    def _compare(self, etcd: int, revision: int, known: int) -> None:
        self._etcd = self._etcd or etcd
        if etcd != self._etcd:
            self.broke(f"it has another ID ({etcd:x}) than before ({self._etcd:x})")
        elif revision < known and revision < self.revision:  # else it was asked before all began anew
            self.broke(f"it is at revision {revision}, and was at {known}")

    def broke(self, reason: str) -> None:
        """Takes note that etcd is not the one that it was."""
        if not self._broken:
            self._broken = True
            self._on_break(reason)
