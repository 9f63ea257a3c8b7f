"""Static tokens from a file in kube-apiserver's format: ``token,user,uid,"group1,group2"``, one user a line.

Rules of kube-apiserver: at least three columns; blank lines are skipped; a line with an empty token is skipped with a
warning; of a repeated token the last line counts, with a warning.

Unlike kube-apiserver, which reads the file at its start only, ``TokenFile.follow`` reads it again when it changes. The
content is compared, so that every kind of replacement is detected: a write, a rename, or a switched symlink, as with
Secrets of Kubernetes. No cache holds tokens of this file: a change takes effect with the next request.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.authn.user import User, authenticated

_log = logging.getLogger(__name__)

COLUMNS = 3
MAX_BYTES = 10 * 1024 * 1024
"""Room for about 100,000 users. A larger file is a mistake, and is not read into memory."""

LOOK_SECONDS = 3.0
"""How often the file is read."""

SETTLE_SECONDS = 0.5
"""New content takes effect once the file is unchanged for this time: a writer may not be done yet."""

_GROUP_READ, _ALL_BUT_THE_OWNER = 0o040, 0o077


class TokenFileError(OperatorError):
    """The token file cannot be read or used; the message names the file and the line, never a token."""

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="correct the file that --token-auth-file names")


@dataclass(slots=True)
class Reloads:
    """Counts of reloads: those that took effect, and those that failed."""

    taken: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class _Content:
    """The content and status of the file at one moment."""

    data: bytes
    status: os.stat_result

    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def stamp(self) -> tuple[int, int]:
        """Changes with each write: two half-written files may have the same content."""
        return self.status.st_ino, self.status.st_mtime_ns


class TokenFile:
    """The users of a token file by token, from the file's newest valid content."""

    def __init__(self, path: Path) -> None:
        """Raises TokenFileError, and nothing else, for a file that cannot be used."""
        self._path = path
        content = _read(path)
        self._users = _users(path, content)
        self._can_be_read_again = stat.S_ISREG(content.status.st_mode)
        self._dealt_with = content.digest()
        self._seen = (self._dealt_with, content.stamp())
        self.reloads = Reloads()

    def __len__(self) -> int:
        return len(self._users)

    def refusal(self, token: str) -> str:  # noqa: ARG002 - the port's signature
        return "the token file does not have it"

    def user_of(self, token: str) -> User | None:
        return self._users.get(token)

    async def follow(self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Reads the file again and again, in a thread since a disk may be slow. Returns at once for a pipe."""
        seconds = LOOK_SECONDS
        while self._can_be_read_again:
            await sleep(seconds)
            try:
                is_changing = await asyncio.to_thread(self.look)
            except Exception:  # noqa: BLE001 - the server keeps its users and tries again
                _log.exception("%s could not be reloaded", self._path)
                is_changing = False
            seconds = SETTLE_SECONDS if is_changing else LOOK_SECONDS

    def look(self) -> bool:
        """Reads the file. True if its content is new and not in effect yet: call again soon, a writer may not be done.

        New content that is unchanged between two calls takes effect. If it is invalid, or the file is missing, that is
        logged once and the former users stay.
        """
        found = _found(self._path)
        content, stamp = (str(found), (0, 0)) if isinstance(found, TokenFileError) else (found.digest(), found.stamp())
        is_touched, self._seen = (content, stamp) != self._seen, (content, stamp)
        if content == self._dealt_with or is_touched:
            return content != self._dealt_with
        self._dealt_with = content
        self._take(found)
        return False

    def _take(self, found: _Content | TokenFileError) -> None:
        try:
            users = _users(self._path, _usable(found))
        except TokenFileError as error:
            self.reloads.failed += 1
            _log.error("%s: the former tokens stay in use. What to do: %s", error, error.remedy)
            return
        added, gone = len(users.keys() - self._users.keys()), len(self._users.keys() - users.keys())
        self._users = users
        self.reloads.taken += 1
        _log.info("%s was read again: %d tokens (new: %d, gone: %d)", self._path, len(users), added, gone)


def _read(path: Path, *, again: bool = False) -> _Content:
    """``again``: does not wait for the writer of a pipe that replaced the file."""
    flags = os.O_RDONLY | os.O_CLOEXEC | (os.O_NONBLOCK if again else 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if again and not stat.S_ISREG(status.st_mode):
                raise TokenFileError(f"{path}: not a regular file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise TokenFileError(f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise TokenFileError(f"{path}: larger than {MAX_BYTES // 1024**2} MiB, which is the most for a token file")
    return _Content(data, status)


def _found(path: Path) -> _Content | TokenFileError:
    try:
        return _read(path, again=True)
    except TokenFileError as error:
        return error


def _usable(found: _Content | TokenFileError) -> _Content:
    if isinstance(found, TokenFileError):
        raise found
    return found


def _users(path: Path, content: _Content) -> dict[str, User]:
    _warn_if_exposed(path, content.status)
    users: dict[str, User] = {}
    for line, record in _records(path, content.data):
        if len(record) < COLUMNS:
            wanted = f"at least {COLUMNS} columns (token, user name, user uid)"
            raise TokenFileError(f"{path}:{line}: a line needs {wanted}, this one has {len(record)}")
        token = record[0]
        if not token:
            _log.warning("%s:%d: the token is empty: line skipped", path, line)
            continue
        if token in users:
            _log.warning("%s:%d: the token is there twice: the later line counts", path, line)
        users[token] = _user(record)
    return users


def _warn_if_exposed(path: Path, status: os.stat_result) -> None:
    """Warns if other users of the machine can read or write the tokens.

    A file of another user may be readable by its group: that is how a server in a pod reads a Secret.
    """
    is_own = status.st_uid == os.geteuid()
    if not status.st_mode & (_ALL_BUT_THE_OWNER if is_own else _ALL_BUT_THE_OWNER & ~_GROUP_READ):
        return
    from shlex import quote  # noqa: PLC0415 - only for this warning

    _log.warning(
        "%s is open to other users of this machine (mode %04o): who reads a token can use it. What to do: chmod %s %s",
        path,
        stat.S_IMODE(status.st_mode),
        "600" if is_own else "640",
        quote(str(path)),
    )


def _records(path: Path, data: bytes) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(_text(path, data), newline=""), strict=True)
    try:
        for record in reader:
            if record:
                yield reader.line_num, record
    except csv.Error as error:
        raise TokenFileError(f"{path}:{reader.line_num}: this is not CSV: {error}") from None


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TokenFileError(f"{path}:{line}: not UTF-8 text (byte {error.start} of the file)") from None


def _user(record: list[str]) -> User:
    # Nameless groups match nothing, so an empty fourth column is no group rather than one with an empty name.
    groups = [group for group in record[COLUMNS].split(",") if group] if len(record) > COLUMNS else []
    return authenticated(name=record[1], uid=record[2], groups=groups)
