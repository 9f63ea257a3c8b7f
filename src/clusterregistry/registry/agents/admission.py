"""What agents and joining members may write, as far as the body of a request says it. Other users pass."""

from __future__ import annotations

from typing import Any

import orjson

from clusterregistry.api.certificates import GROUP as CERTIFICATES_GROUP
from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.api.clusterregistry.agents import AGENT, OBSERVER, event_prefix, request_prefix
from clusterregistry.api.clusterregistry.v1alpha1.types import KIND
from clusterregistry.api.clusterregistry.v1beta1 import conversion
from clusterregistry.apimachinery.fieldmanager.managed_fields import APPLY
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.strategy import Object
from clusterregistry.apiserver.storage.object_bytes import decoded_to_read
from clusterregistry.registry.agents.certificate_request import request_problem
from clusterregistry.registry.agents.identity import Identities, Identity
from clusterregistry.registry.bootstraptoken.tokens import Token

MOST_REQUESTS = 50
"""Stored requests of one cluster. They are removed an hour after they were signed."""

LARGEST_CLUSTER = 64 << 10
"""Bytes of the cluster that a member creates."""

LARGEST_STATUS = 64 << 10
"""Bytes of the status that an agent writes, which takes some 4 KiB. All watches of clusters are sent it."""

LARGEST_EVENT = 16 << 10
"""Bytes of an event that an agent writes."""

_SPEC_FIELDS = frozenset({"clusterID", "cloudProvider", "location"})
_ANNOTATIONS = conversion.KEYS | {OBSERVER}
"""Those that a member may send: what a field of v1beta1 is stored as, and the one that it gets."""

_HOLDING = ("finalizers", "ownerReferences")
"""Metadata by which an object outlives what the registry would remove, or goes with another object."""

_NOT_OF_REQUESTS = (*_HOLDING, "labels", "annotations")


class ClusterAdmission:
    """A member that joins makes its own cluster with the labels of its token, and without addresses and credentials."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:  # noqa: ARG002 - the port's
        """Raises 403."""
        identity = self._identities.of(user)
        if identity is None:
            return
        cluster = _name_of(obj)
        if identity.token is None or old is not None or cluster != identity.cluster:
            raise _refused(GROUP, "clusters", cluster, "a bootstrap token is for one cluster, which it may create")
        if problem := _cluster_problem(obj, identity.token):
            raise _refused(GROUP, "clusters", cluster, problem)
        metadata = obj["metadata"]
        annotations = {**metadata.get("annotations", {}), OBSERVER: AGENT}
        obj["metadata"] = {**metadata, "annotations": annotations}
        if identity.token.labels:
            obj["metadata"]["labels"] = dict(identity.token.labels)


def _cluster_problem(cluster: Object, token: Token) -> str:
    metadata, spec = cluster["metadata"], cluster.get("spec")
    labels = metadata.get("labels") or {}
    if any(token.labels.get(key) != value for key, value in labels.items()):
        return "a member does not choose its labels: give them to its bootstrap token (spec.clusterLabels)"
    others = metadata.get("annotations", {}).keys() - _ANNOTATIONS
    if others or metadata.get("finalizers") or metadata.get("ownerReferences"):
        return "a member that joins sets neither annotations nor finalizers nor ownerReferences"
    if any(isinstance(each, dict) and each.get("operation") == APPLY for each in metadata.get("managedFields", ())):
        # What another manager has applied goes with the next apply of that manager: labels of the token, too.
        return "a member that joins does not say what others have applied"
    if _size(cluster) > LARGEST_CLUSTER:
        return f"a member that joins creates a cluster of {LARGEST_CLUSTER} bytes at most"
    fields = spec.keys() - _SPEC_FIELDS if isinstance(spec, dict) else ()
    if fields:
        return f"a member that joins does not set spec.{min(fields)}, but {', '.join(sorted(_SPEC_FIELDS))} alone"
    return ""


class StatusAdmission:
    """An agent writes a status of a bounded size."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:  # noqa: ARG002 - the port's
        """Raises 403."""
        if self._identities.of(user) is not None and _size(obj.get("status")) > LARGEST_STATUS:
            raise _refused(GROUP, "clusters", name, f"an agent writes a status of {LARGEST_STATUS} bytes at most")


class EventAdmission:
    """An agent reports events about its own cluster, of a bounded size."""

    def __init__(self, identities: Identities) -> None:
        self._identities = identities

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:  # noqa: ARG002 - the port's
        """Raises 403."""
        identity = self._identities.of(user)
        if identity is None:
            return
        given = _name_of(obj)
        if not all(_is_about(each, identity.cluster) for each in (obj, old) if each is not None):
            raise _refused("", "events", given, f"an agent reports events about its own cluster, {identity.cluster}")
        if not given.startswith(event_prefix(identity.cluster)):
            raise _refused("", "events", given, f"its name must begin with {event_prefix(identity.cluster)}")
        if _size(obj) > LARGEST_EVENT or any(obj["metadata"].get(each) for each in _HOLDING):
            detail = f"an agent reports events of {LARGEST_EVENT} bytes at most, without {' and '.join(_HOLDING)}"
            raise _refused("", "events", given, detail)


def _is_about(event: Object, cluster: str) -> bool:
    regarding: Any = event.get("involvedObject") or {}
    group = str(regarding.get("apiVersion", "")).partition("/")[0]
    found = (group, regarding.get("kind"), regarding.get("name"), regarding.get("namespace") or "")
    return found == (GROUP, KIND, cluster, "")


class CertificateRequestAdmission:
    """Agents and joining members request the certificate of their own user, as long as their cluster exists."""

    def __init__(self, identities: Identities, *, requests: Store, clusters: Store) -> None:
        self._identities, self._requests, self._clusters = identities, requests, clusters

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:  # noqa: ARG002 - the port's
        """Raises 403."""
        identity = self._identities.of(user)
        if identity is None:
            return
        given = _name_of(obj)
        problem = await self._problem(obj, old, identity)
        if problem:
            raise _refused(CERTIFICATES_GROUP, "certificatesigningrequests", given, problem)

    async def _problem(self, obj: Object, old: Object | None, identity: Identity) -> str:
        if old is not None or not identity.cluster:
            return "requests for certificates of agents do not change"
        if problem := request_problem(obj, identity.cluster):
            return f"a request for the certificate of an agent: {problem}"
        if given := [each for each in _NOT_OF_REQUESTS if obj["metadata"].get(each)]:
            return f"a request for the certificate of an agent has no {given[0]}"
        if not await exists(self._clusters, identity.cluster):
            return f"there is no cluster {identity.cluster} any more: join again with a new bootstrap token"
        prefix = self._requests.prefix + request_prefix(identity.cluster)
        page = await self._requests.storage.list(prefix, limit=MOST_REQUESTS)
        if len(page.items) >= MOST_REQUESTS:
            return f"there are {MOST_REQUESTS} requests of this cluster: delete old ones, or wait an hour"
        return ""


async def exists(clusters: Store, name: str) -> bool:
    """Whether a cluster exists, and is not being deleted. Raises 503."""
    try:
        kv = clusters.get_cached(name) or await clusters.get(name)
    except errors.APIError as error:
        if error.reason == "NotFound":
            return False
        raise
    return "deletionTimestamp" not in decoded_to_read(kv)["metadata"]


def _size(value: Any) -> int:
    """The bytes of a JSON value; 0 for one that validation refuses."""
    try:
        return len(orjson.dumps(value))
    except TypeError:
        return 0


def _name_of(obj: Object) -> str:
    name = obj["metadata"].get("name", "")
    return name if isinstance(name, str) else ""


def _refused(group: str, resource: str, name: str, detail: str) -> errors.APIError:
    return errors.forbidden(group=group, resource=resource, name=name, detail=detail)
