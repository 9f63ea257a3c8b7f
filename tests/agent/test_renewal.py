"""Renewal of an agent's certificate, with the real registry and a clock that the test sets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.agent import identity
from clusterregistry.agent.identity import KubeconfigIdentity
from clusterregistry.agent.renewal import FilePlace, Place, Renewal, Renewed
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client.certificate_request import validity
from clusterregistry.client.rest import Client
from clusterregistry.client.transport import TransportParts
from tests.agent.sites import Site
from tests.registry.agents.tokens import CLUSTERS

Output = pytest.CaptureFixture[str]
DAY = 86400.0


class LoopEndedError(Exception):
    """Ends the loop of a renewal."""


def renewing(
    path: Path, *, clock: Callable[[], float], place: Place | None = None, most: int = 3
) -> tuple[list[float], Callable[[], Any]]:
    """The pauses of a renewal, and its run, which ends after some of them."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) >= most:
            raise LoopEndedError
        await asyncio.sleep(0)

    async def run() -> None:
        held, config = KubeconfigIdentity(path), identity.load(path, user_agent="test")
        async with Client(config, parts=TransportParts(credentials=held)) as client:
            renewed = Renewed(
                cluster="edge", config=config, identity=held, place=place or FilePlace(path), seconds=int(2 * DAY)
            )
            with pytest.raises(LoopEndedError):
                await Renewal(client, renewed, clock=clock, sleep=sleep).run()

    return pauses, run


def certificate(path: Path) -> bytes:
    return KubeconfigIdentity(path).current().certificate


def test_a_certificate_is_renewed_with_a_new_key_before_it_ends(site: Site, capsys: Output) -> None:
    path = site.join(capsys, "edge", None, "--certificate-duration=24h") / "agent.kubeconfig"
    before = KubeconfigIdentity(path).current()
    _, end = validity(before.certificate)
    pauses, run = renewing(path, clock=lambda: end - 0.15 * DAY)
    asyncio.run(run())
    after = KubeconfigIdentity(path).current()
    assert after.certificate != before.certificate
    assert after.key != before.key
    assert validity(after.certificate)[1] - end > 0.9 * DAY
    assert pauses[0] == 0.0  # renewed at once; then it waits for the next time
    assert pauses[1] == 300.0
    assert identity.cluster_of(after.certificate) == "edge"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_young_certificate_is_left_alone(site: Site, capsys: Output) -> None:
    path = site.join(capsys, "edge", None, "--certificate-duration=24h") / "agent.kubeconfig"
    before = certificate(path)
    pauses, run = renewing(path, clock=time.time)
    asyncio.run(run())
    assert certificate(path) == before
    assert pauses == [300.0] * 3


def test_an_agent_whose_cluster_is_deleted_tries_less_and_less(
    site: Site, capsys: Output, caplog: pytest.LogCaptureFixture
) -> None:
    path = site.join(capsys, "edge", None, "--certificate-duration=24h") / "agent.kubeconfig"
    before = certificate(path)
    site.admin.delete(f"{CLUSTERS}/edge").expect(200)
    pauses, run = renewing(path, clock=lambda: time.time() + 2 * DAY, most=4)
    asyncio.run(run())
    assert certificate(path) == before
    assert pauses == sorted(pauses)
    assert pauses[0] >= 10.0
    assert "join again, with a new bootstrap token" in caplog.text


def test_a_file_that_cannot_be_replaced_keeps_the_identity(site: Site, capsys: Output) -> None:
    path = site.join(capsys, "edge", None, "--certificate-duration=24h") / "agent.kubeconfig"

    class FullDisk:
        async def save(self, _: bytes) -> None:
            raise OperatorError("no space", remedy="free some")

    before = certificate(path)
    pauses, run = renewing(path, clock=lambda: validity(before)[1] - 60.0, place=FullDisk())
    asyncio.run(run())
    assert certificate(path) == before
    assert min(pauses) >= 10.0


def test_a_renewed_secret_is_seen_when_the_kubelet_shows_it(site: Site, capsys: Output) -> None:
    path = site.join(capsys, "edge", None, "--certificate-duration=24h") / "agent.kubeconfig"
    saved: list[bytes] = []

    class Mounted:
        async def save(self, content: bytes) -> None:
            saved.append(content)

    before = certificate(path)
    pauses, run = renewing(path, clock=lambda: validity(before)[1] - 60.0, place=Mounted(), most=1)
    asyncio.run(run())
    assert pauses == [150.0]
    assert certificate(path) == before
    path.write_bytes(saved[0])
    assert certificate(path) != before


def test_another_process_may_replace_the_identity(site: Site, capsys: Output) -> None:
    """The client in use takes the new certificate with the next request."""
    out = site.join(capsys, "edge")
    path = out / "agent.kubeconfig"

    async def work() -> None:
        held, config = KubeconfigIdentity(path), identity.load(path, user_agent="test")
        async with Client(config, parts=TransportParts(credentials=held)) as client:
            first = await _fingerprint(client)
            await asyncio.to_thread(site.join, capsys, "edge")
            assert await _fingerprint(client) != first

    asyncio.run(work())


async def _fingerprint(client: Client) -> str:
    from clusterregistry.client.rest import Call  # noqa: PLC0415 - beside its use

    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await client.call(Call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review))
    found: str = answer["status"]["userInfo"]["extra"]["authentication.kubernetes.io/credential-id"][0]
    return found
