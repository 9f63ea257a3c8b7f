"""The API of a simulated member: which path gives which document, and who may read it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from tools.simulator import contents
from tools.simulator.contents import Contents, Document

JSON, TEXT = "application/json", "text/plain; charset=utf-8"
_PUBLIC = frozenset({"/readyz", "/livez", "/healthz", "/version"})
"""What kube-apiserver lets everybody read."""
_FAILING = b"[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac/bootstrap-roles failed: not finished\n"


@dataclass(frozen=True, slots=True)
class Received:
    """A request that a member received."""

    method: str
    target: str
    authorization: str
    certificate: str
    """The common name of the client certificate; empty without one."""
    accept: str = ""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> Mapping[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.target).query).items()}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def failure(code: int, reason: str, message: str, *, retry_after: int = 0) -> Answer:
    headers = {"retry-after": str(retry_after)} if retry_after else {}
    return Answer(code, contents.status(code, reason, message), headers=headers)


UNAUTHORIZED = failure(401, "Unauthorized", "Unauthorized")


def forbidden(received: Received) -> Answer:
    return failure(403, "Forbidden", f'User "simulated" cannot get path "{received.path}"')


def not_ready() -> Answer:
    return Answer(500, _FAILING + b"readyz check failed\n", TEXT)


def authorize(received: Received, *, token: str) -> Answer | None:
    """None: the request is allowed."""
    if received.authorization:
        return None if received.authorization == f"Bearer {token}" else UNAUTHORIZED
    return None if received.certificate or received.path in _PUBLIC else forbidden(received)


def respond(received: Received, known: Contents) -> Answer:
    """The response of a well member."""
    if received.method != "GET":
        return failure(405, "MethodNotAllowed", "a simulated member can only be read")
    if received.path in ("/readyz", "/livez", "/healthz"):
        verbose = "verbose" in urlsplit(received.target).query
        return Answer(body=b"[+]ping ok\nreadyz check passed\n" if verbose else b"ok", content_type=TEXT)
    found = _PATHS.get(received.path)
    if found is not None:
        return Answer(body=found(known, received))
    parts = received.path.strip("/").split("/")
    if parts[:3] == ["api", "v1", "namespaces"] and len(parts) == 4:  # noqa: PLR2004 - a name after the collection
        return _namespace(parts[3], known)
    return failure(404, "NotFound", "the server could not find the requested resource")


def _namespace(name: str, known: Contents) -> Answer:
    if name not in ("kube-system", "default"):
        return failure(404, "NotFound", f'namespaces "{name}" not found')
    uid = known.kube_system_uid if name == "kube-system" else f"default-{known.kube_system_uid}"
    return Answer(body=contents.dump(contents.namespace(name, uid)))


def _nodes(known: Contents, received: Received) -> bytes:
    return _node_page(known.nodes, known.not_ready, known.version, *_paging(received))


@functools.lru_cache(maxsize=256)
def _node_page(count: int, not_ready_count: int, version: str, offset: int, limit: int) -> bytes:
    """Kept, since thousands of members have the same nodes."""
    indexes = range(offset, min(offset + limit, count) if limit else count)
    items = [contents.node(index, is_ready=index >= not_ready_count, version=version) for index in indexes]
    rest = count - offset - len(items)
    more = {"continue": str(offset + len(items)), "remainingItemCount": rest} if rest else {}
    return contents.dump(contents.object_list("v1", "Node", items, **more))


def _pods(known: Contents, received: Received) -> bytes:
    return contents.page("v1", "Pod", _numbered(contents.pod, known.pods), **_named_paging(received))


def _deployments(known: Contents, received: Received) -> bytes:
    items = _numbered(contents.deployment, known.deployments)
    return contents.page("apps/v1", "Deployment", items, **_named_paging(received))


def _events(known: Contents, received: Received) -> bytes:
    return contents.page("v1", "Event", _numbered(contents.event, known.events), **_named_paging(received))


def _secrets(known: Contents, received: Received) -> bytes:
    """Only those of Helm releases. With ``as=PartialObjectMetadataList`` without their data."""
    items = [contents.release_secret(release) for release in known.releases]
    if "as=PartialObjectMetadataList" in received.accept:
        bare = [{"metadata": item["metadata"]} for item in items]
        return contents.page("meta.k8s.io/v1", "PartialObjectMetadata", bare, **_named_paging(received))
    return contents.page("v1", "Secret", items, **_named_paging(received))


def _namespaces(known: Contents, _: Received) -> bytes:
    items = [contents.namespace("kube-system", known.kube_system_uid), contents.namespace("default", "0")]
    return contents.dump(contents.object_list("v1", "Namespace", items))


def _api(_: Contents, __: Received) -> bytes:
    return contents.dump({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})


def _apis(_: Contents, __: Received) -> bytes:
    versions = [{"groupVersion": "apps/v1", "version": "v1"}]
    apps = {"name": "apps", "versions": versions, "preferredVersion": versions[0]}
    return contents.dump({"kind": "APIGroupList", "apiVersion": "v1", "groups": [apps]})


def _version(known: Contents, _: Received) -> bytes:
    return contents.version_document(known.version)


_PATHS: dict[str, Callable[[Contents, Received], bytes]] = {
    "/version": _version,
    "/api": _api,
    "/apis": _apis,
    "/api/v1/nodes": _nodes,
    "/api/v1/pods": _pods,
    "/api/v1/events": _events,
    "/api/v1/secrets": _secrets,
    "/api/v1/namespaces": _namespaces,
    "/apis/apps/v1/deployments": _deployments,
}


def _numbered(make: Callable[[int], Document], count: int) -> list[Document]:
    return [make(index) for index in range(count)]


def _paging(received: Received) -> tuple[int, int]:
    query = received.query
    return int(query.get("continue", 0)), int(query.get("limit", 0))


def _named_paging(received: Received) -> dict[str, int]:
    offset, limit = _paging(received)
    return {"offset": offset, "limit": limit}
