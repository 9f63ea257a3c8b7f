"""The certificates of simulated members: an authority and a leaf each (P-256), made once, kept in the cache folder."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from clusterregistry.apimachinery import certificates
from tools.programs import cache

_LASTING = 30 * 24 * 3600.0
"""Kept certificates are good for so long at least."""
_DAY = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Identity:
    """An authority, and files with the certificates that it has issued, each together with its key."""

    authority: bytes
    """PEM."""
    authority_key: bytes
    serving: Path
    client: Path

    def sign_client(self, user: str, *, group: str = "", now: float | None = None) -> tuple[bytes, bytes]:
        """A client certificate of this authority and its key, as PEM."""
        key = certificates.new_key()
        start = time.time() if now is None else now
        made = certificates.client_certificate(self._authority(), key, user=user, group=group, now=start)
        return made, certificates.key_pem(key)

    def client_pair(self) -> tuple[bytes, bytes]:
        """The certificate and the key of the usual client."""
        content = self.client.read_bytes()
        start = content.index(b"-----BEGIN PRIVATE KEY")
        return content[:start], content[start:]

    def sign_serving(self, directory: Path, label: str, *, names: tuple[str, ...], now: float) -> Path:
        """Another serving certificate, such as an expired one."""
        return _write_serving(self._authority(), directory / f"{label}.pem", names=names, now=now)

    def _authority(self) -> certificates.Authority:
        key = load_pem_private_key(self.authority_key, password=None)
        assert isinstance(key, certificates.Key)
        return certificates.Authority(x509.load_pem_x509_certificate(self.authority), key)


def identity(address: str, *, names: tuple[str, ...] = (), directory: Path | None = None) -> Identity:
    """The identity of the member at an address: as kept, else made now, in 0.6 ms."""
    folder = directory or cache() / "simulator"
    kept = folder / address
    found = _read(kept)
    return found if found is not None else _make(folder, kept, names or (address, "simulated.invalid"))


def _read(kept: Path) -> Identity | None:
    try:
        authority, key = (kept / "ca.crt").read_bytes(), (kept / "ca.key").read_bytes()
        made = (kept / "ca.key").stat().st_mtime
    except OSError:
        return None
    if time.time() - made > certificates.LEAF_LIFETIME.total_seconds() - _LASTING:
        return None
    return Identity(authority, key, kept / "serving.pem", kept / "client.pem")


def _make(folder: Path, kept: Path, names: tuple[str, ...]) -> Identity:
    """Made beside its place and moved there, since other processes may do the same."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    now = time.time()
    # The authority is older than the oldest certificate that a fault needs.
    authority = certificates.new_authority(
        certificates.new_key(), now=expired_start() - _DAY, program=f"simulated-{kept.name}"
    )
    with tempfile.TemporaryDirectory(dir=folder) as made_in:
        made = Path(made_in, "made")
        made.mkdir()
        _write_serving(authority, made / "serving.pem", names=names, now=now)
        key = certificates.new_key()
        client = certificates.client_certificate(authority, key, user="observer", group="simulated", now=now)
        (made / "client.pem").write_bytes(client + certificates.key_pem(key))
        (made / "ca.crt").write_bytes(certificates.certificate_pem(authority.certificate))
        (made / "ca.key").write_bytes(certificates.key_pem(authority.key))
        _replace(made, kept)
    found = _read(kept)
    assert found is not None
    return found


def _replace(made: Path, kept: Path) -> None:
    with contextlib.suppress(OSError):  # the first one, or one that another process has just put there
        kept.rename(made.with_name("old"))
    with contextlib.suppress(OSError):
        made.rename(kept)


def _write_serving(authority: certificates.Authority, path: Path, *, names: tuple[str, ...], now: float) -> Path:
    key = certificates.new_key()
    made = certificates.serving_certificate(authority, key, names=names, now=now, program="simulated")
    beside = path.with_suffix(f".{os.getpid()}")  # other processes may write the same
    beside.write_bytes(made + certificates.key_pem(key))
    return beside.rename(path)


def server_context(serving: Path, authorities: bytes) -> ssl.SSLContext:
    """TLS of a member. Client certificates of these authorities are asked for, and not required."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving)
    context.load_verify_locations(cadata=authorities.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def expired_start() -> float:
    """A beginning whose certificates have ended a day ago."""
    return time.time() - certificates.LEAF_LIFETIME.total_seconds() - _DAY
