"""Puts the parts of this package together, for a server that stands alone."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.apiserver.controllers.run import Controller
from clusterregistry.apiserver.product import Opened, OwnAuth
from clusterregistry.registry.agents import admission
from clusterregistry.registry.agents.approver import AgentApprover
from clusterregistry.registry.agents.authorizer import AgentAuthorizer
from clusterregistry.registry.agents.identity import Identities
from clusterregistry.registry.bootstraptoken import QUALIFIED_NAME as TOKENS
from clusterregistry.registry.bootstraptoken.cleaner import TokenCleaner
from clusterregistry.registry.bootstraptoken.tokens import BootstrapTokens

_CLUSTERS = f"clusters.{GROUP}"
_REQUESTS = "certificatesigningrequests.certificates.k8s.io"
_EVENTS = "events"


def controllers(opened: Opened) -> Sequence[Controller]:
    """The approval of agents' certificates, and the removal of tokens that have ended."""
    tokens, requests = opened.stores[TOKENS], opened.stores[_REQUESTS]
    identities = Identities(BootstrapTokens(tokens))
    approvals = opened.writer_of(requests, "approval")
    return AgentApprover(approvals, clusters=opened.stores[_CLUSTERS], identities=identities), TokenCleaner(tokens)


def own_auth(opened: Opened) -> OwnAuth:
    """The users that tokens make, and what these and agents may do."""
    stores = opened.stores
    tokens = BootstrapTokens(stores[TOKENS])
    identities = Identities(tokens)
    requests = admission.CertificateRequestAdmission(identities, requests=stores[_REQUESTS], clusters=stores[_CLUSTERS])
    return OwnAuth(
        # Where tokens are not served, so that they cannot be deleted either, they do not count.
        tokens=[tokens] if stores[TOKENS].resource.versions else [],
        authorizers=[AgentAuthorizer(identities)],
        admissions={
            _CLUSTERS: {"": admission.ClusterAdmission(identities), "status": admission.StatusAdmission(identities)},
            _EVENTS: {"": admission.EventAdmission(identities)},
            _REQUESTS: {"": requests},
        },
    )
