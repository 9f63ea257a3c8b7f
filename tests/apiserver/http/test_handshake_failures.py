"""Clients that cannot get through TLS: they are told why, and so is the log, over real sockets."""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterregistry.apiserver.http import listener
from clusterregistry.apiserver.http.listener import HandshakeFailureLog
from clusterregistry.apiserver.http.transport import HandshakeFailure
from clusterregistry.apiserver.pki.tls import MAX_DISCARDED, MAX_ISSUER, PLAIN_HTTP_ANSWER
from tests.apiserver.server.authorities import Holder, root
from tests.apiserver.server.programs import Program
from tests.system.e2e import real_programs

REFUSED = "refused the client certificate"
PATIENCE = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with Program(tmp_path_factory.mktemp("server")) as program:
        yield program


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Holder:
    return root(tmp_path_factory.mktemp("stranger"), "stranger")


def said_to(server: Program, *sent: bytes) -> bytes:
    """All that the server says to somebody who sends this without TLS, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as plain:
        for part in sent:
            plain.sendall(part)
        return b"".join(iter(lambda: plain.recv(4096), b""))


@pytest.mark.parametrize(
    "request_line", [b"GET /version", b"HEAD /", b"POST /apis", b"PUT /x", b"OPTIONS *", b"DELETE /x", b"PATCH /x",
                     b"CONNECT registry:443"]
)  # fmt: skip
def test_plain_http_is_answered_as_gos_server_does(server: Program, request_line: bytes) -> None:
    assert said_to(server, request_line + b" HTTP/1.1\r\nHost: registry\r\n\r\n") == PLAIN_HTTP_ANSWER


def test_plain_http_that_comes_in_parts_is_answered(server: Program) -> None:
    assert said_to(server, b"GE", b"T / HTTP/1.1\r\n\r\n") == PLAIN_HTTP_ANSWER


def test_a_body_behind_plain_http_does_not_take_the_answer_back(server: Program) -> None:
    body = b"x" * (MAX_DISCARDED // 2)
    head = b"POST /apis HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert said_to(server, head, body) == PLAIN_HTTP_ANSWER


def test_other_noise_is_not_answered_in_http(server: Program) -> None:
    assert b"HTTP" not in said_to(server, b"SSH-2.0-OpenSSH_9.2\r\n")


def test_a_client_that_stays_after_plain_http_is_closed_soon(server: Program) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert plain.recv(4096) == PLAIN_HTTP_ANSWER
        until = time.monotonic() + PATIENCE
        with pytest.raises(ConnectionError):  # noqa: PT012 - the write behind the end meets it
            while time.monotonic() < until:
                plain.sendall(b"more\r\n")
                time.sleep(0.1)


def test_endless_input_after_plain_http_takes_no_memory(server: Program) -> None:
    before = server.resident_bytes()
    with pytest.raises(ConnectionError):
        said_to(server, b"POST / HTTP/1.1\r\n\r\n", *([b"x" * 1024 * 1024] * 256))
    assert server.resident_bytes() - before < 16 * 1024 * 1024


def test_plain_http_leaves_nothing_behind(server: Program) -> None:
    before = server.descriptors()
    for _ in range(20):
        said_to(server, b"GET / HTTP/1.1\r\n\r\n")
    until = time.monotonic() + PATIENCE
    while server.descriptors() > before:
        assert time.monotonic() < until
        time.sleep(0.05)


def kubectl(server: Program, *arguments: str, scheme: str = "https") -> str:
    """What kubectl complains of."""
    place = f"--server={scheme}://127.0.0.1:{server.port}"
    done = subprocess.run(
        [real_programs.kubectl("1.36"), "--kubeconfig=/dev/null", place, *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    return done.stderr


def test_kubectl_reports_plain_http(server: Program) -> None:
    assert "(BadRequest)" in kubectl(server, "get", "--raw=/version", scheme="http")
    assert "Client sent an HTTP request to an HTTPS server" in kubectl(server, "-v=8", "get", "clusters", scheme="http")


def refused(server: Program, holder: Holder, version: ssl.TLSVersion) -> str:
    """The alert that a client with a certificate gets."""
    context = server.trust()
    context.load_cert_chain(holder.chain, holder.key)
    context.minimum_version = context.maximum_version = version
    with pytest.raises(ssl.SSLError) as raised, server.socket(trust=context) as connection:  # noqa: PT012 - TLS 1.3 tells when one reads
        connection.sendall(b"GET /version HTTP/1.1\r\nHost: registry\r\n\r\n")
        connection.recv(1)
    return raised.value.reason or ""


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_with_a_foreign_certificate_gets_the_reason_as_an_alert(
    server: Program, stranger: Holder, version: ssl.TLSVersion
) -> None:
    assert "UNKNOWN_CA" in refused(server, stranger.issue(f"jane-{version.name}"), version)


def test_the_log_names_issuer_and_reason_once(tmp_path: Path) -> None:
    first, second = root(tmp_path / "first", "first"), root(tmp_path / "second", "second", subject="/O=a\tb/CN=second")
    with Program(tmp_path / "server") as server:
        ours = Holder(server.data / "certs", "serving")
        for number in range(3):
            refused(server, first.issue(f"jane-{number}"), ssl.TLSVersion.TLSv1_3)
            refused(server, second.issue(f"joe-{number}"), ssl.TLSVersion.TLSv1_2)
            refused(server, ours, ssl.TLSVersion.TLSv1_3)
        lines = [line for line in server.logged().splitlines() if REFUSED in line]
    assert len(lines) == 3
    assert "at 127.0.0.1: unable to get local issuer certificate; its issuer is 'commonName=first'" in lines[0]
    assert "--client-ca-file names and, with --generate-admin, of DATA_DIR/ca.crt" in lines[0]
    assert r"'organizationName=a\tb,commonName=second'" in lines[1]
    assert "unsuitable certificate purpose; its issuer is 'commonName=clusterregistry-ca@" in lines[2]
    assert "--client-ca-file" in lines[0]


def test_kubectl_with_a_foreign_certificate_shows_the_reason(server: Program, stranger: Holder) -> None:
    jane = stranger.issue("jane")
    flags = (f"--client-certificate={jane.certificate}", f"--client-key={jane.key}")
    said = kubectl(server, *flags, f"--certificate-authority={server.data / 'ca.crt'}", "get", "--raw=/version")
    assert "tls: unknown certificate authority" in said


class Clock:
    """A loop in which time passes when the test says so."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def call_later(self, *_: object) -> None:
        pass


def refusal_of(number: int) -> HandshakeFailure:
    error = ssl.SSLCertVerificationError(1, "no")
    error.verify_message = "no"
    return HandshakeFailure(error, b"", lambda: f"issuer {number}")


def test_failed_handshakes_fill_neither_the_log_nor_the_memory(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    kept = HandshakeFailureLog(clock)  # type: ignore[arg-type]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for number in range(3 * listener.MAX_LOGGED_PAIRS):
            kept.handle(refusal_of(number), client=ours, address="10.0.0.1")
        assert len(caplog.messages) == listener.MAX_LINES
        for number in range(3 * listener.MAX_LOGGED_PAIRS):
            clock.now += 61.0
            kept.handle(refusal_of(number), client=ours, address="10.0.0.1")
    assert len(kept._logged) == listener.MAX_LOGGED_PAIRS


def test_the_same_failure_is_logged_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    kept = HandshakeFailureLog(clock)  # type: ignore[arg-type]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for minute in range(121):
            clock.now = minute * 60.0
            kept.handle(refusal_of(1), client=ours, address="10.0.0.1")
    assert len(caplog.messages) == 3


def test_the_name_of_an_issuer_is_cut_off(tmp_path: Path, server: Program) -> None:
    long = root(tmp_path, "long", subject="/" + "/".join(f"OU={'x' * 60}{number}" for number in range(20)) + "/CN=long")
    refused(server, long.issue("jane"), ssl.TLSVersion.TLSv1_3)
    (line,) = [line for line in server.logged().splitlines() if "organizationalUnitName=xxx" in line]
    assert len(line) < MAX_ISSUER + 400
