"""The ports by which an observer gets credentials: one for one cluster, by the rules of the operator.

``controllers/access`` implements them from a file of rules; an agent has one credential for its one cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from clusterregistry.client.credentials import Credential
from clusterregistry.controllers.observer.observation import CredentialInfo, Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberCredential:
    """A credential for one cluster, and what may be told about it."""

    credential: Credential
    info: CredentialInfo


class MemberAccess(Protocol):
    """Gives credentials for clusters. Clusters are wire objects in v1beta1."""

    async def credential(self, cluster: Mapping[str, Any]) -> MemberCredential:
        """The credential for a cluster as it is now. Raises AccessError."""
        ...

    def reject(self, cluster: Mapping[str, Any], credential: MemberCredential) -> None:
        """Notes that the cluster refused the credential (401), so that the next one is resolved again."""
        ...


class AccessError(Exception):
    """There is no credential for a cluster. ``failure`` has the reason CREDENTIAL_MISSING or CREDENTIAL_EXPIRED."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure
