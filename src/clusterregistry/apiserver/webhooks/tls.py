"""TLS as a client: whom we trust, and who we are. Everything here raises ValueError, with a message for people."""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path

MAX_BYTES = 1 << 20


def context() -> ssl.SSLContext:
    """A context that trusts nobody yet. TLS 1.2 or newer, names and certificates checked."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    return made


def trust(context: ssl.SSLContext, authorities: bytes) -> None:
    """Trusts the authorities of some PEM; those of the system when it is empty."""
    if not authorities:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return
    try:
        context.load_verify_locations(cadata=authorities.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ValueError("must be certificates in PEM") from None


def identify(context: ssl.SSLContext, *, certificate: bytes, key: bytes) -> None:
    """Shows a certificate to those who ask for one. Nothing happens without certificate and key."""
    if bool(certificate) != bool(key):
        raise ValueError("certificate and key must be given together")
    if not certificate:
        return
    # The library reads files only. The directory is ours alone, and gone at once.
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory, "certificate"), Path(directory, "key")
        files[0].write_bytes(certificate)
        files[1].write_bytes(key)
        try:
            # OpenSSL would ask at the terminal for a passphrase; an empty one makes it refuse instead.
            context.load_cert_chain(*files, password=lambda: "")
        except (OSError, ValueError):
            raise ValueError("certificate and key must be PEM, belong together and have no passphrase") from None


def decoded(data: str) -> bytes:
    """What a field with base64 holds."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        raise ValueError("is not base64") from None


def content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            read = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    if not read or len(read) > MAX_BYTES:
        raise ValueError(f"{path}: is empty or larger than {MAX_BYTES} bytes")
    return read
