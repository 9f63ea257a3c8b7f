"""Bodies that never arrive: whoever sends them keeps nobody else from the server, and fills no memory."""

from __future__ import annotations

import contextlib
import json
import ssl
import time
from collections.abc import Iterator, Sequence

import pytest

from tests.apiserver.api.clients import PATIENCE, Client
from tests.apiserver.api.objects import CLUSTERS, cluster
from tests.apiserver.server.programs import Program

TOKENS = """\
admintoken,admin,uid-admin,"system:masters"
nobodytoken,nobody,uid-nobody
noisytoken,noisy,uid-noisy,"writers"
quiettoken,quiet,uid-quiet,"writers"
"""
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEW = {"spec": {"resourceAttributes": {"verb": "list", "resource": "clusters", "group": "clusterregistry.k8s.io"}}}
NOISY = {"Authorization": "Bearer noisytoken"}
SEATS = 200
MEBIBYTE = 1 << 20
AT_ONCE = 10.0
"""Seconds; the machine may be busy. A seat is waited for 15 s."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    program = Program(tmp_path_factory.mktemp("bodies"))
    (program.directory / "tokens.csv").write_text(TOKENS)
    with program:
        with program.client() as client:
            role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "writer"}}
            rules = [{"apiGroups": ["clusterregistry.k8s.io"], "resources": ["*"], "verbs": ["*"]}]
            client.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", {**role, "rules": rules}).expect(201)
            binding = {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "writer"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer"},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "writers"}],
            }
            client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).expect(201)
        yield program


@pytest.fixture
def client(program: Program) -> Iterator[Client]:
    with program.client() as client:
        yield client


def begin(program: Program, target: str, *, token: str, size: int = 1000, sent: bytes = b"{") -> ssl.SSLSocket:
    """A request of which only a part of the body is sent."""
    connection = program.socket()
    connection.sendall(
        f"POST {target} HTTP/1.1\r\nHost: registry\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n".encode()
    )
    connection.sendall(sent)
    return connection


def post(client: Client, target: str, obj: object, *, token: str) -> tuple[int, float]:
    """The status of an answer, and the seconds that it took."""
    begun = time.monotonic()
    answer = client.request("POST", target, body=json.dumps(obj).encode(), headers={"Authorization": f"Bearer {token}"})
    return answer.status, time.monotonic() - begun


@pytest.mark.parametrize(("target", "token"), [(REVIEWS, "nobodytoken"), (CLUSTERS, "noisytoken")])
def test_bodies_that_never_arrive_hold_no_seats(program: Program, client: Client, target: str, token: str) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(SEATS + 20):
            stack.enter_context(begin(program, target, token=token))
        for name, writer in ((f"{token}-a", "quiettoken"), (f"{token}-b", "noisytoken")):
            status, seconds = post(client, CLUSTERS, cluster(name), token=writer)
            assert (status, seconds < AT_ONCE) == (201, True), seconds
        status, seconds = post(client, REVIEWS, REVIEW, token="nobodytoken")
        assert (status, seconds < AT_ONCE) == (201, True), seconds


def test_a_body_that_comes_late_is_worked_on(program: Program) -> None:
    body = json.dumps(cluster("late")).encode()
    with begin(program, CLUSTERS, token="quiettoken", size=len(body), sent=body[:10]) as connection:
        connection.sendall(body[10:])
        assert connection.recv(4096).startswith(b"HTTP/1.1 201 ")


def test_one_user_fills_only_a_part_of_the_room_for_bodies(program: Program, client: Client) -> None:
    program.forget_peak()
    before = program.resident_bytes()
    large = b" " * (3 * MEBIBYTE - 1)
    with contextlib.ExitStack() as stack:
        sent = []
        for _ in range(12):  # more than a user's part, which is 24 MiB
            connection = stack.enter_context(begin(program, CLUSTERS, token="noisytoken", size=3 * MEBIBYTE, sent=b""))
            with contextlib.suppress(OSError):  # it may be closed before all is sent
                connection.sendall(large)
            sent.append(connection)
        refusals = first_answers(sent, count=4)
        assert any(refusals)
        for refusal in filter(None, refusals):
            assert refusal.startswith(b"HTTP/1.1 429 ")
            assert b"retry-after: 1\r\n" in refusal.lower()
        # Others have room for theirs.
        padded = json.dumps(cluster("roomy")).encode().ljust(2 * MEBIBYTE)
        headers = {"Authorization": "Bearer quiettoken"}
        assert client.request("POST", CLUSTERS, body=padded, headers=headers).status == 201
        assert program.peak_bytes() - before < 100 * MEBIBYTE
    # All of it is given back, once the server has noticed that they have left.
    large = json.dumps(cluster("then")).encode().ljust(3 * MEBIBYTE)
    until = time.monotonic() + PATIENCE
    while (served := client.request("POST", CLUSTERS, body=large, headers=NOISY).status) != 201:
        assert served == 429
        assert time.monotonic() < until
        time.sleep(0.05)


def first_answers(connections: Sequence[ssl.SSLSocket], *, count: int) -> list[bytes]:
    """The answers of those that get one first; that of a connection that is broken off is empty."""
    found: list[bytes] = []
    waiting, until = list(connections), time.monotonic() + PATIENCE
    while len(found) < count:
        assert time.monotonic() < until, found
        for connection in waiting.copy():
            connection.settimeout(0.05)
            try:
                found.append(connection.recv(4096))
            except TimeoutError:
                continue
            except OSError:
                found.append(b"")
            waiting.remove(connection)
    return found
