"""The operator's certificates and names under a real server, with real kubectl."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from clusterregistry.client.errors import DisconnectedError, TLSError
from tests.apiserver.api.objects import CLUSTERS
from tests.apiserver.pki.own_certificates import serving
from tests.apiserver.server.authorities import Holder, root
from tests.apiserver.server.programs import Program
from tests.apiserver.server.test_certificate_reload import eventually, put
from tests.system.e2e import real_programs


class Server(Program):
    """With a serving certificate of the operator's, in files that are exchanged."""

    def __init__(self, directory: Path, *flags: str, names_authority: bool = True) -> None:
        self.tls_crt, self.tls_key, self.tls_ca = (directory / name for name in ("tls.crt", "tls.key", "tls-ca.crt"))
        authority = (f"--tls-ca-file={self.tls_ca}",) if names_authority else ()
        super().__init__(
            directory,
            f"--tls-cert-file={self.tls_crt}",
            f"--tls-private-key-file={self.tls_key}",
            *authority,
            *flags,
        )

    def bring(self, leaf: Holder, *, signer: Holder, chain: bool = False) -> None:
        """Puts a certificate in place, and its authority into a file of its own or behind it."""
        together = leaf.directory / f"{leaf.name}.together"
        together.write_text(leaf.certificate.read_text() + (signer.certificate.read_text() if chain else ""))
        put(self.tls_ca, signer.certificate)
        put(self.tls_key, leaf.key)
        put(self.tls_crt, together)

    def serves(self, leaf: Holder) -> bool:
        with self.socket() as connection:
            return connection.getpeercert(binary_form=True) == ssl.PEM_cert_to_DER_cert(leaf.certificate.read_text())

    @property
    def authority(self) -> Path:
        return self.data / "server-ca.crt"

    def trust(self) -> ssl.SSLContext:
        """By what is handed out. A certificate that comes alone is an anchor, as it is for Go's clients."""
        context = super().trust()
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context


def kubectl(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [real_programs.kubectl("1.36"), f"--kubeconfig={kubeconfig}", *(arguments or ("get", "clusters"))],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def works(kubeconfig: Path) -> bool:
    done = kubectl(kubeconfig)
    assert done.returncode == 0, done.stderr
    return True


@pytest.mark.parametrize("named", [True, False], ids=["named", "behind-the-certificate"])
def test_copies_of_the_kubeconfig_stay_good_when_the_certificate_is_renewed(tmp_path: Path, *, named: bool) -> None:
    signer = root(tmp_path / "signer", "signer")
    first, second = serving(signer, "first"), serving(signer, "second")
    server = Server(tmp_path / "server", names_authority=named)
    server.bring(first, signer=signer, chain=not named)
    with server:
        kubeconfig, copy = server.data / "admin.kubeconfig", tmp_path / "copy.kubeconfig"
        assert works(kubeconfig)
        copy.write_bytes(kubeconfig.read_bytes())
        server.bring(second, signer=signer, chain=not named)
        eventually(lambda: server.serves(second))
        assert works(copy)
        assert works(kubeconfig)
        assert "WARNING" not in server.logged()
        assert server.stop() == 0


def test_the_kubeconfig_follows_another_authority_while_the_server_runs(tmp_path: Path) -> None:
    old, new = root(tmp_path / "old", "old"), root(tmp_path / "new", "new")
    server = Server(tmp_path / "server")
    server.bring(serving(old, "first"), signer=old)
    with server:
        kubeconfig = server.data / "admin.kubeconfig"
        former = kubeconfig.read_bytes()
        server.bring(serving(new, "second"), signer=new)
        eventually(lambda: kubeconfig.read_bytes() != former)
        assert works(kubeconfig)
        assert (server.data / "server-ca.crt").read_bytes() == new.certificate.read_bytes()
        kubeconfig.write_bytes(kubeconfig.read_bytes() + b"# mine\n")
        edited = kubeconfig.read_bytes()
        server.bring(serving(old, "third"), signer=old)
        eventually(lambda: "admin.kubeconfig was edited and does not lead to this server" in server.logged())
        assert kubeconfig.read_bytes() == edited
        assert server.stop() == 0


def test_a_certificate_that_comes_alone_works_with_a_warning(tmp_path: Path) -> None:
    signer = root(tmp_path / "signer", "signer")
    server = Server(tmp_path / "server", names_authority=False)
    server.bring(serving(signer, "alone"), signer=signer)
    with server:
        assert works(server.data / "admin.kubeconfig")
        assert "every copy of it breaks when the certificate is renewed" in server.logged()


def test_an_authority_that_does_not_verify_the_certificate_gives_a_warning(tmp_path: Path) -> None:
    signer, stranger = root(tmp_path / "signer", "signer"), root(tmp_path / "stranger", "stranger")
    server = Server(tmp_path / "server")
    server.bring(serving(signer, "leaf"), signer=signer)
    with server:
        put(server.tls_ca, stranger.certificate)
        eventually(lambda: "does not verify" in server.logged())
        assert "unable to get local issuer certificate" in server.logged()


def test_a_foreign_authority_of_servers_makes_no_users(tmp_path: Path) -> None:
    signer = root(tmp_path / "signer", "signer")
    server = Server(tmp_path / "server")
    server.bring(serving(signer, "leaf"), signer=signer)
    master = signer.issue("master", subject="/O=system:masters/CN=master")
    with server, pytest.raises((TLSError, DisconnectedError)):
        ask(server, master)


def ask(server: Program, holder: Holder) -> int:
    """The status that somebody with a certificate gets."""
    with server.client(holder.certificate, holder.key) as client:
        return client.exchange("GET", CLUSTERS, headers=[], body=b"").status


def test_who_brings_both_authorities_has_no_other_and_the_former_one_counts_no_more(tmp_path: Path) -> None:
    signer, users = root(tmp_path / "signer", "signer"), root(tmp_path / "users", "users")
    master = users.issue("master", subject="/O=system:masters/CN=master")
    with Program(tmp_path / "server") as before:
        assert before.stop() == 0
    admin = Holder(before.data / "certs", "admin")
    server = Server(tmp_path / "server", f"--client-ca-file={users.certificate}")
    server.bring(serving(signer, "leaf"), signer=signer)
    with server:
        assert ask(server, master) == 200
        with pytest.raises((TLSError, DisconnectedError)):
            ask(server, admin)
        said = server.logged()
        assert "no longer used, and no longer accepted: " in said
        assert str(server.data / "ca.key") in said
        assert "give --generate-admin=true" in said
        authority = server.data / "server-ca.crt"
        place = f"--server https://127.0.0.1:{server.port} --certificate-authority {authority}"
        expected = f"Try:   kubectl {place} --client-certificate FILE --client-key FILE get clusters\n"
        assert expected in said
        filled = [f"--client-certificate={master.certificate}", f"--client-key={master.key}"]
        done = kubectl(Path("/dev/null"), *place.split(), *filled, "get", "clusters")
        assert done.returncode == 0, done.stderr
        assert server.stop() == 0
    kept = Server(tmp_path / "server", f"--client-ca-file={users.certificate}", "--generate-admin=true")
    with kept:
        assert ask(kept, admin) == 200


def test_who_brings_both_authorities_finds_no_key_in_the_data_directory(tmp_path: Path) -> None:
    signer, users = root(tmp_path / "signer", "signer"), root(tmp_path / "users", "users")
    server = Server(tmp_path / "server", f"--client-ca-file={users.certificate}")
    server.bring(serving(signer, "leaf"), signer=signer)
    with server:
        made = {path.name for path in server.data.rglob("*") if path.is_file()}
        assert server.stop() == 0
    assert {name for name in made if not name.startswith("registry.db")} == {"server-ca.crt"}
    assert "WARNING" not in server.logged()


def test_without_an_administrator_the_generated_authority_signs_for_the_server_alone(tmp_path: Path) -> None:
    with Program(tmp_path, "--generate-admin=false") as server:
        made = {path.name for path in server.data.rglob("*.???") if path.is_file()}
        assert {"ca.crt", "ca.key", "serving.crt", "serving.key"} <= made
        assert "admin.crt" not in made
        assert not (server.data / "admin.kubeconfig").exists()
        place = f"--server https://127.0.0.1:{server.port} --certificate-authority {server.data / 'ca.crt'}"
        assert f"Try:   kubectl {place} --token TOKEN get clusters\n" in server.logged()
        done = kubectl(Path("/dev/null"), *place.split(), "--token=admintoken", "get", "clusters")
        assert done.returncode == 0, done.stderr
        server.stop()


def reached(server: Program, name: str) -> None:
    """Raises ssl.SSLCertVerificationError when the server does not go by this name."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
        server.trust().wrap_socket(plain, server_hostname=name).close()


def test_further_names_are_in_the_certificate_and_go_with_the_flag(tmp_path: Path) -> None:
    with Program(tmp_path, "--tls-san=registry.example.com,192.0.2.7", "--tls-san=*.apps.example.com") as server:
        for name in ("registry.example.com", "192.0.2.7", "one.apps.example.com", "127.0.0.1"):
            reached(server, name)
        said = kubectl(
            server.data / "admin.kubeconfig", "--tls-server-name=other.example.com", "get", "clusters"
        ).stderr
        assert re.search(r"x509: certificate is valid for .*registry\.example\.com.*, not other\.example\.com", said)
        good = kubectl(server.data / "admin.kubeconfig", "--tls-server-name=two.apps.example.com", "get", "clusters")
        assert good.returncode == 0, good.stderr
        server.stop()
    with Program(tmp_path) as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            reached(server, "registry.example.com")
        server.stop()


def test_a_lost_key_of_the_authority_is_said_at_the_start(tmp_path: Path) -> None:
    with Program(tmp_path) as server:
        server.stop()
    (server.data / "ca.key").unlink()
    with Program(tmp_path) as server:
        said = server.logged()
        assert re.search(r"WARNING .*ca\.key is missing: nothing can be signed or renewed\. A server that runs", said)
        assert re.search(r"goes on until \d{4}-\d\d-\d\d, .* from \d{4}-\d\d-\d\d on none starts\. .* restore", said)
        server.stop()
