"""Clusters, credentials and settings for the tests of the observer."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clusterregistry.client.credentials import Credential
from clusterregistry.controllers.observer.credentials import AccessError, MemberCredential
from clusterregistry.controllers.observer.observation import CredentialInfo, Failure, Observation, Reason
from clusterregistry.controllers.observer.probe import Probe, default_probes
from clusterregistry.controllers.observer.round import Round, RoundParts, Subject
from clusterregistry.controllers.observer.settings import ObserverSettings
from tools.simulator import SimulatedMember

PATIENCE = 60.0
"""For what ends by itself: long, since the machine may be busy."""
SOON = 0.5
"""For what never comes."""
PATIENT = ObserverSettings(deadline=PATIENCE, credential_deadline=PATIENCE)
HASTY = ObserverSettings(deadline=SOON, credential_deadline=PATIENCE)
Object = dict[str, Any]


def credential(token: str = "", *, source: str = "rule 1 (file)", certificate: bytes = b"", key: bytes = b"") -> Any:
    authorization = f"Bearer {token}" if token else ""
    return MemberCredential(
        credential=Credential(authorization=authorization, certificate=certificate, key=key),
        info=CredentialInfo(source=source),
    )


class Access:
    """Credentials by the names of clusters: of several, each after a refusal of the one before.

    ``pause`` in seconds is how long a credential takes; without a credential there is a failure.
    """

    def __init__(self, **given: Sequence[str | MemberCredential]) -> None:
        self._given = {name.replace("_", "-"): list(each) for name, each in given.items()}
        self.pauses: defaultdict[str, float] = defaultdict(float)
        self.asked: Counter[str] = Counter()
        self.rejected: list[MemberCredential] = []

    def give(self, name: str, *credentials: str | MemberCredential) -> None:
        self._given[name] = list(credentials)

    async def credential(self, cluster: Mapping[str, Any]) -> MemberCredential:
        name = cluster["metadata"]["name"]
        self.asked[name] += 1
        if self.pauses[name]:
            await asyncio.sleep(self.pauses[name])
        given = self._given.get(name)
        if not given:
            raise AccessError(Failure(reason=Reason.CREDENTIAL_MISSING, message="no rule matches"))
        found = given[0]
        return credential(found) if isinstance(found, str) else found

    def reject(self, cluster: Mapping[str, Any], credential: MemberCredential) -> None:
        self.rejected.append(credential)
        given = self._given[cluster["metadata"]["name"]]
        if len(given) > 1:
            given.pop(0)


def access_to(*members: SimulatedMember) -> Access:
    """The tokens of these members, each for its own."""
    access = Access()
    for member in members:
        access.give(member.name, member.token)
    return access


def cluster(name: str = "alpha", *, address: str = "127.0.0.1:1", uid: str = "u1", **spec: Any) -> Object:
    """A cluster at an address at which nothing has to listen."""
    return {
        "metadata": {"name": name, "uid": uid},
        "spec": {"kubernetesApiEndpoints": {"serverEndpoints": [{"serverAddress": address}]}, **spec},
    }


def changed(of: Object, *, uid: str = "", **spec: Any) -> Object:
    """The same cluster with another UID, or with other fields of the spec."""
    metadata = {**of["metadata"], **({"uid": uid} if uid else {})}
    return {**of, "metadata": metadata, "spec": {**of["spec"], **spec}}


def subject(
    of: Object,
    access: Access,
    *,
    settings: ObserverSettings = PATIENT,
    probes: Sequence[Probe[Any]] | None = None,
    **parts: Any,
) -> Subject:
    chosen = default_probes(settings) if probes is None else probes
    return Subject(of, RoundParts(access=access, settings=settings, probes=chosen, **{"clock": time.time, **parts}))


async def asked(of: Subject, *, everything: bool = False) -> Observation:
    return await Round(of, everything=everything).run()


def failure_of(observation: Observation) -> Failure:
    assert observation.failure is not None
    return observation.failure


def other_pem(folder: Path) -> bytes:
    """An authority that has signed nothing here."""
    from tools.simulator import pki  # noqa: PLC0415 - makes keys

    return pki.identity("127.9.9.9", directory=folder).authority
