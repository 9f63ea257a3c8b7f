"""The client of one cluster with simulated members: what it trusts, how much it reads, and what it sends to whom."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from clusterregistry.client.credentials import Credential
from clusterregistry.client.transport import Request
from clusterregistry.controllers.observer.endpoint import choose_endpoint
from clusterregistry.controllers.observer.failure import CutError, ProbeError, RoundError
from clusterregistry.controllers.observer.member import Member, RoundClient, SharedParts
from clusterregistry.controllers.observer.observation import Reason
from tests.controllers.fleets import with_members
from tests.controllers.observer.subjects import PATIENCE, PATIENT, SOON, other_pem
from tools.simulator import Fault, SimulatedMember, Simulator
from tools.simulator.connection import HUGE_BYTES

LIMIT = 64 << 10
BUFFERS = 24 << 20
"""What the operating system may keep of a connection whose other end reads no more."""


def bearer(member: SimulatedMember) -> Credential:
    return Credential(authorization=f"Bearer {member.token}")


def certified(member: SimulatedMember) -> Credential:
    certificate, key = member.identity.client_pair()
    return Credential(certificate=certificate, key=key)


def request(path: str = "/version", *, timeout: float = PATIENCE, limit: int = LIMIT) -> Request:
    return Request(method="GET", target=path, timeout=timeout, limit=limit)


def client_of(member: SimulatedMember, **endpoint: Any) -> Member:
    return Member(replace(choose_endpoint(member.cluster()), **endpoint), settings=PATIENT, shared=SharedParts())


@contextlib.asynccontextmanager
async def one_member(directory: Path) -> AsyncIterator[tuple[SimulatedMember, Member]]:
    """A simulated member, and a client with its token."""
    async with Simulator(directory=directory) as simulator:
        client = client_of(simulator[0])
        await client.use(bearer(simulator[0]))
        try:
            yield simulator[0], client
        finally:
            await client.disconnect()


async def failure_of(member: Member, asked: Request | None = None) -> ProbeError:
    with pytest.raises(ProbeError) as caught:
        await member.exchange(asked or request())
    assert caught.value.failure.message.isprintable()
    return caught.value


def round_client(client: Member, credential: Credential, *, seconds: float = PATIENCE) -> RoundClient:
    return RoundClient(client, credential, deadline=asyncio.get_running_loop().time() + seconds)


# Connections


@with_members
async def test_requests_share_one_connection(tmp_path: Path) -> None:
    async with one_member(tmp_path) as (member, client):
        for _ in range(5):
            assert (await client.exchange(request())).status == 200
        assert (client.connections, member.connection_count, member.request_count) == (1, 1, 5)


@with_members
async def test_a_request_is_sent_again_if_a_kept_connection_has_ended(tmp_path: Path) -> None:
    async with one_member(tmp_path) as (member, client):
        await client.exchange(request())
        member.fault = Fault.CUT
        await failure_of(client)  # over the kept connection, and then over another one
        assert (member.connection_count, member.request_count) == (2, 3)
        assert isinstance(await failure_of(client), CutError)  # over a new one: once
        assert (member.connection_count, member.request_count) == (3, 4)
        member.fault = Fault.NONE
        assert (await client.exchange(request())).status == 200
        member.cut()
        assert (await client.exchange(request())).status == 200


@with_members
async def test_after_disconnect_another_connection_is_opened(tmp_path: Path) -> None:
    async with one_member(tmp_path) as (member, client):
        for _ in range(3):
            await client.exchange(request())
            await client.disconnect()
            await client.disconnect()
        assert member.connection_count == client.connections == 3


@with_members
async def test_another_client_certificate_is_shown_over_another_connection(tmp_path: Path) -> None:
    async with one_member(tmp_path) as (member, client):
        await client.exchange(request())
        await client.use(certified(member))
        await client.exchange(request("/api/v1/nodes"))
        await client.use(replace(certified(member), authorization=f"Bearer {member.token}"))
        await client.exchange(request("/api/v1/nodes"))
        assert member.certificates == ["", "observer"]
        assert [each.authorization for each in member.requests] == [
            f"Bearer {member.token}",
            "",
            f"Bearer {member.token}",
        ]


@with_members
async def test_two_clusters_at_one_address_share_no_connection(tmp_path: Path) -> None:
    """Also with parts that all members of an observer share."""
    async with Simulator(directory=tmp_path) as simulator:
        member, shared = simulator[0], SharedParts()
        endpoint = choose_endpoint(member.cluster())
        one, other = (Member(endpoint, settings=PATIENT, shared=shared) for _ in range(2))
        await one.use(certified(member))
        await other.use(bearer(member))
        for client in (one, other, one, other):
            await client.exchange(request())
        assert member.certificates == ["observer", ""]
        assert [each.certificate for each in member.requests] == ["observer", "", "observer", ""]
        await one.disconnect()
        await other.disconnect()


@with_members
async def test_no_redirect_is_followed(tmp_path: Path) -> None:
    async with Simulator(2, directory=tmp_path) as simulator:
        member, other = simulator.members
        member.fault, member.redirect_to = Fault.REDIRECT, other.url
        client = client_of(member, authorities=member.identity.authority + other.identity.authority)
        await client.use(bearer(member))
        reader = round_client(client, bearer(member))
        for read in (reader.get, reader.get_object, reader.get_success):
            with pytest.raises(ProbeError) as caught:
                await read("/version", limit=LIMIT)
            assert caught.value.failure.reason is Reason.BAD_RESPONSE
            assert "redirect (307)" in caught.value.failure.message
            assert not isinstance(caught.value, RoundError)
        assert other.connection_count == 0
        await client.disconnect()


# Trust


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        (Fault.OTHER_CA, "of an unknown authority"),
        (Fault.EXPIRED_CERTIFICATE, "has expired"),
        (Fault.WRONG_NAME, "for another name"),
    ],
)
@with_members
async def test_nothing_is_sent_to_a_server_that_is_not_trusted(tmp_path: Path, fault: Fault, part: str) -> None:
    async with one_member(tmp_path) as (member, client):
        await client.exchange(request())
        member.fault = fault
        error = await failure_of(client)
        assert isinstance(error, RoundError)
        assert error.failure.reason is Reason.TLS_UNTRUSTED
        assert part in error.failure.message
        assert member.request_count == 1


@with_members
async def test_only_the_authorities_of_the_cluster_count(tmp_path: Path) -> None:
    async with Simulator(directory=tmp_path) as simulator:
        for authorities in (other_pem(tmp_path), b""):
            client = client_of(simulator[0], authorities=authorities)
            assert (await failure_of(client)).failure.reason is Reason.TLS_UNTRUSTED
            await client.disconnect()
        assert simulator[0].request_count == 0


@pytest.mark.parametrize(
    "authorities", [b"no PEM", b"\x00\xff", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"]
)
@with_members
async def test_a_bundle_that_is_none_is_told(tmp_path: Path, authorities: bytes) -> None:
    async with Simulator(directory=tmp_path) as simulator:
        client = client_of(simulator[0], authorities=authorities)
        error = await failure_of(client)
        await client.disconnect()
        assert error.failure.reason is Reason.TLS_UNTRUSTED
        assert "caBundle" in error.failure.message
        assert simulator[0].connection_count == 0


@with_members
async def test_a_certificate_may_be_verified_by_another_name(tmp_path: Path) -> None:
    """For an agent, which reaches its cluster by an address that is not in the certificate."""
    async with Simulator(directory=tmp_path) as simulator:
        simulator[0].fault = Fault.WRONG_NAME
        client = client_of(simulator[0], tls_server_name="other.simulated.invalid")
        assert (await client.exchange(request())).status == 200
        await client.disconnect()


@with_members
async def test_the_end_and_the_authority_of_the_serving_certificate_are_known(tmp_path: Path) -> None:
    async with one_member(tmp_path) as (member, client):
        assert client.serving is None
        await client.exchange(request())
        found = client.serving
        assert found is not None
        authority = x509.load_pem_x509_certificate(member.identity.authority)
        key = authority.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        assert found.authority == hashlib.sha256(key).hexdigest()
        leaf = x509.load_pem_x509_certificate(member.identity.serving.read_bytes())
        assert found.not_after == leaf.not_valid_after_utc.timestamp()


@with_members
async def test_a_port_without_tls_is_told(tmp_path: Path) -> None:
    async with one_member(tmp_path) as (member, client):
        member.fault = Fault.PLAIN_HTTP
        assert (await failure_of(client)).failure.reason in (Reason.CONNECTION_REFUSED, Reason.TLS_UNTRUSTED)
        assert member.request_count == 0


# Bounds


@pytest.mark.parametrize("fault", [Fault.ENDLESS_BODY, Fault.HUGE_JSON, Fault.HUGE_CHUNKED_JSON])
@with_members
async def test_a_body_beyond_the_limit_is_not_read(tmp_path: Path, fault: Fault) -> None:
    async with one_member(tmp_path) as (member, client):
        member.fault = fault
        error = await failure_of(client)
        assert error.failure.reason is Reason.BAD_RESPONSE
        assert str(LIMIT) in error.failure.message
        assert member.sent_bytes < BUFFERS < HUGE_BYTES


@pytest.mark.parametrize("fault", [Fault.NO_HTTP, Fault.HUGE_HEADER, Fault.DEEP_JSON, Fault.NO_JSON])
@with_members
async def test_other_answers_than_those_of_a_cluster_are_refused(tmp_path: Path, fault: Fault) -> None:
    async with one_member(tmp_path) as (member, client):
        member.fault = fault
        with pytest.raises(ProbeError) as caught:
            await round_client(client, bearer(member)).get_object("/version", limit=4 << 20)
        assert caught.value.failure.reason is Reason.BAD_RESPONSE


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.TLS_SILENT, Fault.SLOW, Fault.SLOW_BYTES])
@with_members
async def test_what_is_slow_ends_with_the_time_of_the_request(tmp_path: Path, fault: Fault) -> None:
    async with one_member(tmp_path) as (member, client):
        member.fault = fault
        error = await failure_of(client, request(timeout=SOON))
        assert isinstance(error, RoundError)
        assert error.failure.reason is Reason.TIMED_OUT


@with_members
async def test_without_time_nothing_is_sent(tmp_path: Path) -> None:
    async with one_member(tmp_path) as (member, client):
        with pytest.raises(RoundError) as caught:
            await round_client(client, bearer(member), seconds=0.0).get("/readyz", limit=LIMIT)
        assert caught.value.failure.reason is Reason.TIMED_OUT
        assert member.connection_count == 0


@with_members
async def test_a_failure_ends_a_request_unless_the_status_is_asked_for(tmp_path: Path) -> None:
    async with one_member(tmp_path) as (member, client):
        reader = round_client(client, bearer(member))
        member.fault = Fault.FORBIDDEN
        assert (await reader.get("/readyz", limit=LIMIT)).status == 403
        with pytest.raises(ProbeError) as caught:
            await reader.get_success("/readyz", limit=LIMIT)
        assert caught.value.failure.reason is Reason.FORBIDDEN
        member.fault = Fault.UNAUTHORIZED
        with pytest.raises(RoundError) as refused:
            await reader.get("/readyz", limit=LIMIT)
        assert refused.value.failure.reason is Reason.UNAUTHORIZED


@with_members
async def test_a_pause_that_a_cluster_asks_for_is_told(tmp_path: Path) -> None:
    async with one_member(tmp_path) as (member, client):
        member.fault = Fault.TOO_MANY_REQUESTS
        with pytest.raises(ProbeError) as caught:
            await round_client(client, bearer(member)).get_object("/version", limit=LIMIT)
        assert (caught.value.failure.reason, caught.value.retry_after) == (Reason.NOT_READY, 7.0)


@with_members
async def test_credentials_are_in_no_message_and_no_log(tmp_path: Path) -> None:
    records: list[logging.LogRecord] = []
    handler = logging.Handler(level=1)
    handler.emit = records.append  # type: ignore[assignment, method-assign]
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(1)
    try:
        async with one_member(tmp_path) as (member, client):
            member.fault = Fault.ECHO
            with pytest.raises(ProbeError) as caught:
                await round_client(client, bearer(member)).get_object("/version", limit=LIMIT)
            assert "[credential]" in caught.value.failure.message
            told = [caught.value.failure.message, repr(bearer(member)), *(each.getMessage() for each in records)]
            assert member.token not in os.linesep.join(told)
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
