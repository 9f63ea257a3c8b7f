"""Servers that the registry calls: HTTPS servers for webhooks and an OpenID Connect issuer."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from clusterregistry.apimachinery import certificates

PATIENCE = 20.0
Document = dict[str, Any]
SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def rsa_key(number: int = 0, *, bits: int = 2048) -> rsa.RSAPrivateKey:  # noqa: ARG001 - another number, another key
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


class Authority:
    """Signs the certificates of remote servers, and those of their clients."""

    def __init__(self, directory: Path, name: str = "") -> None:
        """``name`` is the beginning of all file names, for several authorities in one directory."""
        self.directory, self._prefix = directory, f"{name}-" if name else ""
        self._authority = certificates.new_authority(certificates.new_key(), now=time.time())
        self.pem = certificates.certificate_pem(self._authority.certificate)
        self.file = self._write("authority.crt", self.pem)

    def _write(self, name: str, content: bytes) -> Path:
        path = self.directory / (self._prefix + name)
        path.write_bytes(content)
        return path

    def key_file(self) -> Path:
        """The authority's own key, for a program that signs with it."""
        return self._write("authority.key", certificates.key_pem(self._authority.key))

    def serving(self, *names: str) -> tuple[Path, Path]:
        """The files of a server's certificate and key."""
        key = certificates.new_key()
        certificate = certificates.serving_certificate(self._authority, key, names=names, now=time.time())
        return self._write("serving.crt", certificate), self._write("serving.key", certificates.key_pem(key))

    def client(self, user: str, group: str = "") -> tuple[Path, Path]:
        key = certificates.new_key()
        certificate = certificates.client_certificate(self._authority, key, user=user, group=group, now=time.time())
        return self._write("client.crt", certificate), self._write("client.key", certificates.key_pem(key))


@dataclass
class Received:
    """A request that the remote server received."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    certificate: Document | None

    @property
    def document(self) -> Document:
        document: Document = json.loads(self.body)
        return document


@dataclass
class Reply:
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hang_up: bool = False
    """Ends the connection without an answer."""


def reply(document: Any) -> Reply:
    return Reply(body=json.dumps(document).encode())


class RemoteServer:
    """An HTTPS server on 127.0.0.1 that answers what ``answer`` says; it can be stopped and started at its address."""

    def __init__(self, authority: Authority, *, names: tuple[str, ...] = ("127.0.0.1",), mutual: bool = False) -> None:
        self.received: list[Received] = []
        self.answer: Callable[[Received], Reply] = lambda _: Reply()
        self.port = 0
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(*authority.serving(*names))
        if mutual:
            self._tls.load_verify_locations(authority.file)
            self._tls.verify_mode = ssl.CERT_REQUIRED
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> Self:
        remote = self

        class Handler(_Handler):
            server_of: ClassVar[RemoteServer] = remote

        self._server = _Server(("127.0.0.1", self.port), Handler)
        self._server.tls = self._tls
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server.hang_up()
            self._thread.join(PATIENCE)
            self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    tls: ssl.SSLContext

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._connections: set[ssl.SSLSocket] = set()

    def hang_up(self) -> None:
        """Ends the connections that clients keep open."""
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def finish_request(self, request: Any, client_address: Any) -> None:
        # In the thread of the connection: a client without a handshake must not delay the others.
        try:
            request.settimeout(PATIENCE)
            with self.tls.wrap_socket(request, server_side=True) as secured:
                self._connections.add(secured)
                super().finish_request(secured, client_address)
                self._connections.discard(secured)
        except OSError:
            return  # clients that do not trust this server, and clients that disconnect


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: ClassVar[RemoteServer]

    def do_GET(self) -> None:
        remote = self.server_of
        length = int(self.headers.get("content-length", 0))
        received = Received(
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length),
            certificate=self.connection.getpeercert(),
        )
        remote.received.append(received)
        answer = remote.answer(received)
        if answer.hang_up:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in {"content-length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    do_POST = do_GET  # noqa: N815 - the name that http.server looks for

    def log_message(self, *_: object) -> None:
        pass


def kubeconfig(path: Path, server: str, *, cluster: Document | None = None, user: Document | None = None) -> Path:
    """A webhook's configuration file, as an operator writes it."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "webhook",
        "contexts": [{"name": "webhook", "context": {"cluster": "remote", "user": "us"}}],
        "clusters": [{"name": "remote", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "us", "user": user or {}}],
    }
    path.write_text(json.dumps(document, indent=2))
    return path


class IssuerServer(RemoteServer):
    """An OpenID Connect issuer. ``keys`` are those that it publishes, by their ids."""

    def __init__(self, authority: Authority) -> None:
        super().__init__(authority)
        self.keys: dict[str, SigningKey] = {"one": rsa_key()}
        self.answer = self._publish
        self.claims_to_be = ""

    def _publish(self, received: Received) -> Reply:
        if received.path == "/.well-known/openid-configuration":
            return reply({"issuer": self.claims_to_be or self.url, "jwks_uri": f"{self.url}/keys"})
        if received.path == "/keys":
            return reply({"keys": [published(key, kid=name) for name, key in self.keys.items()]})
        return Reply(status=404)

    def fetches(self) -> int:
        """How often the keys were requested."""
        return sum(1 for received in self.received if received.path == "/keys")

    def token(self, kid: str = "one", **claims: Any) -> str:
        return signed({"iss": self.url, **claims}, self.keys[kid], kid=kid)


def published(key: SigningKey, **members: Any) -> Document:
    """A key as an issuer publishes it."""
    if isinstance(key, rsa.RSAPrivateKey):
        return {**jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "use": "sig", **members}
    return {**jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "use": "sig", **members}


def signed(claims: Document, key: SigningKey, *, algorithm: str = "", **header: Any) -> str:
    """A good token, unless ``claims`` says something else."""
    fitting = algorithm or ("RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256")
    good = {"aud": "registry", "sub": "jane", "exp": int(time.time()) + 600}
    return jwt.encode({**good, **claims}, key, algorithm=fitting, headers=header)


def encoded(content: bytes) -> str:
    """A part of a token."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
