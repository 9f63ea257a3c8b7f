"""crinit without a kubeconfig, or with one that leads to something that is no cluster: reported, with a remedy."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery import certificates
from clusterregistry.client.kubeconfig import Context
from clusterregistry.crinit.errors import HostError
from clusterregistry.crinit.host import client as clients
from clusterregistry.crinit.main import main
from tools import live_server
from tools.ports import free_port

PAGE = b"<!DOCTYPE html><html><head><title>Welcome to\x1b[31m nginx&#33;</title></head></html>"
COMMANDS = (
    ["standalone", "init", "fleet"],
    ["aggregated", "init", "fleet"],
    ["standalone", "init", "fleet", "--dry-run", "--host-cluster-context=host"],
    ["standalone", "upgrade", "fleet", "--image=other:2"],
    ["standalone", "status", "fleet"],
    ["standalone", "delete", "fleet"],
)


def run(capsys: pytest.CaptureFixture[str], environ: Mapping[str, str], *arguments: str) -> tuple[str, str]:
    """What went wrong and what to do."""
    assert main(arguments, environ) == 3
    said = capsys.readouterr().err
    assert "Traceback" not in said
    complaint, remedy = said.partition("What to do: ")[::2]
    assert remedy.strip()
    return complaint.strip(), remedy.strip()


def test_a_kubeconfig_that_is_not_there_is_named_with_what_named_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, missing = ["standalone", "init", "fleet"], tmp_path / "config"
    complaint, remedy = run(capsys, {}, *command, f"--kubeconfig={missing}")
    assert complaint == f"crinit: there is no file {missing}, which --kubeconfig names"
    assert "--kubeconfig=FILE, or $KUBECONFIG" in remedy
    complaint, _ = run(capsys, {"KUBECONFIG": str(missing)}, *command)
    assert complaint == f"crinit: there is no file {missing}, which $KUBECONFIG names"
    complaint, _ = run(capsys, {"KUBECONFIG": f"{missing}:{missing}2"}, *command)
    assert complaint == f"crinit: none of the files that $KUBECONFIG names is there: {missing}, {missing}2"
    complaint, remedy = run(capsys, {"HOME": str(tmp_path)}, *command)
    expected = f"there is no file {tmp_path}/.kube/config, and neither --kubeconfig nor $KUBECONFIG names another"
    assert complaint == f"crinit: {expected}"
    assert "with sudo, the home directory may be another one" in remedy


def test_a_kubeconfig_without_the_context_is_named_with_those_that_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "config"
    contexts = [{"name": name, "context": {"cluster": name}} for name in ("two", "one")]
    kubeconfig.write_text(json.dumps({"contexts": contexts}))
    complaint, remedy = run(capsys, {"KUBECONFIG": str(kubeconfig)}, "standalone", "status", "fleet")
    where = f"(in {kubeconfig}, from $KUBECONFIG)"
    assert complaint == f"crinit: the kubeconfig has no current context; contexts are: one, two {where}"
    assert remedy == "name one: --host-cluster-context=CONTEXT"
    given = ["--host-cluster-context=three", f"--kubeconfig={kubeconfig}"]
    complaint, _ = run(capsys, {}, "standalone", "status", "fleet", *given)
    where = f"(in {kubeconfig}, from --kubeconfig)"
    assert complaint == f'crinit: the kubeconfig has no context "three"; there are: one, two {where}'
    kubeconfig.write_text("")
    complaint, _ = run(capsys, {"KUBECONFIG": str(kubeconfig)}, "standalone", "status", "fleet")
    assert "contexts are: none at all" in complaint


def test_a_directory_in_the_place_of_a_kubeconfig_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    complaint, remedy = run(capsys, {}, "standalone", "status", "fleet", f"--kubeconfig={tmp_path}")
    assert complaint == f"crinit: {tmp_path} cannot be read: Is a directory"
    assert "--kubeconfig=FILE" in remedy


class Site:
    """A certificate for 127.0.0.1 (or for other names), and a kubeconfig that trusts it."""

    def __init__(self, directory: Path, *, names: tuple[str, ...] = ("127.0.0.1",), now: float | None = None) -> None:
        now, key = now or time.time(), certificates.new_key()
        self.directory = directory
        authority = certificates.new_authority(certificates.new_key(), now=now)
        self.authority, self.certificate, self.key = (directory / name for name in ("ca.crt", "tls.crt", "tls.key"))
        self.authority.write_bytes(certificates.certificate_pem(authority.certificate))
        self.certificate.write_bytes(certificates.serving_certificate(authority, key, names=names, now=now))
        self.key.write_bytes(certificates.key_pem(key))

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context

    def kubeconfig(self, port: int, **cluster: Any) -> Path:
        file = self.directory / "config"
        described = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(self.authority), **cluster}
        document = {
            "clusters": [{"name": "host", "cluster": described}],
            "users": [{"name": "me", "user": {"token": "t"}}],
            "contexts": [{"name": "host", "context": {"cluster": "host", "user": "me"}}],
            "current-context": "host",
        }
        file.write_text(json.dumps(document))
        return file


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


class Web(ThreadingHTTPServer):
    """Reports nothing about clients that close the connection: that is what the tests do."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Silent."""


class Quiet(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Silent."""


@contextlib.contextmanager
def serving(status: int, headers: Mapping[str, str], body: bytes, context: ssl.SSLContext | None) -> Iterator[int]:
    """A web server that answers everything alike; with TLS where there is a context."""

    class Handler(Quiet):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    with listening(Web(("127.0.0.1", 0), Handler), context) as port:
        yield port


@contextlib.contextmanager
def listening(server: socketserver.TCPServer, context: ssl.SSLContext | None = None) -> Iterator[int]:
    with server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join(30)


@pytest.mark.parametrize(
    ("command", "status"),
    [*((command, 200) for command in COMMANDS), *((COMMANDS[-1], status) for status in (401, 403, 404, 500))],
)
def test_a_web_server_is_no_cluster(
    command: list[str], status: int, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(status, {"content-type": "text/html; charset=utf-8"}, PAGE, site.server_context()) as port:
        kubeconfig = site.kubeconfig(port)
        before = kubeconfig.read_bytes()
        complaint, remedy = run(capsys, {"KUBECONFIG": str(kubeconfig)}, *command)
    assert complaint == (
        f"crinit: https://127.0.0.1:{port} does not answer as a Kubernetes API does, but with a web page, "
        f'"Welcome to[31m nginx!" (GET /version: {status})'
    )
    assert 'is that the right server for the context "host"?' in remedy
    assert kubeconfig.read_bytes() == before


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ((302, {"location": "https://login.example.com/"}, b""), "a redirect to https://login.example.com/"),
        ((302, {"location": "/login", "content-type": "application/json"}, b"{}"), "a redirect to /login"),
        ((200, {"content-type": "text/html"}, b"<p>hello"), "a web page (GET"),
        ((200, {"content-type": "text/plain"}, b"hello"), "but with text/plain"),
        ((200, {"content-type": "application/json"}, b"[1]"), "but with application/json"),
        ((200, {"content-type": "application/json"}, b"[" * 100_000), "but with application/json"),
        ((200, {}, b""), "something that is not JSON"),
        ((200, {"content-type": "application/json"}, b'{"status": "ok"}'), "at /version it names no version"),
        ((404, {"content-type": "text/plain"}, b"404 page not found"), "at /version it names no version"),
        ((404, {"content-type": "application/json"}, b'{"message": "no"}'), "at /version it names no version"),
        ((200, {"content-type": "application/json"}, b'{"gitVersion": 3}'), "at /version it names no version"),
    ],
)
def test_another_answer_than_that_of_a_kubernetes_api_is_reported(
    answer: tuple[int, dict[str, str], bytes], complaint: str, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(*answer, site.server_context()) as port:
        environ = {"KUBECONFIG": str(site.kubeconfig(port))}
        said, remedy = run(capsys, environ, "standalone", "delete", "fleet")
    assert complaint in said
    assert 'the right server for the context "host"?' in remedy
    assert "kubectl cluster-info --context host" in remedy


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a registry that runs."""
    with live_server.running(tmp_path_factory.mktemp("registry")) as server:
        yield server.kubeconfig


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_registry_is_not_the_cluster_in_which_it_runs(
    command: list[str], registry: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = registry.read_bytes()
    given = [argument for argument in command if not argument.startswith("--host-cluster-context")]
    given.append(f"--host-cluster-context={live_server.CONTEXT}")
    complaint, remedy = run(capsys, {"KUBECONFIG": str(registry)}, *given)
    assert f'the context "{live_server.CONTEXT}" leads to a cluster registry (https://' in complaint
    assert "not to the cluster in which one is to run" in complaint
    assert "--host-cluster-context=CONTEXT" in remedy
    assert registry.read_bytes() == before


def test_an_api_without_deployments_is_no_cluster(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    class Handler(Quiet):
        def do_GET(self) -> None:
            found = self.path == "/version"
            self.send_response(200 if found else 404)
            self.send_header("content-type", "application/json" if found else "text/plain")
            self.end_headers()
            self.wfile.write(b'{"gitVersion": "v1.30.0"}' if found else b"404 page not found")

    with listening(Web(("127.0.0.1", 0), Handler), site.server_context()) as port:
        environ = {"KUBECONFIG": str(site.kubeconfig(port))}
        complaint, _ = run(capsys, environ, "standalone", "status", "fleet")
    assert f"https://127.0.0.1:{port} is a Kubernetes-style API (v1.30.0) without Deployments (apps/v1)" in complaint


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_port_on_which_nothing_listens_is_reported(
    command: list[str], site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    complaint, remedy = run(capsys, {"KUBECONFIG": str(site.kubeconfig(port))}, *command)
    assert complaint == (
        f"crinit: https://127.0.0.1:{port} cannot be reached: nothing listens there (connection refused)"
    )
    assert 'is the cluster up, and is that the right server for the context "host"?' in remedy


def test_a_name_that_is_not_known_is_reported(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig = site.kubeconfig(0, server="https://no-such-host.invalid:6443")
    complaint, remedy = run(capsys, {"KUBECONFIG": str(kubeconfig)}, "standalone", "status", "fleet")
    assert "https://no-such-host.invalid:6443 cannot be reached: its name is not known" in complaint
    assert "Is a VPN missing?" in remedy


def test_plain_http_in_the_place_of_tls_is_reported(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(200, {"content-type": "text/html"}, PAGE, None) as port:
        environ = {"KUBECONFIG": str(site.kubeconfig(port))}
        complaint, _ = run(capsys, environ, "standalone", "init", "fleet")
    assert "something answers there, but not with TLS, so that it is no Kubernetes API" in complaint


@pytest.mark.parametrize(
    ("greeting", "complaint"),
    [(b"SSH-2.0-OpenSSH_9.6\r\n", "but not with TLS"), (b"", "it closes the connection without an answer")],
    ids=["SSH", "nothing"],
)
def test_another_protocol_is_reported(
    greeting: bytes, complaint: str, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    class Greeter(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(greeting)
            self.request.recv(1 << 16)

    with listening(socketserver.TCPServer(("127.0.0.1", 0), Greeter)) as port:
        environ = {"KUBECONFIG": str(site.kubeconfig(port))}
        said, _ = run(capsys, environ, "standalone", "status", "fleet")
    assert complaint in said


def test_something_within_tls_that_is_not_http_is_reported(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    class Talker(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1 << 16)
            self.request.sendall(b"* OK IMAP4rev1 ready\r\n")

    with listening(socketserver.TCPServer(("127.0.0.1", 0), Talker), site.server_context()) as port:
        environ = {"KUBECONFIG": str(site.kubeconfig(port))}
        complaint, _ = run(capsys, environ, "standalone", "status", "fleet")
    assert "what answers there does not speak HTTP" in complaint


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [("authority", "certificate"), ("name", "IP address mismatch"), ("time", "certificate has expired")],
)
def test_a_certificate_that_is_not_trusted_is_reported_with_the_reason(
    wrong: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("kept", "shown"):
        (tmp_path / name).mkdir()
    names = ("other.example.com",) if wrong == "name" else ("127.0.0.1",)
    site = Site(tmp_path / "shown", names=names, now=time.time() - 20 * 366 * 86400 if wrong == "time" else None)
    trusted = Site(tmp_path / "kept") if wrong == "authority" else site
    with serving(200, {}, b"{}", site.server_context()) as port:
        environ = {"KUBECONFIG": str(trusted.kubeconfig(port))}
        complaint, remedy = run(capsys, environ, "standalone", "init", "fleet")
    assert f"https://127.0.0.1:{port} cannot be reached: its certificate is not trusted (" in complaint
    assert reason in complaint
    assert "is it the cluster that you mean?" in remedy


def test_a_missing_client_certificate_is_reported(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    context = site.server_context()
    context.load_verify_locations(site.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # later ones refuse after the handshake, or just close
    with serving(200, {}, b"{}", context) as port:
        environ = {"KUBECONFIG": str(site.kubeconfig(port))}
        complaint, remedy = run(capsys, environ, "standalone", "init", "fleet")
    assert "it refuses the connection" in complaint
    assert 'is the client certificate of the context "host" still good?' in remedy


def test_a_server_that_never_answers_is_a_timeout(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        cluster = {"server": url, "certificate-authority": str(site.authority)}
        client = clients.Client(Context(name="host", cluster=cluster), patience=0.2)
        with pytest.raises(HostError, match="cannot be reached: there is no answer") as failed:
            client.call("GET", "/version")
    assert "Is a firewall or a missing VPN in between?" in failed.value.remedy


def test_an_answer_without_end_is_not_read_to_its_end(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_MOST_BYTES", 1 << 20)

    class Endless(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1 << 16)
            self.request.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
            with contextlib.suppress(OSError):
                while True:
                    self.request.sendall(b"[" * (1 << 16))

    with listening(socketserver.TCPServer(("127.0.0.1", 0), Endless), site.server_context()) as port:
        environ = {"KUBECONFIG": str(site.kubeconfig(port))}
        complaint, _ = run(capsys, environ, "standalone", "status", "fleet")
    assert "answers GET /version with more than 1 MiB" in complaint
