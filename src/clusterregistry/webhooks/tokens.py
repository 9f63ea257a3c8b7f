"""The token with which we call: fixed, or in a file that somebody renews."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

REREAD_SECONDS = 60.0
MAX_BYTES = 1 << 16


class FixedToken:
    """The same for ever; empty: none is sent."""

    def __init__(self, token: str = "") -> None:
        self._token = token

    def read(self) -> str:
        return self._token


class TokenFromFile:
    """Read at most once a minute. When the file cannot be read any more, the last token counts."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._token = _content(path)
        self._read_at = clock()

    def read(self) -> str:
        if self._clock() - self._read_at >= REREAD_SECONDS:
            self._read_at = self._clock()
            try:
                self._token = _content(self._path)
            except ValueError:
                return self._token
        return self._token


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
