"""The server's TLS context, and its answer to clients whose handshake fails."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.http.transport import HandshakeFailure, on_handshake_failure
from clusterregistry.apiserver.pki import files

VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}

# Those of TLS 1.2 with forward secrecy and authenticated encryption, by the names that kube-apiserver's flag has.
CIPHER_SUITES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}

NO_CHECK_TIME = 0x200000  # X509_V_FLAGNO_CHECK_TIME, which the module does not name


@dataclass(frozen=True, slots=True)
class Bundle:
    """A file of certificate authorities, as it was when it was read."""

    path: Path
    pem: str


def read_bundle(path: Path) -> Bundle:
    """Raises CertificateError for a file that is missing or cannot be read; what is in it is looked at later."""
    content = files.read(path)
    if content is None:
        raise CertificateError(f"{path} is missing", remedy="put the certificate authorities there, in PEM")
    # What is not ASCII can only be a remark between certificates.
    return Bundle(path, content.decode("ascii", "ignore"))


def server_context(
    *, certificate: Path, key: Path, client_cas: Sequence[Bundle], minimum: str, suites: Sequence[str] = ()
) -> ssl.SSLContext:
    """A context that serves a certificate and asks for, but does not demand, a client's.

    ``client_cas`` are the authorities for all purposes. A client certificate of an unknown authority, or one that is
    not for clients, ends the handshake: Python has no way to look at it and go on. Whether it is valid now is left to
    authentication, which answers a 401. Raises CertificateError for what cannot be used.
    """
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[minimum]
    context.set_ciphers(":".join(CIPHER_SUITES[name] for name in suites or CIPHER_SUITES))
    context.set_alpn_protocols(["http/1.1"])
    load_certificate(context, certificate, key)
    for bundle in client_cas:
        _load_authorities(context, bundle)
    context.verify_mode = ssl.CERT_OPTIONAL
    # As in Go, an authority need not be a root to be trusted.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(NO_CHECK_TIME)
    return context


def load_certificate(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Has a context serve a certificate. Raises CertificateError."""
    try:
        # OpenSSL would ask at the terminal for a passphrase; an empty one makes it refuse instead.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CertificateError(
            f"{certificate} and {key} cannot be used for TLS: {_why(error)}",
            remedy="check that both are PEM, belong together, and that the key has no passphrase",
        ) from None


def _load_authorities(context: ssl.SSLContext, bundle: Bundle) -> None:
    try:
        context.load_verify_locations(cadata=bundle.pem)
    except (OSError, ValueError) as error:
        raise CertificateError(
            f"{bundle.path} cannot be used as a client CA: {_why(error)}",
            remedy="check that it holds certificates in PEM",
        ) from None


def _why(error: Exception) -> str:
    return str(getattr(error, "reason", "") or getattr(error, "strerror", "") or error)


# Refused handshakes

PLAIN_HTTP_ANSWER = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
"""Go's net/http says the same, in the same words."""

MAX_DISCARDED = 1024 * 1024
"""Bytes of a refused client that are read and dropped before its connection is cut."""

MAX_ISSUER = 200
"""Characters of an issuer's name: whoever made the certificate chose it."""

_HTTP_REASONS = frozenset({"HTTP_REQUEST", "HTTPS_PROXY_REQUEST"})
_NO_TLS_REASONS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"})
"""What OpenSSL says of the methods of HTTP that it does not recognise, and of all other noise."""

_FIRST_LINE = 4096


class ServerSide(ssl.SSLObject):
    """One connection's TLS."""

    _incoming: ssl.MemoryBIO
    _outgoing: ssl.MemoryBIO
    _tell: Callable[[HandshakeFailure], None] | None = None
    _refused = False
    _discarded = 0

    def watch(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, tell: Callable[[HandshakeFailure], None] | None
    ) -> ServerSide:
        self._incoming, self._outgoing, self._tell = incoming, outgoing, tell
        return self

    def do_handshake(self) -> None:
        # Nothing here keeps the error: together with its traceback that would be a circle of objects.
        if not self._refused:
            try:
                super().do_handshake()
            except ssl.SSLWantReadError:
                raise
            except ssl.SSLError as error:
                if not self._refuse(error):
                    raise
            else:
                return
        self._discard()
        raise ssl.SSLWantReadError

    def _refuse(self, error: ssl.SSLError) -> bool:
        """Has the farewell sent, if there is one. For the loop the handshake then goes on until the client leaves."""
        farewell = PLAIN_HTTP_ANSWER if self._is_plain_http(error) else self._outgoing.read()
        if self._tell is None or not farewell:
            return False
        self._refused = True
        self._tell(HandshakeFailure(error, farewell, self.shown_issuer))
        return True

    def _discard(self) -> None:
        """Drops what the client still sends: a socket that is closed with unread bytes would take back the farewell."""
        self._discarded += len(self._incoming.read())
        if self._discarded > MAX_DISCARDED:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, "the client was refused and went on sending")

    def _is_plain_http(self, error: ssl.SSLError) -> bool:
        if error.reason in _HTTP_REASONS:
            return True
        # OpenSSL has taken the first few bytes, which are a part of the method.
        return error.reason in _NO_TLS_REASONS and b" HTTP/1." in self._incoming.read(_FIRST_LINE).partition(b"\n")[0]

    def shown_issuer(self) -> str:
        try:
            # OpenSSL keeps what it has verified, also when it ended badly. The method is public from Python 3.13 on,
            # where it answers bytes that would still have to be parsed.
            sslobj: Any = self._sslobj  # type: ignore[attr-defined]
            issuer = sslobj.get_verified_chain()[0].get_info()["issuer"]
            text = ",".join(f"{name}={value}" for part in issuer for name, value in part)
        except Exception:  # noqa: BLE001 - a stranger made this certificate; for the log only
            return ""
        return text if len(text) <= MAX_ISSUER else f"{text[:MAX_ISSUER]}..."


class ServerContext(ssl.SSLContext):
    """A context whose handshakes tell ``on_handshake_failure`` of their failures."""

    sslobject_class = ServerSide

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *arguments: Any, **more: Any) -> ServerSide:
        side = super().wrap_bio(incoming, outgoing, *arguments, **more)
        assert isinstance(side, ServerSide)
        return side.watch(incoming, outgoing, on_handshake_failure.get(None))
