"""The states of authentication over real TLS: certificates as the handshake gives them, headers as HTTP has them."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.apiserver.api.clients import Client
from tests.apiserver.api.over_tls import OverTLS
from tests.apiserver.server.programs import Program
from tests.system.access import asks, states
from tests.system.access.oracle import Ask, Expected, Grant, Setup, State, expected
from tests.system.access.policies import RULES, SUBJECTS
from tests.system.access.worlds import Others, fill, put_policy, wait_for_issuer

ASKS = [ask for ask in asks.brief(4) if ask.wish.verb != "watch"]


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Others]:
    with Others(tmp_path_factory.mktemp("others")).running() as made:
        yield made


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, others: Others) -> Iterator[Program]:
    with Program(tmp_path_factory.mktemp("server"), *others.flags()) as started:
        with started.client() as client:
            fill(client)
            wait_for_issuer(client, others)
        yield started


def _identity(directory: Path, others: Others, name: str, context: ssl.SSLContext) -> None:
    """Makes a connection that of somebody with a certificate."""
    party = others.certificates[name]
    path = directory / f"{name}.pem"
    key = party.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(party.pem.encode() + key)
    context.load_cert_chain(path)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory, program: Program, others: Others) -> Iterator[dict[str, OverTLS]]:
    """One connection for each certificate, and one without."""
    directory = tmp_path_factory.mktemp("identities")
    with contextlib.ExitStack() as stack:
        found = {}
        for name in ("", *others.certificates):
            context = program.trust()
            if name:
                _identity(directory, others, name, context)
            found[name] = stack.enter_context(program.client(context))
        yield found


def _status(client: Client, state: State, ask: Ask) -> int:
    headers = {"Authorization": None, **dict(state.headers)}
    if ask.body is not None:
        headers["Content-Type"] = ask.content_type
    return client.request(ask.method, ask.target, body=ask.body, headers=headers).status


def test_every_state_of_authentication_over_tls(program: Program, others: Others, clients: dict[str, OverTLS]) -> None:
    grant = Grant(RULES["all by names"], SUBJECTS["several"])
    with program.client() as admin:
        put_policy(admin, grant)
    setup = Setup(grants=(Grant(states.IMKES_RULES, [("User", "imke")]), grant))
    differences, asked = [], 0
    for state in states.every(others.tokens()):
        for ask in ASKS:
            due: Expected = expected(state, ask, setup)
            status = _status(clients[state.certificate], state, ask)
            asked += 1
            if status != due.status:
                differences.append(f"{state.label} | {ask}: {status}, expected {due.status}")
    assert not differences, "\n".join(differences)
    assert asked > 400
