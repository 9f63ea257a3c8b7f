"""Joins a registry as one cluster, with a bootstrap token: the Cluster, the agent's certificate, and its kubeconfig.

Nothing is sent before the server is verified. Every step may be repeated: a cluster that is there stays as it is, and
each join makes a new key and a new certificate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from clusterregistry.agent import identity
from clusterregistry.agent.certificate import request_certificate
from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.api.clusterregistry.agents import AGENT, CLUSTER_EXTRA, OBSERVER, has_agent
from clusterregistry.api.clusterregistry.v1beta1.bootstrap_token import PLURAL
from clusterregistry.apimachinery.meta.names import name_errors
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client import errors
from clusterregistry.client.rest import Call, Client, GroupVersionResource, Object, WriteOptions, metadata
from clusterregistry.client.rest_config import Pem, RestConfig

CLUSTERS = GroupVersionResource(GROUP, "v1beta1", "clusters")
_NAMESPACES = GroupVersionResource("", "v1", "namespaces")
_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
_MANAGER = "clusterregistry-join"
_NEW_TOKEN = "make a new token: clusterregistry join-token create CLUSTER"  # noqa: S105 - a remedy
_REPLICA_PAUSES = (1.0, 2.0)
"""Seconds for which another replica may not know a token yet that was made a moment ago."""

_MOST_BYTES = 4 << 20
"""Of a response: a cluster with all its fields takes a part of it."""

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """How to join. ``name`` may be empty: the token is for one cluster."""

    server: str
    authorities: bytes
    token: str = field(repr=False)
    name: str = ""
    cluster_id: str = ""
    """The UID of the member's kube-system namespace; empty: not known."""
    seconds: int
    """The validity of the certificate."""
    patience: float
    """Seconds to wait for the certificate."""
    user_agent: str = "clusterregistry-join"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What a join has made."""

    name: str
    uid: str
    created: bool
    """Whether the Cluster is new."""
    kubeconfig: bytes = field(repr=False)
    notes: tuple[str, ...] = ()
    """What a person should know or do, besides."""


async def join(request: JoinRequest, *, say: Say) -> Joined:
    """Joins, and tells ``say`` of each step. Raises OperatorError."""
    config = RestConfig(
        server=request.server,
        user_agent=request.user_agent,
        certificate_authority=Pem(data=request.authorities),
        token=request.token,
        max_response_bytes=_MOST_BYTES,
    )
    async with Client(config) as client:
        try:
            return await _joined(client, request, say=say)
        except errors.ClientError as error:
            raise _explained(error, request.server) from error


async def _joined(client: Client, request: JoinRequest, *, say: Say) -> Joined:
    name = await _cluster_name(client, request.name)
    say(f"the token is for cluster {name}")
    cluster, created = await _cluster(client, name, request.cluster_id)
    say(f"cluster {name}: {'created' if created else 'there already, and left as it is'}")
    made = await request_certificate(
        client,
        name,
        seconds=request.seconds,
        patience=request.patience,
        say=lambda csr: say(f"certificate request {csr}: made, waiting for the certificate"),
    )
    say("certificate: issued")
    return Joined(
        name=name,
        uid=str(metadata(cluster).get("uid", "")),
        created=created,
        kubeconfig=identity.render(server=request.server, authorities=request.authorities, identity=made),
        notes=tuple(_notes(cluster, name, request.cluster_id)),
    )


async def _cluster_name(client: Client, wanted: str) -> str:
    """The cluster of the token. Raises OperatorError if another one is wanted."""
    review = await _patiently(
        lambda: client.call(Call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=_REVIEW))
    )
    extra = ((review.get("status") or {}).get("userInfo") or {}).get("extra") or {}
    names = extra.get(CLUSTER_EXTRA)
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        raise OperatorError("the token is no bootstrap token of a cluster registry", remedy=_NEW_TOKEN)
    if name_errors(names[0]):  # it names a directory, too
        raise OperatorError("the registry names a cluster that cannot be one", remedy="is --server a cluster registry?")
    if wanted not in ("", names[0]):
        raise OperatorError(
            f"the token is for cluster {names[0]}, not for {wanted}",
            remedy=f"leave the name out, or make a token for it: clusterregistry join-token create {wanted}",
        )
    return names[0]


async def _patiently(call: Callable[[], Awaitable[T]]) -> T:
    for pause in _REPLICA_PAUSES:
        try:
            return await call()
        except errors.UnauthorizedError:
            await asyncio.sleep(pause)
    return await call()


async def _cluster(client: Client, name: str, cluster_id: str) -> tuple[Object, bool]:
    """The Cluster, and whether it was made now."""
    clusters = client.resource(CLUSTERS)
    try:
        found = await clusters.get(name)
    except errors.NotFoundError:
        manifest: dict[str, Any] = {
            "apiVersion": f"{GROUP}/v1beta1",
            "kind": "Cluster",
            "metadata": {"name": name},
            "spec": {"clusterID": cluster_id} if cluster_id else {},
        }
        try:
            return await clusters.create(manifest, WriteOptions(field_manager=_MANAGER)), True
        except errors.AlreadyExistsError:
            found = await clusters.get(name)
    known = (found.get("spec") or {}).get("clusterID")
    if known and cluster_id and known != cluster_id:
        raise OperatorError(
            f"the cluster {name} of the registry is another one: its clusterID is {known}, and that of this member "
            f"{cluster_id}",
            remedy="join under another name. If this member takes the place of the other one, delete the Cluster first",
        )
    return found, False


def _notes(cluster: Object, name: str, cluster_id: str) -> list[str]:
    notes = []
    if not has_agent(cluster):
        command = f"kubectl annotate cluster {name} {OBSERVER}={AGENT}"
        notes.append(f"a controller may observe {name}, too: {command} leaves it to the agent")
    if not (cluster.get("spec") or {}).get("clusterID"):
        wanted = cluster_id or "UID-OF-KUBE-SYSTEM"
        patch = f'{{"spec":{{"clusterID":"{wanted}"}}}}'
        notes.append(f"{name} has no clusterID: kubectl patch cluster {name} --type merge -p '{patch}' records it")
    return notes


def _explained(error: errors.ClientError, server: str) -> OperatorError:
    if isinstance(error, errors.UnauthorizedError):
        return OperatorError("the registry does not know the token, or it has expired", remedy=_NEW_TOKEN)
    if isinstance(error, errors.UntrustedCertificateError | errors.CertificateNameError):
        return OperatorError(
            f"{server} is not verified: {error}",
            remedy="compare --server and --ca-file or --ca-hash with those of the registry's administrator",
        )
    if isinstance(error, errors.TransportError):
        return OperatorError(str(error), remedy="check --server, and that a connection to it is let through")
    if isinstance(error, errors.InvalidError):
        return OperatorError(
            str(error),
            remedy="is this member registered under another name? kubectl get clusters "
            "--field-selector spec.clusterID=UID shows it",
        )
    return OperatorError(str(error), remedy=_NEW_TOKEN)


async def read_cluster_id(member: RestConfig) -> str:
    """The UID of the member's kube-system namespace. Raises OperatorError."""
    async with Client(member) as client:
        try:
            found = await client.resource(_NAMESPACES).get("kube-system")
            is_registry = await _has_tokens(client)
        except errors.ClientError as error:
            raise OperatorError(
                f"the member cannot be asked for its kube-system namespace: {error}",
                remedy="give --member-kubeconfig for a user who may read it",
            ) from None
    if is_registry:
        raise OperatorError(
            f"{member.server} is a registry, not a member: its kubeconfig was taken for that of the member",
            remedy="name a kubeconfig of the member with --member-kubeconfig, or join without its identity: "
            "--without-member",
        )
    uid = (found.get("metadata") or {}).get("uid")
    return uid if isinstance(uid, str) else ""


async def _has_tokens(member: Client) -> bool:
    """Whether this is a registry itself, which $KUBECONFIG often names. A member has no bootstrap tokens."""
    try:
        listed = await member.call(Call("GET", f"/apis/{CLUSTERS.group}/{CLUSTERS.version}"))
    except errors.ClientError:
        return False
    return any(each.get("name") == PLURAL for each in listed.get("resources") or () if isinstance(each, dict))
