"""The token with which we call: fixed, or in a file that somebody renews."""

from __future__ import annotations

from pathlib import Path

MAX_BYTES = 1 << 16


class FixedToken:
    """The same for ever; empty: none is sent."""

    def __init__(self, token: str = "") -> None:
        self._token = token

    def read(self) -> str:
        return self._token


class TokenFromFile:
    """Read again whenever the file is another one. When it cannot be read any more, the last token counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version = _version(path)
        self._token = _content(path)

    def read(self) -> str:
        version = _version(self._path)
        if version != self._version:
            try:
                self._token, self._version = _content(self._path), version
            except ValueError:
                return self._token
        return self._token


def _version(path: Path) -> tuple[int, ...]:
    """Differs once a file is written or replaced; to ask for it costs next to nothing beside a call."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _content(path: Path) -> str:
    """Raises ValueError, with a message for people, when there is no token."""
    try:
        with path.open("rb") as file:
            token = file.read(MAX_BYTES + 1).decode("ascii").strip()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: holds other characters than a token can") from None
    check(token, of=str(path))
    return token


def check(token: str, *, of: str) -> None:
    """Raises ValueError for what cannot be sent in a header."""
    if not token:
        raise ValueError(f"{of}: there is no token in it")
    if len(token) > MAX_BYTES or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(f"{of}: holds other characters than a token can, or too many")
