"""The files of the certificates: where they are, how they are read and written, and the record of what they hold."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery import operator_error
from clusterregistry.apimachinery.operator_error import CertificateError


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The generated files. What people and clients need is in the data directory, the rest in the other."""

    data_dir: Path
    cert_dir: Path

    @property
    def ca_certificate(self) -> Path:
        return self.data_dir / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.data_dir / "ca.key"

    @property
    def server_ca(self) -> Path:
        """What clients verify the server by, when that is not ``ca_certificate``."""
        return self.data_dir / "server-ca.crt"

    @property
    def kubeconfig(self) -> Path:
        return self.data_dir / "admin.kubeconfig"

    @property
    def serving_certificate(self) -> Path:
        return self.cert_dir / "serving.crt"

    @property
    def serving_key(self) -> Path:
        return self.cert_dir / "serving.key"

    @property
    def admin_certificate(self) -> Path:
        return self.cert_dir / "admin.crt"

    @property
    def admin_key(self) -> Path:
        return self.cert_dir / "admin.key"

    @property
    def record(self) -> Path:
        """What is known of the certificates, so that a start need not parse them."""
        return self.cert_dir / "record.json"

    @property
    def lock(self) -> Path:
        return self.cert_dir / ".lock"


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
        message, remedy = operator_error.explain(path, error, action="read")
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
    message, remedy = operator_error.explain(path, error, action="written")
    return CertificateError(message, remedy=remedy)


# The record


@dataclass(frozen=True, slots=True)
class Facts:
    """What a certificate is good for, as long as its files have this digest. Times are seconds since 1970."""

    digest: str
    not_after: float
    names: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    """Those of the names that the operator asked for."""


@dataclass(frozen=True, slots=True)
class Record:
    """Facts by name (``ca``, ``serving``, ``admin``), and the digest of the kubeconfig as we wrote it."""

    facts: Mapping[str, Facts] = field(default_factory=dict)
    kubeconfig: str = ""


def load(path: Path) -> Record:
    """The record, or an empty one. Never raises for what is in the file."""
    try:
        document = json.loads(read(path) or b"{}")
        return Record({name: _facts(each) for name, each in document["facts"].items()}, str(document["kubeconfig"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, CertificateError):
        return Record()


def _facts(document: Mapping[str, Any]) -> Facts:
    names = tuple(str(name) for name in document["names"])
    further = tuple(str(name) for name in document.get("further", ()))  # older records know of none
    return Facts(str(document["digest"]), float(document["not_after"]), names, further)


def save(path: Path, record: Record) -> None:
    document = {"facts": {name: asdict(each) for name, each in record.facts.items()}, "kubeconfig": record.kubeconfig}
    write(path, json.dumps(document, indent=1).encode() + b"\n", mode=SECRET)
