"""Certificates and tokens, over real TLS."""

from __future__ import annotations

import ssl
import time
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apimachinery import certificates
from clusterregistry.client.errors import DisconnectedError, TLSError, UntrustedCertificateError
from clusterregistry.client.rest_config import RestConfig
from tests.apiserver.api.clients import Client
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import BASE, CLUSTERS, path_of
from tests.apiserver.api.over_tls import OverTLS
from tests.apiserver.server.programs import Program

NO_TOKEN = {"Authorization": None}
EVERYWHERE = [
    CLUSTERS,
    path_of("a"),
    "/healthz",
    "/readyz",
    "/livez",
    "/version",
    "/metrics",
    "/apis",
    "/nothing",
    BASE,
]


def test_the_administrators_certificate_opens_everything(program: Program) -> None:
    certs = program.data / "certs"
    with program.client(certs / "admin.crt", certs / "admin.key") as client:
        client.get(CLUSTERS, headers=NO_TOKEN).expect(200)
        assert client.get("/metrics", headers=NO_TOKEN).status == 200


def test_a_certificate_counts_for_its_connection_only(program: Program) -> None:
    certs = program.data / "certs"
    with (
        program.client(certs / "admin.crt", certs / "admin.key") as admin,
        program.client() as anonymous,
    ):
        admin.get(CLUSTERS, headers=NO_TOKEN).expect(200)
        anonymous.get(CLUSTERS, headers=NO_TOKEN).refused(403, "Forbidden")


def test_a_bad_token_does_not_spoil_a_good_certificate(program: Program) -> None:
    certs = program.data / "certs"
    with program.client(certs / "admin.crt", certs / "admin.key") as client:
        client.get(CLUSTERS, headers={"Authorization": "Bearer wrong"}).expect(200)


def test_a_certificate_of_another_authority_is_refused(program: Program, tmp_path: Path) -> None:
    now = time.time()
    authority, key = certificates.new_authority(certificates.new_key(), now=now), certificates.new_key()
    pem = certificates.client_certificate(authority, key, user="admin", group="system:masters", now=now)
    (tmp_path / "crt").write_bytes(pem)
    (tmp_path / "key").write_bytes(certificates.key_pem(key))
    with program.client(tmp_path / "crt", tmp_path / "key") as client:
        try:
            answer = client.get(CLUSTERS, headers=NO_TOKEN)
        except (TLSError, DisconnectedError):  # the handshake failed: as good an answer
            return
    answer.refused(401, "Unauthorized")


def test_a_serving_certificate_is_no_client_certificate(program: Program) -> None:
    certs = program.data / "certs"
    with program.client(certs / "serving.crt", certs / "serving.key") as client:
        try:
            assert client.get(CLUSTERS, headers=NO_TOKEN).status in (401, 403)
        except (TLSError, DisconnectedError):
            return


def test_the_server_has_a_certificate_of_its_authority(program: Program) -> None:
    of_the_system = RestConfig(server=f"https://127.0.0.1:{program.port}", user_agent="test")
    with OverTLS(of_the_system) as client, pytest.raises(UntrustedCertificateError):
        client.get("/healthz")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_modern_versions_of_tls(program: Program, version: ssl.TLSVersion) -> None:
    context = program.trust()
    context.minimum_version = context.maximum_version = version
    with program.socket(trust=context) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_plain_http_is_not_served(program: Program) -> None:
    import socket  # noqa: PLC0415 - the only test without TLS

    with socket.create_connection(("127.0.0.1", program.port), timeout=5) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            assert b"200" not in plain.recv(100)
        except ConnectionResetError:
            return


def test_tokens_of_the_file(client: Client) -> None:
    client.get(CLUSTERS, headers={"Authorization": "Bearer admintoken"}).expect(200)
    client.get(CLUSTERS, headers={"Authorization": "bearer admintoken"}).expect(200)
    said = client.get(CLUSTERS, headers={"Authorization": "Bearer viewertoken"}).refused(403, "Forbidden")
    assert 'User "viewer" cannot list resource "clusters"' in said["message"]


@pytest.mark.parametrize("path", EVERYWHERE)
def test_a_bad_token_is_refused_everywhere(client: Client, path: str) -> None:
    for method in ("GET", "POST", "DELETE", "BREW"):
        answer = client.request(method, path, headers={"Authorization": "Bearer wrong"})
        assert answer.refused(401, "Unauthorized") == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Basic YTpi", "admintoken", "Bearer  admintoken", "Token x"])
def test_a_request_without_a_bearer_token_is_anonymous(client: Client, header: str) -> None:
    said = client.get(CLUSTERS, headers={"Authorization": header}).refused(403, "Forbidden")
    assert 'User "system:anonymous"' in said["message"]


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_health_and_version_are_public(client: Client, path: str) -> None:
    assert client.get(path, headers=NO_TOKEN).status == 200


@pytest.mark.parametrize("path", ["/apis", BASE, "/openapi/v2", "/openapi/v3"])
def test_discovery_is_for_all_authenticated_users(client: Client, path: str) -> None:
    assert client.get(path, headers={"Authorization": "Bearer nobodytoken"}).status == 200
    client.get(path, headers=NO_TOKEN).refused(403, "Forbidden")


def test_anonymous_requests_can_be_refused(serve: Any) -> None:
    client: InProcessClient = serve("--anonymous-auth=false")
    for path in EVERYWHERE:
        client.get(path, headers=NO_TOKEN).refused(401, "Unauthorized")
    client.get(CLUSTERS).expect(200)


def test_anonymous_requests_are_refused_where_all_is_allowed(serve: Any) -> None:
    client: InProcessClient = serve("--authorization-mode=AlwaysAllow")
    client.get(CLUSTERS, headers=NO_TOKEN).refused(401, "Unauthorized")
    client.get(CLUSTERS, headers={"Authorization": "Bearer nobodytoken"}).expect(200)


def test_masters_are_not_denied_where_all_is_denied(serve: Any) -> None:
    client: InProcessClient = serve("--authorization-mode=AlwaysDeny")
    client.get(CLUSTERS).expect(200)
    client.get("/healthz", headers=NO_TOKEN).refused(403, "Forbidden")
