"""When somebody's rights changed last, by the revisions of the storage."""

from __future__ import annotations

from clusterregistry.apiserver.authn.user import User

_MOST = 100_000
"""Of how many users and groups the last change is known one by one."""


class Changes:
    """The last change for each user and group. What is not known counts as changed: that only makes more work."""

    def __init__(self) -> None:
        self._begin = 0
        self._last = 0
        self._users: dict[str, int] = {}
        self._groups: dict[str, int] = {}

    def begin_at(self, revision: int) -> None:
        """What came before this revision is not known."""
        self._begin = max(self._begin, revision)

    def begin_anew(self, revision: int) -> None:
        """The same where revisions begin anew, as in a storage that was restored: those told before say nothing."""
        self._users.clear()
        self._groups.clear()
        self._begin = self._last = revision

    def note(self, revision: int, *, user: str | None, group: str | None) -> None:
        """Something changed for a user or a group."""
        self._last = max(self._last, revision)
        if len(self._users) + len(self._groups) >= _MOST:
            self._users.clear()
            self._groups.clear()
            self.begin_at(self._last)
        if user is not None:
            self._users[user] = max(revision, self._users.get(user, 0))
        if group is not None:
            self._groups[group] = max(revision, self._groups.get(group, 0))

    def last_for(self, user: User) -> int:
        """The revision of the last change that may concern a user."""
        of_groups = (self._groups.get(group, 0) for group in user.groups)
        return max(self._begin, self._users.get(user.name, 0), *of_groups)
