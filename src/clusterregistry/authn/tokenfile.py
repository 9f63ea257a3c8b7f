"""Static tokens from a file in kube-apiserver's format: ``token,user,uid,"group1,group2"``, one user a line.

The file is read once, at start. Rules of kube-apiserver: at least three columns; blank lines are skipped; a line
with an empty token is skipped with a warning; of a repeated token the last line counts, with a warning.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterator
from pathlib import Path

from clusterregistry.authn.users import User, authenticated
from clusterregistry.startup import StartupProblem

log = logging.getLogger(__name__)

COLUMNS = 3


class TokenFileError(StartupProblem):
    """The token file cannot be read or used; the message names the file and the line."""

    def __init__(self, message: str) -> None:
        super().__init__(message, remedy="correct the file that --token-auth-file names")


class TokenFile:
    """The users of a token file, by token."""

    def __init__(self, users: dict[str, User]) -> None:
        self._users = users

    def __len__(self) -> int:
        return len(self._users)

    def user_of(self, token: str) -> User | None:
        return self._users.get(token)


def load(path: Path) -> TokenFile:
    """The users of a file. Raises TokenFileError, and nothing else, for a file that cannot be used."""
    users: dict[str, User] = {}
    for line, record in _records(path):
        if len(record) < COLUMNS:
            wanted = f"at least {COLUMNS} columns (token, user name, user uid)"
            raise TokenFileError(f"{path}:{line}: a line needs {wanted}, this one has {len(record)}")
        token = record[0]
        if not token:
            log.warning("%s:%d: the token is empty: line skipped", path, line)
            continue
        if token in users:
            log.warning("%s:%d: the token is there twice: the later line counts", path, line)
        users[token] = _user(record)
    return TokenFile(users)


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        for record in reader:
            if record:
                yield reader.line_num, record
    except csv.Error as error:
        raise TokenFileError(f"{path}:{reader.line_num}: this is not CSV: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise TokenFileError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise TokenFileError(f"{path}: not UTF-8 text (byte {error.start})") from None


def _user(record: list[str]) -> User:
    # Nameless groups match nothing, so an empty fourth column is no group rather than one with an empty name.
    groups = [group for group in record[COLUMNS].split(",") if group] if len(record) > COLUMNS else []
    return authenticated(name=record[1], uid=record[2], groups=groups)
