"""Certificates exchanged under a running server."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from pathlib import Path

from tests.apiserver.api.clients import Answer
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.api.over_tls import OverTLS
from tests.apiserver.server.authorities import Holder, root
from tests.apiserver.server.programs import Program

PATIENCE = 40.0
"""Seconds in which a server must have noticed: it looks every three, and the machine may be busy."""


def serving(signer: Holder, name: str) -> Holder:
    return signer.issue(name, extensions="subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")


def put(path: Path, content: Path) -> None:
    """Replaces a file in one step, as careful people do."""
    new = path.with_suffix(".new")
    new.write_bytes(content.read_bytes())
    new.replace(path)


def eventually(true: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until
        time.sleep(0.1)


class Server(Program):
    """With a serving certificate and authorities of its own, in files that are exchanged."""

    def __init__(self, directory: Path, signer: Holder) -> None:
        self.signer = signer
        files = [directory / name for name in ("tls.crt", "tls.key", "users.crt", "proxies.crt")]
        self.tls_crt, self.tls_key, self.users, self.proxies = files
        super().__init__(
            directory,
            f"--tls-cert-file={self.tls_crt}",
            f"--tls-private-key-file={self.tls_key}",
            f"--client-ca-file={self.users}",
            f"--requestheader-client-ca-file={self.proxies}",
        )

    @property
    def authority(self) -> Path:
        return self.signer.certificate

    def connected(self, holder: Holder) -> OverTLS:
        return self.client(holder.certificate, holder.key)

    def shown(self) -> bytes | None:
        with self.socket() as connection:
            return connection.getpeercert(binary_form=True)


def ask(client: OverTLS, *headers: tuple[str, str]) -> Answer:
    return client.exchange("GET", CLUSTERS, headers=list(headers), body=b"")


def test_all_certificates_can_be_exchanged_without_a_restart(tmp_path: Path) -> None:
    signer = root(tmp_path, "signer")
    first, second = serving(signer, "first"), serving(signer, "second")
    old, new = (root(tmp_path, f"{age}-users") for age in ("old", "new"))
    old_proxies, new_proxies = (root(tmp_path, f"{age}-proxies") for age in ("old", "new"))
    masters = [each.issue(f"master-{each.name}", subject="/O=system:masters/CN=master") for each in (old, new)]
    (tmp_path / "server").mkdir()
    server = Server(tmp_path / "server", signer)
    for path, content in [
        (server.tls_crt, first.certificate),
        (server.tls_key, first.key),
        (server.users, old.certificate),
        (server.proxies, old_proxies.certificate),
    ]:
        put(path, content)
    with server, server.connected(masters[0]) as former:
        ask(former).expect(200)
        put(server.users, new.certificate)
        put(server.proxies, new_proxies.certificate)
        put(server.tls_key, second.key)
        put(server.tls_crt, second.certificate)
        eventually(lambda: server.shown() == ssl.PEM_cert_to_DER_cert(second.certificate.read_text()))
        # The connection stays; its certificate does not count any more.
        ask(former, ("Authorization", "Bearer admintoken")).expect(200)
        eventually(lambda: ask(former).status == 401)
        with server.connected(masters[1]) as latter:
            ask(latter).expect(200)
        with server.connected(new_proxies.issue("proxy")) as proxy:
            said = ask(proxy, ("X-Remote-User", "alice")).refused(403, "Forbidden")
            assert 'User "alice" cannot list' in said["message"]
        assert "can pose as any user" not in server.logged()
        server.proxies.write_bytes(new_proxies.certificate.read_bytes() + new.certificate.read_bytes())
        eventually(lambda: "can pose as any user" in server.logged())
        assert server.stop() == 0
