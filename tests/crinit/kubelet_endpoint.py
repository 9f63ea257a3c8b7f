"""Where kube-apiserver asks a kubelet for the logs of its containers, with certificates on both sides."""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from clusterregistry.apimachinery import certificates
from tests.crinit.networks import local

ADDRESS = "10.0.255.1"
"""Of the one node, in the host cluster."""

FindLog = Callable[[str, bool], Path | None]
"""The log of a pod by its name; the second argument selects the container before the current one."""


def apiserver_flags(directory: Path) -> list[str]:
    """The certificate that kube-apiserver shows to kubelets, and the CA of theirs."""
    now, key = time.time(), certificates.new_key()
    authority = certificates.new_authority(certificates.new_key(), now=now)
    client = certificates.client_certificate(authority, key, user="kube-apiserver", group="", now=now)
    serving = certificates.serving_certificate(authority, key, names=(ADDRESS,), now=now)
    (directory / "kubelet.key").write_bytes(certificates.key_pem(key))
    (directory / "kubelet-ca.crt").write_bytes(certificates.certificate_pem(authority.certificate))
    (directory / "kubelet-client.crt").write_bytes(client)
    (directory / "kubelet.crt").write_bytes(serving)
    return [
        f"--kubelet-certificate-authority={directory / 'kubelet-ca.crt'}",
        f"--kubelet-client-certificate={directory / 'kubelet-client.crt'}",
        f"--kubelet-client-key={directory / 'kubelet.key'}",
    ]


@contextlib.contextmanager
def listening(directory: Path, find: FindLog) -> Iterator[int]:
    """Answers the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "kubelet.crt", directory / "kubelet.key")
    context.load_verify_locations(directory / "kubelet-ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    server = ThreadingHTTPServer((local(ADDRESS), 0), _handler(find))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)


def _handler(find: FindLog) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            query = parse_qs(asked.query)
            file = find(asked.path.split("/")[3], query.get("previous") == ["true"])
            if not asked.path.startswith("/containerLogs/") or file is None or not file.exists():
                self.send_error(404)
                return
            said = _last(file.read_bytes(), query.get("tailLines"))
            self.send_response(200)
            self.send_header("content-type", "text/plain")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            """Discards the log of requests."""

    return Handler


def _last(said: bytes, count: list[str] | None) -> bytes:
    lines = said.splitlines(keepends=True)
    return b"".join(lines[-int(count[0]) :] if count else lines)
