"""Two simulated members that record what they receive: each gets its own credential, and nothing of the other's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clusterregistry.controllers.access import AccessRules, open_access
from clusterregistry.controllers.observer.observation import Observation, Reason
from clusterregistry.controllers.observer.observer import Observer, observe_once
from clusterregistry.controllers.observer.settings import ObserverSettings
from tests.controllers.access.samples import PATIENCE, kubeconfig, rule, write_rules
from tools.simulator import Fault, SimulatedMember, Simulator

SETTINGS = ObserverSettings(deadline=PATIENCE, credential_deadline=PATIENCE)


@pytest.fixture
async def members(tmp_path: Path) -> AsyncIterator[Simulator]:
    async with Simulator(2, directory=tmp_path / "certificates") as simulator:
        simulator.write_registry(tmp_path)
        yield simulator


def sent_to(member: SimulatedMember) -> set[str]:
    return {received.authorization for received in member.requests}


async def observed(member: SimulatedMember, access: AccessRules) -> Observation:
    return await observe_once(member.cluster(), access, settings=SETTINGS)


async def test_the_file_that_the_simulator_writes_is_valid_and_each_member_gets_its_token(
    members: Simulator, tmp_path: Path
) -> None:
    access = open_access(tmp_path / "access.yaml")
    for member in members.members:
        observation = await observed(member, access)
        assert observation.failure is None
        assert observation.nodes.value is not None
        assert observation.credential is not None
        assert observation.credential.source == "rule 1 (file)"
    assert [sent_to(each) for each in members.members] == [{f"Bearer {each.token}"} for each in members.members]
    await access.close()


async def test_another_cluster_of_the_same_name_does_not_get_the_former_credential(
    members: Simulator, tmp_path: Path
) -> None:
    """Nothing is sent to the new address before its own credential is there."""
    first, second = members[0], members[1]
    access = open_access(tmp_path / "access.yaml")
    observer = Observer(access, settings=SETTINGS, report=lambda *_: None)
    running = asyncio.create_task(observer.run())
    observer.put(first.cluster())
    assert (await observer.observe_now(first.name, deadline=PATIENCE)).failure is None
    # Another cluster of this name, with a key of its own that nobody has put into the folder.
    other = second.cluster(authInfo={"providers": [{"type": "simulated", "config": {"key": "unknown"}}]})
    other["metadata"] = {**other["metadata"], "name": first.name, "uid": "another"}
    observer.put(other)
    failure = (await observer.observe_now(first.name, deadline=PATIENCE)).failure
    assert failure is not None
    assert failure.reason is Reason.CREDENTIAL_MISSING
    assert not sent_to(second)
    assert sent_to(first) == {f"Bearer {first.token}"}
    running.cancel()
    await asyncio.wait([running])
    await observer.close()
    await access.close()


async def test_a_rotated_token_is_used_in_the_next_round(members: Simulator, tmp_path: Path) -> None:
    member, access = members[0], open_access(tmp_path / "access.yaml")
    file = tmp_path / "tokens" / f"{member.name}.token"
    assert (await observed(member, access)).failure is None
    member.token = "rotated"
    refused = (await observed(member, access)).failure
    assert refused is not None
    assert refused.reason is Reason.UNAUTHORIZED
    file.write_text("rotated")
    assert (await observed(member, access)).failure is None
    await access.close()


async def test_a_client_certificate_reaches_its_member_alone(members: Simulator, tmp_path: Path) -> None:
    first, second = members[0], members[1]
    (tmp_path / "tokens" / f"{first.name}.token").unlink()
    folder = tmp_path / "tokens"
    certificate, key = first.identity.client_pair()
    (folder / "first.crt").write_bytes(certificate)
    (folder / "first.key").write_bytes(key)
    user = {"client-certificate": "first.crt", "client-key": "first.key"}
    (folder / f"{first.name}.kubeconfig").write_text(kubeconfig(user, server=second.url))
    access = open_access(tmp_path / "access.yaml")
    for member in (first, second):
        assert (await observed(member, access)).failure is None
    assert set(first.certificates) == {"observer"}
    assert set(second.certificates) == {""}
    assert sent_to(first) == {""}
    await access.close()


async def test_a_member_cannot_have_its_credential_told(
    members: Simulator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(5)
    member, access = members[0], open_access(tmp_path / "access.yaml")
    member.fault = Fault.ECHO
    observation = await observed(member, access)
    assert member.token not in f"{observation!r}{caplog.text}"
    await access.close()


async def test_a_rule_for_nothing_is_anonymous(members: Simulator, tmp_path: Path) -> None:
    access = open_access(write_rules(tmp_path / "access.yaml", rule({"none": {}})))
    failure = (await observed(members[0], access)).failure
    assert sent_to(members[0]) == {""}
    assert failure is None or failure.reason is Reason.UNAUTHORIZED
    await access.close()
