"""Files of the certificate store: whole or not at all, and secrets for their owner only."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from clusterregistry.apimachinery import file_errors
from clusterregistry.apiserver.pki.errors import CertificateError
from clusterregistry.apiserver.pki.layout import Layout

PUBLIC = 0o644
SECRET = 0o600
_OTHERS = 0o077

MAX_BYTES = 10 * 1024 * 1024
"""The authorities of a whole operating system take a fiftieth. The files are read again every few seconds."""


def read(path: Path) -> bytes | None:
    """The content of a file; None when there is none."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        message, remedy = file_errors.explain(path, error, action="read")
        raise CertificateError(message, remedy=remedy) from None
    if len(content) > MAX_BYTES:
        remedy = "name a file that holds certificates or a key in PEM, and nothing else"
        raise CertificateError(f"{path} is larger than {MAX_BYTES // 1024**2} MiB", remedy=remedy)
    return content


def write(path: Path, content: bytes, *, mode: int) -> None:
    """Replaces a file in one step: whoever reads it, also after a crash, sees the old content or the new."""
    try:
        _replace(path, content, mode=mode)
    except OSError as error:
        raise _cannot_write(path, error) from None


def _replace(path: Path, content: bytes, *, mode: int) -> None:
    import tempfile  # noqa: PLC0415 - most starts write nothing

    # mkstemp makes the file for its owner only, so a secret is never open, not even for a moment.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(descriptor, mode)
            file.flush()
            os.fsync(descriptor)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def make_directory(path: Path) -> None:
    """Makes a directory, for its owner only, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _cannot_write(Path(error.filename or path), error) from None


@contextlib.contextmanager
def exclusive(layout: Layout) -> Iterator[None]:
    """Makes the directories and holds a lock: two first starts at once must not make two authorities."""
    make_directory(layout.data_dir)
    make_directory(layout.cert_dir)
    try:
        lock = layout.lock.open("wb")
    except OSError as error:
        raise _cannot_write(layout.lock, error) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest(*contents: bytes | None) -> str:
    """One fingerprint of several files; a missing one counts as such."""
    whole = hashlib.sha256()
    for content in contents:
        whole.update(b"-" if content is None else b"%d:%b" % (len(content), content))
    return whole.hexdigest()


def open_to_others(path: Path) -> bool:
    """Whether a file that exists can be read or written by others than its owner."""
    try:
        return bool(path.stat().st_mode & _OTHERS)
    except OSError:
        return False


def _cannot_write(path: Path, error: OSError) -> CertificateError:
    message, remedy = file_errors.explain(path, error, action="written")
    return CertificateError(message, remedy=remedy)
