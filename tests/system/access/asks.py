"""Every kind of request. Those that would write do so as a dry run: each can be asked a thousand times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.apiserver.api.objects import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from tests.system.access.oracle import CLUSTERS_GROUP, RBAC_GROUP, Ask, Wish

EXISTING = ("a", "b")
"""The objects that there are of each kind, among others of the server's own."""

EMPTY_ROLE = "holds-nothing"
"""What bindings give: whoever binds it gives nothing away, so that nothing but rights to write is in question."""

NO_STATUS = 404

_INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
_DRY = "dryRun=All"
_DEAR = ("/metrics", "/openapi/v2", "/openapi/v3")


def every() -> list[Ask]:
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
        *_reviews(),
        *_paths(),
        *_unknown(),
    ]


def brief(step: int = 1) -> list[Ask]:
    """Every verb on clusters, and some of all else, or every so manieth of these: for what is crossed with much."""
    main = [ask for ask in every() if ask.wish.resource == "clusters" and ask.wish.name != "b"]
    others = [ask for ask in every() if ask.wish.resource != "clusters"]
    return [*(ask for ask in main if ask.content_type != JSON_PATCH), *others[::6]][::step]


def _resource(group: str, version: str, plural: str, *, kind: str, status: int, **more: Any) -> Iterator[Ask]:
    base = f"/apis/{group}/{version}"
    all_of, old = f"{base}/{plural}", f"{base}/watch/{plural}"

    def wish(verb: str, name: str = "", subresource: str = "") -> Wish:
        return Wish(verb=verb, group=group, resource=plural, name=name, subresource=subresource)

    def body(name: str) -> dict[str, Any]:
        return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": name}, **more}

    for name in EXISTING:
        one = f"{all_of}/{name}"
        selected = f"fieldSelector=metadata.name%3D{name}"
        yield Ask(method="GET", target=one, wish=wish("get", name))
        yield Ask(method="GET", target=f"{all_of}?{selected}", wish=wish("list", name))
        yield Ask(method="GET", target=f"{all_of}?watch=1&{_INITIAL}&{selected}", wish=wish("watch", name))
        yield Ask(method="PUT", target=f"{one}?{_DRY}", wish=wish("update", name), body=body(name))
        yield Ask(method="DELETE", target=f"{one}?{_DRY}", wish=wish("delete", name))
        labels = {"metadata": {"labels": {"x": "y"}}}
        for media, patch in ((MERGE_PATCH, labels), (JSON_PATCH, []), (APPLY_PATCH, body(name))):
            manager = "&fieldManager=matrix&force=true" if media == APPLY_PATCH else ""
            target = f"{one}?{_DRY}{manager}"
            yield Ask(method="PATCH", target=target, wish=wish("patch", name), body=patch, content_type=media)
    yield Ask(method="HEAD", target=f"{all_of}/a", wish=wish("get", "a"))
    yield Ask(method="GET", target=f"{all_of}/zz", wish=wish("get", "zz"), allowed=404)
    yield Ask(method="GET", target=all_of, wish=wish("list"))
    yield Ask(method="GET", target=f"{all_of}?limit=500", wish=wish("list"))
    yield Ask(method="GET", target=f"{all_of}?watch=true&{_INITIAL}", wish=wish("watch"))
    yield Ask(method="GET", target=f"{old}?{_INITIAL}", wish=wish("watch"))
    yield Ask(method="GET", target=f"{old}/a?{_INITIAL}", wish=wish("watch", "a"))
    yield Ask(method="POST", target=f"{all_of}?{_DRY}", wish=wish("create"), body=body("new"), allowed=201)
    yield Ask(method="DELETE", target=f"{all_of}?{_DRY}", wish=wish("deletecollection"))
    yield Ask(
        method="PUT",
        target=f"{all_of}/zz?{_DRY}",
        wish=wish("update", "zz"),
        body=body("zz"),
        allowed=201,
        also=("create",),
    )
    yield Ask(
        method="PATCH",
        target=f"{all_of}/zz?{_DRY}&fieldManager=matrix",
        wish=wish("patch", "zz"),
        body=body("zz"),
        content_type=APPLY_PATCH,
        allowed=201,
        also=("create",),
    )
    yield Ask(
        method="PATCH",
        target=f"{all_of}/zz?{_DRY}",
        wish=wish("patch", "zz"),
        body={},
        content_type=MERGE_PATCH,
        allowed=404,
    )
    of_a, sub = f"{all_of}/a/status", "status"
    yield Ask(method="GET", target=of_a, wish=wish("get", "a", sub), allowed=status)
    yield Ask(method="PUT", target=f"{of_a}?{_DRY}", wish=wish("update", "a", sub), body=body("a"), allowed=status)
    yield Ask(
        method="PATCH",
        target=f"{of_a}?{_DRY}",
        wish=wish("patch", "a", sub),
        body={},
        content_type=MERGE_PATCH,
        allowed=status,
    )
    yield Ask(method="GET", target=f"{all_of}/a/scale", wish=wish("get", "a", "scale"), allowed=404)


_REVIEWS: dict[str, dict[str, Any]] = {
    "authorization.k8s.io": {
        "SelfSubjectAccessReview": {"resourceAttributes": {"verb": "get", "resource": "clusters"}},
        "SelfSubjectRulesReview": {"namespace": "default"},
        "SubjectAccessReview": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "clusters"}},
    },
    "authentication.k8s.io": {"SelfSubjectReview": None, "TokenReview": {"token": "nobody-knows-it"}},
}


def _reviews() -> Iterator[Ask]:
    for group, kinds in _REVIEWS.items():
        for kind, spec in kinds.items():
            plural = f"{kind.lower()}s"
            path = f"/apis/{group}/v1/{plural}"
            body = {"apiVersion": f"{group}/v1", "kind": kind, **({"spec": spec} if spec else {})}
            create = Wish(verb="create", group=group, resource=plural)
            yield Ask(method="POST", target=path, wish=create, body=body, allowed=201)
            yield Ask(method="GET", target=path, wish=create.but("list"), allowed=405)
            yield Ask(method="DELETE", target=path, wish=create.but("deletecollection"), allowed=405)


def _paths() -> Iterator[Ask]:
    found = ["/", "/metrics", "/healthz", "/healthz/ping", "/livez", "/readyz", "/readyz/ping", "/version", "/version/"]
    found += ["/api", "/apis", "/apis/", f"/apis/{CLUSTERS_GROUP}", f"/apis/{CLUSTERS_GROUP}/v1alpha1"]
    found += ["/openapi/v2", "/openapi/v3", f"/openapi/v3/apis/{RBAC_GROUP}/v1"]
    for path in found:
        yield Ask(method="GET", target=path, wish=Wish(verb="get", path=path), dear=path in _DEAR)
    yield Ask(method="HEAD", target="/version", wish=Wish(verb="head", path="/version"))
    for path in ("/version", "/metrics", "/healthz", "/apis"):
        yield Ask(method="POST", target=path, wish=Wish(verb="post", path=path), allowed=405, dear=path in _DEAR)


def _unknown() -> Iterator[Ask]:
    for path in (
        "/nowhere",
        "/metricsx",
        "/healthzz",
        "/apis/other.example.com",
        "/apis/other.example.com/v1",
        "/apix",
    ):
        yield Ask(method="GET", target=path, wish=Wish(verb="get", path=path), allowed=404)
    widgets = Wish(verb="list", group=CLUSTERS_GROUP, resource="widgets")
    base = f"/apis/{CLUSTERS_GROUP}/v1alpha1"
    yield Ask(method="GET", target=f"{base}/widgets", wish=widgets, allowed=404)
    yield Ask(method="POST", target=f"{base}/widgets", wish=widgets.but("create"), body={}, allowed=404)
    named = Wish(verb="get", group=CLUSTERS_GROUP, resource="widgets", name="a")
    yield Ask(method="GET", target=f"{base}/widgets/a", wish=named, allowed=404)
    yield Ask(method="GET", target="/api/v1/pods", wish=Wish(verb="list", resource="pods"), allowed=404)
    other = Wish(verb="list", group="other.example.com", resource="clusters")
    yield Ask(method="GET", target="/apis/other.example.com/v1/clusters", wish=other, allowed=404)
    within = Wish(verb="list", group=CLUSTERS_GROUP, resource="clusters", namespace="x")
    yield Ask(method="GET", target=f"{base}/namespaces/x/clusters", wish=within, allowed=404)
