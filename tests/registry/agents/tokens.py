"""Bootstrap tokens, and the users of agents, as tests use them."""

from __future__ import annotations

import hashlib
import itertools
import time
from typing import Any

from clusterregistry.api.clusterregistry.v1beta1.bootstrap_token import expiration_time
from tests.api.certificates.signing_requests import pkcs10, signing_request, subject
from tests.apiserver.api.clients import Client

BETA = "/apis/clusterregistry.k8s.io/v1beta1"
CLUSTERS = f"{BETA}/clusters"
TOKENS = f"{BETA}/bootstraptokens"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
EVENTS = "/api/v1/namespaces/default/events"
AGENTS = "system:clusterregistry:agents"
SECRET = "0123456789abcdef0123456789abcdef"

_numbers = itertools.count(100_000)


def token(name: str, cluster: str, *, seconds: float = 3600.0, secret: str = SECRET, **spec: Any) -> dict[str, Any]:
    """A token as a client sends it."""
    fields = {
        "secretHash": f"sha256:{hashlib.sha256(secret.encode()).hexdigest()}",
        "expirationTime": expiration_time(time.time() + seconds),
        "clusterName": cluster,
        **spec,
    }
    return {
        "apiVersion": "clusterregistry.k8s.io/v1beta1",
        "kind": "BootstrapToken",
        "metadata": {"name": name},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def new_token(client: Client, cluster: str, **spec: Any) -> str:
    """Makes a token for a cluster, and returns its ID."""
    name = f"t{next(_numbers)}"
    client.post(TOKENS, token(name, cluster, **spec)).expect(201)
    return name


def with_token(name: str, secret: str = SECRET) -> dict[str, str]:
    """The header of a joining member."""
    return {"Authorization": f"Bearer {name}.{secret}"}


def as_agent(cluster: str) -> dict[str, str]:
    """The headers by which the administrator acts as an agent."""
    return {"Impersonate-User": f"system:clusterregistry:agent:{cluster}", "Impersonate-Group": AGENTS}


def cluster(name: str, **spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "clusterregistry.k8s.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": name},
    }
    return {**made, "spec": spec} if spec else made


def agent_request(
    cluster_name: str, *, user: str = "", groups: tuple[str, ...] = (AGENTS,), **spec: Any
) -> dict[str, Any]:
    """A request for the certificate of an agent."""
    data = pkcs10("secp256r1", name=subject(user or f"system:clusterregistry:agent:{cluster_name}", *groups))
    name = f"agent:{cluster_name}:{next(_numbers)}"
    return signing_request(name, data, **{"expirationSeconds": 86400, **spec})


def event(cluster_name: str, *, name: str = "", regarding: str = "", **fields: Any) -> dict[str, Any]:
    """An event about a cluster."""
    reference = {"apiVersion": "clusterregistry.k8s.io/v1beta1", "kind": "Cluster", "name": regarding or cluster_name}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name or f"{cluster_name}.{next(_numbers)}", "namespace": "default"},
        "involvedObject": {**reference, **fields},
        "reason": "Test",
        "message": "a test",
        "type": "Normal",
    }
