"""The audit log as a whole, ``open_audit_log``, and its outputs: a file with rotation, or standard output."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import stat
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.audit.event import Renderer
from clusterregistry.apiserver.audit.event_queue import EventQueue, Log
from clusterregistry.apiserver.audit.policy import Policy
from clusterregistry.apiserver.audit.redaction import LooksSecret, Masker
from clusterregistry.apiserver.audit.settings import AuditSettings, Counts, Rotation
from clusterregistry.apiserver.audit.trail import Audit, Event

_TIME = "%Y-%m-%dT%H-%M-%S"
_NO_DESCRIPTOR = -1
_STANDARD_OUTPUT = 1
_PRIVATE_FILE, _PRIVATE_DIRECTORY = 0o600, 0o700

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC

_log = logging.getLogger(__name__)


class AuditLogError(OperatorError):
    """The log cannot be written, which a server should say at its start rather than later."""

    def __init__(self, message: str) -> None:
        remedy = f"let the user that runs the server (uid {os.getuid()}) write there, or give another --audit-log-path"
        super().__init__(message, remedy=remedy)


@contextlib.asynccontextmanager
async def open_audit_log(settings: AuditSettings, counts: Counts, *, looks_secret: LooksSecret) -> AsyncIterator[Audit]:
    """A running audit log; at the end what waits is written. Raises PolicyError and AuditLogError."""
    policy, log = _policy(settings), _log_output(settings)
    queue: EventQueue[Event] = EventQueue(log, Renderer(Masker(looks_secret)).line, counts)
    queue.start()
    try:
        yield Audit(policy, queue, counts)
    finally:
        await asyncio.to_thread(queue.close)


def _policy(settings: AuditSettings) -> Policy:
    if settings.policy_file is not None:
        from clusterregistry.apiserver.audit.policy_file import load  # noqa: PLC0415 - it loads YAML

        return load(settings.policy_file)
    from clusterregistry.apiserver.audit.policy import DEFAULT_POLICY  # noqa: PLC0415 - not with a file

    return DEFAULT_POLICY


def _log_output(settings: AuditSettings) -> Log:
    if settings.path is None:
        return StandardOutput()
    file = LogFile(settings.path, settings.rotation)
    try:
        file.check()
    except OSError as error:
        raise AuditLogError(f"{settings.path} cannot be written: {error.strerror or error}") from None
    return file


# Outputs


class LogFile:
    """A file to append to. It is opened when it is needed, and again when somebody has moved or removed it."""

    def __init__(self, path: Path, rotation: Rotation, *, now: Callable[[], float] = time.time) -> None:
        self._path, self._rotation, self._now = path, rotation, now
        self._descriptor = _NO_DESCRIPTOR
        self._is_rotating = True
        """False while renaming fails: the file then grows, for that loses nothing."""

    def check(self) -> None:
        """Whether it can be written, without waiting for anybody. Raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_DIRECTORY)
        os.close(os.open(self._path, _FLAGS | os.O_NONBLOCK, _PRIVATE_FILE))

    def append(self, lines: list[bytes]) -> None:
        while lines:
            size = self._ensure_open()
            count = self._fitting(lines, size)
            if not count and self._rotate():
                continue
            count = count or len(lines)
            self._write(b"".join(lines[:count]), size)
            del lines[:count]

    def close(self) -> None:
        if self._descriptor != _NO_DESCRIPTOR:
            os.close(self._descriptor)
            self._descriptor = _NO_DESCRIPTOR

    def _fitting(self, lines: list[bytes], size: int | None) -> int:
        """How many of the lines fit into the file; one that is larger than a file has one for itself."""
        limit = self._rotation.most_bytes
        if not limit or size is None:
            return len(lines)
        count, total = 0, size
        for line in lines:
            total += len(line)
            if total > limit:
                break
            count += 1
        return count if count or size else 1

    def _ensure_open(self) -> int | None:
        """The size of the file at our path, which is open then; None when it is no regular file."""
        if self._descriptor != _NO_DESCRIPTOR:
            ours = os.fstat(self._descriptor)
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                if os.path.samestat(ours, self._path.stat()):
                    return ours.st_size if stat.S_ISREG(ours.st_mode) else None
            self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_DIRECTORY)
        self._descriptor = os.open(self._path, _FLAGS, _PRIVATE_FILE)
        opened = os.fstat(self._descriptor)
        if not stat.S_ISREG(opened.st_mode):
            return None
        return opened.st_size + self._finish_last_line(opened.st_size)

    def _finish_last_line(self, size: int) -> int:
        """A line that broke off, as at a power failure, must not swallow the next one."""
        if not size:
            return 0
        with self._path.open("rb") as reading:
            reading.seek(-1, os.SEEK_END)
            return 0 if reading.read() == b"\n" else os.write(self._descriptor, b"\n")

    def _write(self, data: bytes, size: int | None) -> None:
        """All of it or, if it is a regular file, nothing."""
        try:
            _write_all(self._descriptor, data)
        except OSError:
            with contextlib.suppress(OSError):
                if size is not None:
                    os.ftruncate(self._descriptor, size)
            self.close()
            raise

    def _rotate(self) -> bool:
        try:
            self._path.rename(self._backup_path())
        except OSError as error:
            if self._is_rotating:
                self._is_rotating = False
                _log.error("the audit log cannot be rotated and grows on: %s", error)
            return False
        self._is_rotating = True
        self.close()
        self._remove_old()
        return True

    def _backup_path(self) -> Path:
        """A name that is free: two files may be full within a millisecond."""
        moment = datetime.fromtimestamp(self._now(), UTC)
        while True:
            shown = f"{moment.strftime(_TIME)}.{moment.microsecond // 1000:03}"
            path = self._path.with_name(f"{self._path.stem}-{shown}{self._path.suffix}")
            if not path.exists():
                return path
            moment += timedelta(milliseconds=1)

    def _remove_old(self) -> None:
        backups = self._backups()
        most, days = self._rotation.most_backups, self._rotation.most_days
        doomed = {path for _, path in backups[most:]} if most else set()
        if days:
            oldest = datetime.fromtimestamp(self._now(), UTC) - timedelta(days=days)
            doomed |= {path for made, path in backups if made < oldest}
        for path in doomed:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                _log.warning("an old audit log cannot be removed: %s", error)

    def _backups(self) -> list[tuple[datetime, Path]]:
        """Rotated files with their times, the newest first."""
        name, ending = re.escape(self._path.stem), re.escape(self._path.suffix)
        named = re.compile(rf"{name}-(\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{{3}}){ending}", re.ASCII)
        found = []
        for path in self._path.parent.iterdir():
            if match := named.fullmatch(path.name):
                with contextlib.suppress(ValueError):
                    found.append((datetime.strptime(f"{match[1]}+0000", f"{_TIME}.%f%z"), path))
        return sorted(found, reverse=True)


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


class StandardOutput:
    """``--audit-log-path=-``: for those whose surroundings collect what a process prints."""

    def append(self, lines: list[bytes]) -> None:
        while lines:
            written = os.write(_STANDARD_OUTPUT, lines[0])
            lines[:1] = [lines[0][written:]] if written < len(lines[0]) else []

    def close(self) -> None:
        """It is not ours to close."""
