"""Every kind of credentials over real TLS: certificates from the handshake, headers from HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.apiserver.api.clients import Client
from tests.apiserver.api.over_tls import OverTLS
from tests.apiserver.server.programs import Program
from tests.system.access import calls, logins
from tests.system.access.oracle import Call, Expected, Grant, Login, Setup, expected
from tests.system.access.policies import RULES, SUBJECTS
from tests.system.access.servers import Externals, fill, put_policy, wait_for_issuer

CALLS = [call for call in calls.brief(4) if call.action.verb != "watch"]


@pytest.fixture(scope="module")
def externals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Externals]:
    with Externals(tmp_path_factory.mktemp("externals")).running() as made:
        yield made


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, externals: Externals) -> Iterator[Program]:
    with Program(tmp_path_factory.mktemp("server"), *externals.flags()) as started:
        with started.client() as client:
            fill(client)
            wait_for_issuer(client, externals)
        yield started


def _identity(directory: Path, externals: Externals, name: str) -> Path:
    """The file of a client certificate and its key."""
    party = externals.certificates[name]
    path = directory / f"{name}.pem"
    key = party.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(party.pem.encode() + key)
    return path


@pytest.fixture(scope="module")
def clients(
    tmp_path_factory: pytest.TempPathFactory, program: Program, externals: Externals
) -> Iterator[dict[str, OverTLS]]:
    """One connection for each certificate, and one without."""
    directory = tmp_path_factory.mktemp("identities")
    with contextlib.ExitStack() as stack:
        found = {}
        for name in ("", *externals.certificates):
            identity = [_identity(directory, externals, name)] * 2 if name else []
            found[name] = stack.enter_context(program.client(*identity))
        yield found


def _status(client: Client, login: Login, call: Call) -> int:
    headers = {"Authorization": None, **dict(login.headers)}
    if call.body is not None:
        headers["Content-Type"] = call.content_type
    return client.request(call.method, call.target, body=call.body, headers=headers).status


def test_every_login_over_tls(program: Program, externals: Externals, clients: dict[str, OverTLS]) -> None:
    grant = Grant(RULES["all by names"], SUBJECTS["several"])
    with program.client() as admin:
        put_policy(admin, grant)
    setup = Setup(grants=(Grant(logins.IMKES_RULES, [("User", "imke")]), grant))
    differences, asked = [], 0
    for login in logins.every(externals.tokens()):
        for call in CALLS:
            due: Expected = expected(login, call, setup)
            status = _status(clients[login.certificate], login, call)
            asked += 1
            if status != due.status:
                differences.append(f"{login.label} | {call}: {status}, expected {due.status}")
    assert not differences, "\n".join(differences)
    assert asked > 400
