"""Every kind of request. Writes are dry runs, so that each can be repeated a thousand times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.apiserver.api.objects import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from tests.system.access.oracle import CLUSTERS_GROUP, RBAC_GROUP, Action, Call

EXISTING = ("a", "b")
"""The objects of each kind, besides those of the server."""

HERE, THERE = "default", "kube-public"
"""The namespaces of the objects that belong to one."""

EMPTY_ROLE = "holds-nothing"
"""The role of the bindings. It grants nothing, so that escalation checks play no part."""

NO_STATUS = 404

_INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
_DRY = "dryRun=All"
_SLOW = ("/metrics", "/openapi/v2", "/openapi/v3")


def every() -> list[Call]:
    return [
        *_resource(CLUSTERS_GROUP, "v1alpha1", "clusters", kind="Cluster", status=200),
        *_resource(RBAC_GROUP, "v1", "clusterroles", kind="ClusterRole", status=NO_STATUS, rules=[]),
        *_resource(
            RBAC_GROUP,
            "v1",
            "clusterrolebindings",
            kind="ClusterRoleBinding",
            status=NO_STATUS,
            roleRef={"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": EMPTY_ROLE},
        ),
        *local(),
        *_reviews(),
        *_paths(),
        *_unknown(),
    ]


def local() -> list[Call]:
    """Requests in namespaces, and of all of them."""
    role_ref = {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": EMPTY_ROLE}
    kinds: list[tuple[str, str, dict[str, Any]]] = [
        ("roles", "Role", {"rules": []}),
        ("rolebindings", "RoleBinding", {"roleRef": role_ref}),
    ]
    return [
        call
        for plural, kind, more in kinds
        for call in (
            *_resource(RBAC_GROUP, "v1", plural, kind=kind, status=NO_STATUS, namespace=HERE, **more),
            *_all_namespaces(RBAC_GROUP, "v1", plural),
            *_elsewhere(RBAC_GROUP, "v1", plural),
        )
    ]


def brief(step: int = 1) -> list[Call]:
    """Every verb on clusters and a sample of the other requests, or each ``step``-th of these: for large products."""
    main = [call for call in every() if call.action.resource == "clusters" and call.action.name != "b"]
    others = [call for call in every() if call.action.resource != "clusters"]
    return [*(call for call in main if call.content_type != JSON_PATCH), *others[::6]][::step]


def _resource(  # noqa: PLR0913 - all but three by keyword
    group: str, version: str, plural: str, *, kind: str, status: int, namespace: str = "", **more: Any
) -> Iterator[Call]:
    base, place = f"/apis/{group}/{version}", f"namespaces/{namespace}/" if namespace else ""
    all_of, old = f"{base}/{place}{plural}", f"{base}/watch/{place}{plural}"
    native = group == RBAC_GROUP

    def action(verb: str, name: str = "", subresource: str = "") -> Action:
        return Action(
            verb=verb,
            group=group,
            resource=plural,
            name=name,
            subresource=subresource,
            namespace=namespace,
            namespaced=bool(namespace),
        )

    def body(name: str) -> dict[str, Any]:
        return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": name}, **more}

    for name in EXISTING:
        one = f"{all_of}/{name}"
        selected = f"fieldSelector=metadata.name%3D{name}"
        yield Call(method="GET", target=one, action=action("get", name))
        yield Call(method="GET", target=f"{all_of}?{selected}", action=action("list", name))
        yield Call(method="GET", target=f"{all_of}?watch=1&{_INITIAL}&{selected}", action=action("watch", name))
        yield Call(method="PUT", target=f"{one}?{_DRY}", action=action("update", name), body=body(name))
        yield Call(method="DELETE", target=f"{one}?{_DRY}", action=action("delete", name))
        labels = {"metadata": {"labels": {"x": "y"}}}
        for media, patch in ((MERGE_PATCH, labels), (JSON_PATCH, []), (APPLY_PATCH, body(name))):
            manager = "&fieldManager=matrix&force=true" if media == APPLY_PATCH else ""
            target = f"{one}?{_DRY}{manager}"
            yield Call(
                method="PATCH",
                target=target,
                action=action("patch", name),
                body=patch,
                content_type=media,
                enters=("moved",) if plural == "clusters" and patch is labels else (),
            )
    yield Call(method="HEAD", target=f"{all_of}/a", action=action("get", "a"), allowed=405 if native else 200)
    yield Call(method="GET", target=f"{all_of}/zz", action=action("get", "zz"), allowed=404)
    yield Call(method="GET", target=all_of, action=action("list"))
    yield Call(method="GET", target=f"{all_of}?limit=500", action=action("list"))
    yield Call(method="GET", target=f"{all_of}?watch=true&{_INITIAL}", action=action("watch"))
    yield Call(method="GET", target=f"{old}?{_INITIAL}", action=action("watch"))
    yield Call(method="GET", target=f"{old}/a?{_INITIAL}", action=action("watch", "a"))
    yield Call(method="POST", target=f"{all_of}?{_DRY}", action=action("create"), body=body("new"), allowed=201)
    yield Call(method="DELETE", target=f"{all_of}?{_DRY}", action=action("deletecollection"))
    yield Call(
        method="PUT",
        target=f"{all_of}/zz?{_DRY}",
        action=action("update", "zz"),
        body=body("zz"),
        allowed=201,
        also=("create",),
    )
    yield Call(
        method="PATCH",
        target=f"{all_of}/zz?{_DRY}&fieldManager=matrix",
        action=action("patch", "zz"),
        body=body("zz"),
        content_type=APPLY_PATCH,
        allowed=201,
        also=("create",),
    )
    yield Call(
        method="PATCH",
        target=f"{all_of}/zz?{_DRY}",
        action=action("patch", "zz"),
        body={},
        content_type=MERGE_PATCH,
        allowed=404,
    )
    of_a, sub = f"{all_of}/a/status", "status"
    yield Call(method="GET", target=of_a, action=action("get", "a", sub), allowed=status)
    yield Call(method="PUT", target=f"{of_a}?{_DRY}", action=action("update", "a", sub), body=body("a"), allowed=status)
    yield Call(
        method="PATCH",
        target=f"{of_a}?{_DRY}",
        action=action("patch", "a", sub),
        body={},
        content_type=MERGE_PATCH,
        allowed=status,
    )
    yield Call(method="GET", target=f"{all_of}/a/scale", action=action("get", "a", "scale"), allowed=404)


def _all_namespaces(group: str, version: str, plural: str) -> Iterator[Call]:
    base = f"/apis/{group}/{version}"

    def action(verb: str, name: str = "") -> Action:
        return Action(verb=verb, group=group, resource=plural, name=name, namespaced=True)

    yield Call(method="GET", target=f"{base}/{plural}", action=action("list"))
    yield Call(method="GET", target=f"{base}/{plural}?limit=500", action=action("list"))
    yield Call(method="GET", target=f"{base}/{plural}?watch=true&{_INITIAL}", action=action("watch"))
    yield Call(method="GET", target=f"{base}/watch/{plural}?{_INITIAL}", action=action("watch"))
    selected = "fieldSelector=metadata.name%3Da"
    yield Call(method="GET", target=f"{base}/{plural}?{selected}", action=action("list", "a"))
    yield Call(method="GET", target=f"{base}/{plural}?watch=1&{_INITIAL}&{selected}", action=action("watch", "a"))
    yield Call(method="POST", target=f"{base}/{plural}", action=action("create"), body={}, allowed=405)
    yield Call(method="DELETE", target=f"{base}/{plural}", action=action("deletecollection"), allowed=405)


def _elsewhere(group: str, version: str, plural: str) -> Iterator[Call]:
    """Requests in another namespace than most."""
    all_of = f"/apis/{group}/{version}/namespaces/{THERE}/{plural}"

    def action(verb: str, name: str = "") -> Action:
        return Action(verb=verb, group=group, resource=plural, name=name, namespace=THERE, namespaced=True)

    yield Call(method="GET", target=all_of, action=action("list"))
    yield Call(method="GET", target=f"{all_of}?watch=true&{_INITIAL}", action=action("watch"))
    yield Call(method="GET", target=f"{all_of}/a", action=action("get", "a"))
    yield Call(method="DELETE", target=f"{all_of}/a?{_DRY}", action=action("delete", "a"))


_REVIEWS: dict[str, dict[str, Any]] = {
    "authorization.k8s.io": {
        "SelfSubjectAccessReview": {"resourceAttributes": {"verb": "get", "resource": "clusters"}},
        "SelfSubjectRulesReview": {"namespace": "default"},
        "SubjectAccessReview": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "clusters"}},
    },
    "authentication.k8s.io": {"SelfSubjectReview": None, "TokenReview": {"token": "unknown"}},
}


def _reviews() -> Iterator[Call]:
    for group, kinds in _REVIEWS.items():
        for kind, spec in kinds.items():
            plural = f"{kind.lower()}s"
            path = f"/apis/{group}/v1/{plural}"
            body = {"apiVersion": f"{group}/v1", "kind": kind, **({"spec": spec} if spec else {})}
            create = Action(verb="create", group=group, resource=plural)
            yield Call(method="POST", target=path, action=create, body=body, allowed=201)
            yield Call(method="GET", target=path, action=create.but("list"), allowed=405)
            yield Call(method="DELETE", target=path, action=create.but("deletecollection"), allowed=405)
    review = {"user": "x", "resourceAttributes": {"verb": "get", "resource": "leases", "namespace": HERE}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "spec": review}
    plural = "localsubjectaccessreviews"
    asked = Action(verb="create", group="authorization.k8s.io", resource=plural, namespace=HERE)
    path = f"/apis/authorization.k8s.io/v1/namespaces/{HERE}/{plural}"
    yield Call(method="POST", target=path, action=asked, body=body, allowed=201)
    yield Call(method="GET", target=path, action=asked.but("list"), allowed=405)


def _paths() -> Iterator[Call]:
    found = ["/", "/metrics", "/healthz", "/healthz/ping", "/livez", "/readyz", "/readyz/ping", "/version", "/version/"]
    found += ["/api", "/apis", "/apis/", f"/apis/{CLUSTERS_GROUP}", f"/apis/{CLUSTERS_GROUP}/v1alpha1"]
    found += ["/openapi/v2", "/openapi/v3", f"/openapi/v3/apis/{RBAC_GROUP}/v1"]
    for path in found:
        yield Call(method="GET", target=path, action=Action(verb="get", path=path), is_slow=path in _SLOW)
    yield Call(method="HEAD", target="/version", action=Action(verb="head", path="/version"))
    for path in ("/version", "/metrics", "/healthz", "/apis"):
        yield Call(
            method="POST", target=path, action=Action(verb="post", path=path), allowed=405, is_slow=path in _SLOW
        )


def _unknown() -> Iterator[Call]:
    for path in (
        "/nowhere",
        "/metricsx",
        "/healthzz",
        "/apis/other.example.com",
        "/apis/other.example.com/v1",
        "/apix",
    ):
        yield Call(method="GET", target=path, action=Action(verb="get", path=path), allowed=404)
    widgets = Action(verb="list", group=CLUSTERS_GROUP, resource="widgets")
    base = f"/apis/{CLUSTERS_GROUP}/v1alpha1"
    yield Call(method="GET", target=f"{base}/widgets", action=widgets, allowed=404)
    yield Call(method="POST", target=f"{base}/widgets", action=widgets.but("create"), body={}, allowed=404)
    named = Action(verb="get", group=CLUSTERS_GROUP, resource="widgets", name="a")
    yield Call(method="GET", target=f"{base}/widgets/a", action=named, allowed=404)
    yield Call(method="GET", target="/api/v1/pods", action=Action(verb="list", resource="pods"), allowed=404)
    other = Action(verb="list", group="other.example.com", resource="clusters")
    yield Call(method="GET", target="/apis/other.example.com/v1/clusters", action=other, allowed=404)
    within = Action(verb="list", group=CLUSTERS_GROUP, resource="clusters", namespace="x")
    yield Call(method="GET", target=f"{base}/namespaces/x/clusters", action=within, allowed=404)
