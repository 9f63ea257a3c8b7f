"""Unusual methods and paths: every case runs over TLS too, as the HTTP server parses them."""

from __future__ import annotations

import pytest

from tests.apiserver.api.clients import ADMIN_TOKEN, Client
from tests.apiserver.api.in_process import InProcessClient
from tests.apiserver.api.objects import BASE, CLUSTERS, cluster, names, path_of
from tests.apiserver.server.programs import Program

pytestmark = pytest.mark.wire


@pytest.fixture(autouse=True)
def _one_cluster(client: Client) -> None:
    client.post(CLUSTERS, cluster("a")).expect(201)


def test_head_is_get_without_the_body(client: Client) -> None:
    for path, status in (
        (CLUSTERS, 200),
        (path_of("a"), 200),
        (path_of("a") + "/status", 200),
        (path_of("none"), 404),
        (CLUSTERS + "?limit=x", 400),
        ("/healthz", 200),
        ("/version", 200),
        ("/apis", 200),
        ("/nothing", 404),
    ):
        head, get = client.request("HEAD", path), client.request("GET", path)
        assert (head.status, head.body, get.status) == (status, b"", status)
        for name in ("Content-Type", "Content-Length"):
            assert head.header(name) == get.header(name)


def test_a_slash_at_the_end_changes_nothing(client: Client) -> None:
    for path in (CLUSTERS, path_of("a"), path_of("a") + "/status"):
        assert client.get(path + "/").expect(200) == client.get(path).expect(200)


def test_a_slash_at_the_end_of_a_write(client: Client) -> None:
    client.post(CLUSTERS + "/", cluster("b")).expect(201)
    client.put(path_of("b") + "/", cluster("b", "gce")).expect(200)
    client.delete(path_of("b") + "/").expect(200)
    assert names(client.get(CLUSTERS).expect(200)) == ["a"]


@pytest.mark.parametrize("method", ["FOO", "BREW", "OPTIONS", "TRACE", "PROPFIND", "X-Y"])
def test_an_unknown_method_is_not_allowed(client: Client, method: str) -> None:
    for path in (CLUSTERS, path_of("a"), path_of("a") + "/status"):
        client.request(method, path).refused(405, "MethodNotAllowed")
    assert names(client.get(CLUSTERS).expect(200)) == ["a"]


def test_a_method_in_lower_case_is_unknown(local: InProcessClient, program: Program) -> None:
    head = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n"
    for path in (CLUSTERS, path_of("a"), path_of("a") + "/status"):
        local.request("get", path).refused(405, "MethodNotAllowed")
        with program.socket() as connection:  # a client library sends methods in upper case
            connection.sendall(f"get {path} {head}".encode())
            answer = connection.recv(65536)
            assert (answer.startswith(b"HTTP/1.1 405 "), b'"reason":"MethodNotAllowed"' in answer) == (True, True)


@pytest.mark.parametrize(("method", "verb"), [("POST", "create"), ("DELETE", "delete")])
def test_a_method_that_the_status_does_not_have(client: Client, method: str, verb: str) -> None:
    answer = client.request(method, path_of("a") + "/status", body=cluster("a"))
    said = f'{verb} is not supported on resources of kind "clusters.clusterregistry.k8s.io"'
    assert answer.refused(405, "MethodNotAllowed")["message"] == said


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/apis/clusterregistry.k8s.io/v1alpha1/nothings",
        "/apis/clusterregistry.k8s.io/v9/clusters",
        "/apis/nothing.k8s.io/v1/clusters",
        f"{BASE}/namespaces/default/clusters",
        f"{BASE}/namespaces/default/clusters/a",
        f"{BASE}/watch",
    ],
)
def test_an_unknown_path_is_a_plain_404(client: Client, path: str) -> None:
    for answer in (client.get(path), client.post(path, {}), client.put(path, {}), client.delete(path, {})):
        assert (answer.status, answer.body) == (404, b"404 page not found\n")
        assert (answer.header("Content-Type") or "").startswith("text/plain")


def test_a_name_in_the_path_may_be_percent_encoded(client: Client) -> None:
    assert client.get(f"{CLUSTERS}/%61").expect(200)["metadata"]["name"] == "a"


def test_a_name_that_no_object_has_is_not_found(client: Client) -> None:
    for name in ("%00", "%20", "A", "a%0d%0ab", "%ff", "%F0%9F%90%B3", "x" * 300):
        client.get(f"{CLUSTERS}/{name}").refused(404, "NotFound")


def test_a_name_that_is_no_path_segment_is_refused(client: Client) -> None:
    for name in (".", "..", "%2e%2e", "a%25b"):
        refused = client.get(f"{CLUSTERS}/{name}").refused(400, "BadRequest")
        assert refused["message"].startswith("Name parameter invalid: ")


def test_unknown_parameters_do_no_harm(client: Client) -> None:
    query = "?nope=1&nope=2&=&x&%ff=%ff&&;;"
    assert names(client.get(CLUSTERS + query).expect(200)) == ["a"]


def test_timeouts_of_ordinary_requests_are_accepted(client: Client) -> None:
    client.get(CLUSTERS, timeout="30s", timeoutSeconds=3).expect(200)
    client.put(path_of("a"), cluster("a", "gce"), timeout="10s", fieldManager="tests").expect(200)


@pytest.mark.parametrize(("manager", "status"), [("x" * 128, 200), ("x" * 129, 422), ("a\u0007b", 422), ("ö", 200)])
def test_the_name_of_a_field_manager(client: Client, manager: str, status: int) -> None:
    answer = client.put(path_of("a"), cluster("a", "gce"), fieldManager=manager)
    assert answer.status == status, answer.body
