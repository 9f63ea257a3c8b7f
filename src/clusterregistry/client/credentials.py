"""Credentials of a client and what it trusts: tokens, token files, certificates, and the TLS context made of them.

Files are read again when they change: a token before every request, certificates and authorities before every
request too, which then opens connections of its own. Looking costs one ``stat`` a file, about a microsecond.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from clusterregistry.client.errors import ConfigError

MAX_FILE_BYTES = 1 << 20
MAX_TOKEN = 1 << 16

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What one request is sent with: the value of its Authorization header, and a client certificate in PEM."""

    authorization: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


class CredentialSource(Protocol):
    """Where the credential of the next request comes from."""

    async def get(self) -> Credential:
        """The credential to use now. Raises ConfigError."""
        ...

    def reject(self, credential: Credential) -> bool:
        """Notes that the server refused a credential (401). True: another one may be had by ``get``."""
        ...


class StaticCredential:
    """Always the same credential."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def get(self) -> Credential:
        return self._credential

    def reject(self, _: Credential) -> bool:
        return False


class FileContent(Generic[T]):
    """What a file holds, parsed; read again when the file changes.

    ``read`` raises ConfigError until the file could be read once. Afterwards the last good content stays in use.
    """

    def __init__(self, path: Path, parse: Callable[[Path, bytes], T]) -> None:
        self._path, self._parse = path, parse
        self._version: tuple[int, ...] = ()
        self._content: tuple[T] | None = None

    def read(self) -> T:
        version = _version(self._path)
        if self._content is None:
            self._content, self._version = (self._load(),), version
        elif version not in ((), self._version):
            try:
                self._content = (self._load(),)
            except ConfigError:
                return self._content[0]  # half written: the next request looks again
            self._version = version
        return self._content[0]

    def _load(self) -> T:
        return self._parse(self._path, read_file(self._path))


def _version(path: Path) -> tuple[int, ...]:
    """Differs once a file is written or replaced."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


class TokenFile:
    """A bearer token in a file that another program renews, as the kubelet does for a service account.

    ``identity`` is the client certificate that goes with it, if any.
    """

    def __init__(self, path: Path, *, identity: Callable[[], Credential] = Credential) -> None:
        self._token = FileContent(path, _parse_token)
        self._identity = identity

    async def get(self) -> Credential:
        identity = self._identity()
        return Credential(
            authorization=f"Bearer {self._token.read()}", certificate=identity.certificate, key=identity.key
        )

    def reject(self, credential: Credential) -> bool:
        return f"Bearer {self._token.read()}" != credential.authorization


class CertificateFiles:
    """A client certificate and its key in files, with a fixed Authorization header."""

    def __init__(self, certificate: Callable[[], bytes], key: Callable[[], bytes], *, authorization: str = "") -> None:
        self._certificate, self._key, self._authorization = certificate, key, authorization

    def current(self) -> Credential:
        return Credential(authorization=self._authorization, certificate=self._certificate(), key=self._key())

    async def get(self) -> Credential:
        return self.current()

    def reject(self, credential: Credential) -> bool:
        return self.current() != credential


def read_token(path: Path) -> str:
    """The token in a file. Raises ConfigError."""
    return _parse_token(path, read_file(path))


def _parse_token(path: Path, content: bytes) -> str:
    try:
        token = content.decode("ascii").strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: has characters that no token has") from None
    return check_token(token, source=str(path))


def check_token(token: str, *, source: str) -> str:
    """The token, if a header can hold it. Raises ConfigError without showing it."""
    if not token:
        raise ConfigError(f"{source}: is empty, it must be a token")
    if len(token) > MAX_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{source}: is longer than {MAX_TOKEN} bytes or has characters that no token has")
    return token


def basic_authorization(username: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def read_file(path: Path) -> bytes:
    """The content of a file, neither empty nor larger than MAX_FILE_BYTES. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    if not content or len(content) > MAX_FILE_BYTES:
        raise ConfigError(f"{path}: is empty or larger than {MAX_FILE_BYTES} bytes")
    return content


def decode_base64(data: str, *, source: str) -> bytes:
    """The content of a ``-data`` field of a kubeconfig. Raises ConfigError."""
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        raise ConfigError(f"{source}: is not base64") from None


def tls_context(*, authorities: bytes, insecure: bool) -> ssl.SSLContext:
    """TLS 1.2 or newer. Trusts the authorities in PEM, else those of the system. Raises ConfigError.

    Each of the authorities is an anchor, also an intermediate one and a server's own certificate, as for Go's clients.
    ``insecure`` checks neither certificate nor name.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif not authorities:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        try:
            context.load_verify_locations(cadata=authorities.decode("ascii"))
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        except (ssl.SSLError, ValueError):
            raise ConfigError("certificate-authority: must be certificates in PEM") from None
    return context


class TLSContexts:
    """Makes TLS contexts, and shares those without a client certificate among clients that trust the same authorities.

    A context with the authorities of the system takes 16 ms and 0.8 MiB, one with an authority of its own 0.2 ms and
    18 KiB. Connections are never shared: each client has its own.
    """

    def __init__(self) -> None:
        self._shared: weakref.WeakValueDictionary[tuple[bytes, bool], ssl.SSLContext] = weakref.WeakValueDictionary()

    def get(self, authorities: bytes, credential: Credential, *, insecure: bool) -> ssl.SSLContext:
        """The context for these authorities and this client certificate. Raises ConfigError."""
        if credential.certificate or credential.key:
            context = tls_context(authorities=authorities, insecure=insecure)
            load_client_certificate(context, credential)
            return context
        context = self._shared.get((authorities, insecure))  # type: ignore[assignment]
        if context is None:
            context = self._shared[authorities, insecure] = tls_context(authorities=authorities, insecure=insecure)
        return context


def load_client_certificate(context: ssl.SSLContext, credential: Credential) -> None:
    """Presents the certificate of a credential to servers that ask for one. Raises ConfigError."""
    if bool(credential.certificate) != bool(credential.key):
        raise ConfigError("client-certificate and client-key: must be given together")
    if not credential.certificate:
        return
    # The ssl module reads files only. The directory is for this user alone, and removed at once.
    with tempfile.TemporaryDirectory() as directory:
        certificate, key = Path(directory, "certificate"), Path(directory, "key")
        certificate.write_bytes(credential.certificate)
        key.write_bytes(credential.key)
        try:
            # OpenSSL would ask for a passphrase at the terminal; an empty one makes it refuse instead.
            context.load_cert_chain(certificate, key, password=lambda: "")
        except (OSError, ValueError):
            raise ConfigError(
                "client-certificate and client-key: must be PEM, belong together and have no passphrase"
            ) from None
