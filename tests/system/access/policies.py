"""Every kind of rule, and every kind of subject of a binding."""

from __future__ import annotations

from tests.system.access.oracle import AUTHENTICATED, CLUSTERS_GROUP, RBAC_GROUP, UNAUTHENTICATED, Rule


def _on(group: str, resources: str, verbs: str, *names: str) -> Rule:
    """Resources and verbs are words."""
    rule = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return {**rule, "resourceNames": list(names)} if names else rule


def _clusters(verbs: str, *names: str) -> Rule:
    return _on(CLUSTERS_GROUP, "clusters", verbs, *names)


def _members(verbs: str, *sets: str) -> Rule:
    return _on(CLUSTERS_GROUP, "clustersets/clusters", verbs, *sets)


def _paths(verbs: str, *urls: str) -> Rule:
    return {"nonResourceURLs": list(urls), "verbs": verbs.split()}


RULES: dict[str, list[Rule]] = {
    "none": [],
    "all": [_on("*", "*", "*"), _paths("*", "*")],
    "all resources": [_on("*", "*", "*")],
    "all paths": [_paths("*", "*")],
    "all of a group": [_on(RBAC_GROUP, "*", "*")],
    "all verbs of a resource": [_clusters("*")],
    "another group": [_on("apps", "clusters clusterroles", "*")],
    "the core group": [_on("", "clusters pods users groups", "*")],
    "reading": [_clusters("get list watch")],
    "get only": [_clusters("get")],
    "list only": [_clusters("list")],
    "watch only": [_clusters("watch")],
    "writing": [_clusters("create update patch delete deletecollection")],
    "update without create": [_clusters("update patch")],
    "update and create": [_clusters("update create")],
    "apply and create": [_on("*", "clusters clusterroles", "patch create")],
    "deletecollection": [_clusters("deletecollection")],
    "all by names": [_clusters("*", "a")],
    "get by names": [_clusters("get", "a", "zz")],
    "get by names that are not there": [_clusters("get", "zz")],
    "list and watch by names": [_clusters("list watch", "b")],
    "any resource by name": [_on("*", "*", "get", "a")],
    "writing by names": [_clusters("create update patch delete deletecollection", "a", "zz")],
    "a name here and all there": [_clusters("get list", "a"), _on(RBAC_GROUP, "clusterroles", "get list watch")],
    "two roles in one": [_clusters("get", "a"), _clusters("get", "b"), _clusters("list", "a")],
    "many names": [_clusters("get patch", f"other-{number}", "a") for number in range(12)],
    "an empty name": [_clusters("get list deletecollection create", "")],
    "the subresource only": [_on(CLUSTERS_GROUP, "clusters/status", "get update patch")],
    "the subresource of any": [_on("*", "*/status", "*")],
    "the subresource by name": [_on(CLUSTERS_GROUP, "clusters/status", "*", "b")],
    "what looks like a pattern": [_on(CLUSTERS_GROUP, "clusters/* */* clust*", "*"), _on("cluster*", "*", "*")],
    "members": [_members("get list watch create update patch delete deletecollection", "s")],
    "reading members": [_members("get list watch", "s")],
    "members of all sets": [_members("*")],
    "members of a set named as a cluster": [_members("get list delete", "a")],
    "members of sets that are not there": [_members("*", "nowhere")],
    "moving members": [_members("patch", "s"), _members("join", "moved")],
    "moving by name": [_clusters("patch", "a", "b"), _members("join", "s", "moved")],
    "updating all and creating members": [_clusters("update patch"), _members("create", "s")],
    "creating all and updating members": [_clusters("create"), _members("update patch get", "s")],
    "creating members": [_members("create get", "s")],
    "listing members": [_members("list", "s"), _clusters("get", "b")],
    "watching members": [_members("watch", "s", "a")],
    "the status of members": [_on(CLUSTERS_GROUP, "clustersets/clusters-status", "get update patch", "s")],
    "a subresource named as that of sets": [_on("*", "*/clusters", "get list", "s")],
    "sets, and not their members": [_on(CLUSTERS_GROUP, "clustersets clustersets/status", "*")],
    "reviews": [_on("authorization.k8s.io", "subjectaccessreviews", "create"), _on("authentication.k8s.io", "*", "*")],
    "unknown resources": [_on(CLUSTERS_GROUP, "widgets", "*"), _on("other.example.com", "*", "list")],
    "impersonation": [_on("", "users groups", "impersonate"), _clusters("get")],
    "one path": [_paths("get", "/metrics")],
    "paths that begin so": [_paths("get", "/healthz*", "/metrics/*", "/nowhere"), _paths("head post", "/version")],
    "paths with a star inside": [_paths("*", "/a*s", "*/metrics", "/apis/*/v1alpha1")],
    "paths with another verb": [_paths("post put", "*")],
}


def _local(verbs: str, *names: str) -> Rule:
    return _on(RBAC_GROUP, "roles rolebindings", verbs, *names)


LOCAL_RULES: dict[str, list[Rule]] = {
    **{label: RULES[label] for label in ("none", "all", "all resources", "all of a group", "any resource by name")},
    "all paths": RULES["all paths"],
    "reading": [_local("get list watch")],
    "get only": [_local("get")],
    "list only": [_local("list")],
    "watch only": [_local("watch")],
    "writing": [_local("create update patch delete deletecollection")],
    "update without create": [_local("update patch")],
    "all by names": [_local("*", "a")],
    "get by names": [_local("get", "a", "zz")],
    "get by names that are not there": [_local("get", "zz")],
    "list and watch by names": [_local("list watch", "b")],
    "writing by names": [_local("create update patch delete deletecollection", "a", "zz")],
    "a name here and all there": [_on(RBAC_GROUP, "roles", "get list", "a"), _on(RBAC_GROUP, "rolebindings", "list")],
    "a name and all": [_local("get", "b"), _local("list")],
    "many names": [_local("get patch", f"other-{number}", "a") for number in range(12)],
    "an empty name": [_local("get list deletecollection create", "")],
    "the subresource only": [_on(RBAC_GROUP, "roles/status", "get update patch")],
    "root-scoped kinds": [_clusters("*"), _on(RBAC_GROUP, "clusterroles", "*", "a")],
    "reviews": [_on("authorization.k8s.io", "localsubjectaccessreviews", "create")],
}
"""Rules for rights in namespaces, and what they must not give elsewhere."""

SUBJECTS: dict[str, list[tuple[str, str]]] = {
    "a user": [("User", "jane")],
    "a group": [("Group", "devs")],
    "a service account": [("ServiceAccount", "fleet:bot")],
    "all authenticated": [("Group", AUTHENTICATED)],
    "all unauthenticated": [("Group", UNAUTHENTICATED)],
    "the anonymous user": [("User", "system:anonymous")],
    "names of the other kind": [("User", "devs"), ("Group", "jane"), ("ServiceAccount", "other:bot")],
    "several": [("User", "paula"), ("User", "jane"), ("Group", "oidc:devs"), ("ServiceAccount", "fleet:bot")],
}
