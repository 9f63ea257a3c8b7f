"""Changes a kubeconfig file: under the lock that kubectl takes, the file as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.operator_error import OperatorError

SECRET = 0o600


@contextlib.contextmanager
def locked(file: Path, *, another: str) -> Iterator[None]:
    """Takes the lock that kubectl takes: a file beside it, created exclusively. Raises OperatorError.

    ``another`` says how to name another file.
    """
    place = file.resolve()
    lock = place.with_name(place.name + ".lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0)
    except FileExistsError:
        raise OperatorError(
            f"another program is changing {file}: {lock} is there",
            remedy="run the same command again; if no other program runs, remove that file first",
        ) from None
    except OSError as error:
        raise not_writable(file, error, another=another) from None
    try:
        os.close(descriptor)
        yield
    finally:
        lock.unlink(missing_ok=True)


def replace(file: Path, document: Mapping[str, Any], *, mode: int, another: str) -> None:
    """Replaces the file by a rename: readers see the old content or the new. A link stays a link, the owner stays.

    Raises OperatorError.
    """
    replace_content(file, yaml_codec.encode(dict(document)), mode=mode, another=another)


def replace_content(file: Path, content: bytes, *, mode: int, another: str) -> None:
    """The same with the bytes of the file."""
    place = file.resolve()
    try:
        descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(content)
                _own(descriptor, place)
                os.fchmod(descriptor, mode)
                opened.flush()
                os.fsync(descriptor)
            Path(temporary).replace(place)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise not_writable(file, error, another=another) from None


def _own(descriptor: int, place: Path) -> None:
    """Keeps the owner of the file: a file that root changes with sudo must stay readable for its user."""
    if place.exists():
        before = place.stat()
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)


def mode_of(file: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(file.resolve().stat().st_mode)


def not_writable(file: Path, error: OSError, *, another: str) -> OperatorError:
    return OperatorError(
        f"the kubeconfig {file} cannot be written: {error.strerror}", remedy=f"make it writable, or {another}"
    )
