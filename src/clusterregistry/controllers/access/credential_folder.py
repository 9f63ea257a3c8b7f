"""Reads files of one folder, and nothing outside of it: no path in a name, no link that leads out, regular files only.

Links inside of the folder are followed, since a mounted Secret consists of them (``KEY.token -> ..data/KEY.token``).
Nothing blocks: a FIFO is opened without waiting, and refused like a device.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MAX_BYTES = 1 << 20

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", re.ASCII)
_ATTEMPTS = 3
"""A mounted Secret is exchanged by renaming a link: a path that was just resolved may be gone."""

Version = tuple[int, ...]


class FolderError(Exception):
    """A file that cannot be read; the message names the file and the cause, not the folder."""


class FileMissingError(FolderError):
    """There is no such file."""


@dataclass(frozen=True, slots=True)
class FolderFile:
    """The content of a file, and a version that differs once it is written or replaced."""

    content: bytes = field(repr=False)
    version: Version


def is_plain_name(name: str) -> bool:
    """Whether a text can be the name of a file in a folder: letters, digits, dots and dashes, no path, not hidden."""
    return _NAME.fullmatch(name) is not None


class CredentialFolder:
    """One folder of credentials. Its files are read again when they change."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def read(self, name: str) -> FolderFile:
        """A file of the folder. Raises FolderError."""
        if not is_plain_name(name):
            raise FolderError(f"{_shown(name)} is no plain file name")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._read(name)
            except FileNotFoundError:
                if attempt == _ATTEMPTS:
                    raise FileMissingError(f"there is no file {_shown(name)}") from None
            except OSError as error:
                why = "is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
                raise FolderError(f"{_shown(name)} cannot be read: {why}") from None
        raise AssertionError  # the last attempt returns or raises

    def version(self, name: str) -> Version:
        """The version of a file as it is now; empty: there is none. Costs one ``stat``."""
        try:
            return _version((self.directory / name).stat())
        except OSError:
            return ()

    def _read(self, name: str) -> FolderFile:
        root = Path(os.path.realpath(self.directory))
        target = Path(os.path.realpath(root / name))
        if not target.is_relative_to(root) or target == root:
            raise FolderError(f"{_shown(name)} is a link that leads out of the folder")
        with _opened(root, target.relative_to(root).parts) as descriptor:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise FolderError(f"{_shown(name)} is no regular file")
            content = _read_bounded(descriptor)
        if not content or len(content) > MAX_BYTES:
            raise FolderError(f"{_shown(name)} is empty or larger than {MAX_BYTES} bytes")
        return FolderFile(content, _version(found))


@contextmanager
def _opened(root: Path, parts: Sequence[str]) -> Iterator[int]:
    """Opens a path below a folder part by part: a link that is put there meanwhile is not followed."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(root, flags | os.O_DIRECTORY)
    try:
        for number, part in enumerate(parts, 1):
            kind = os.O_NONBLOCK if number == len(parts) else os.O_DIRECTORY
            outer, descriptor = descriptor, os.open(part, flags | kind, dir_fd=descriptor)
            os.close(outer)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_bounded(descriptor: int) -> bytes:
    content = bytearray()
    while len(content) <= MAX_BYTES and (piece := os.read(descriptor, MAX_BYTES + 1 - len(content))):
        content += piece
    return bytes(content)


def _version(found: os.stat_result) -> Version:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _shown(name: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in name[:100])
