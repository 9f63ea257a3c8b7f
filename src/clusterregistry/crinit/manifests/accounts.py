"""Who the registry is in its host cluster, and what it may do there: nothing, unless it is aggregated."""

from __future__ import annotations

from clusterregistry.crinit.manifests.objects import Manifest, cluster_wide, labels, metadata
from clusterregistry.crinit.settings import Mode, Settings

RBAC = "rbac.authorization.k8s.io"
KUBE_SYSTEM = "kube-system"


def accounts(settings: Settings) -> list[Manifest]:
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(settings, settings.name),
        "automountServiceAccountToken": False,
    }
    return [account] if settings.mode is Mode.STANDALONE else [account, _delegator(settings), _reader(settings)]


def _delegator(settings: Settings) -> Manifest:
    """Asks the host who has a token, and who may do what."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": cluster_wide(settings, "auth-delegator"), "labels": labels(settings)},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "system:auth-delegator"},
        "subjects": _subjects(settings),
    }


def _reader(settings: Settings) -> Manifest:
    """Reads by which authorities the host's kube-apiserver vouches for users."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {
            "name": cluster_wide(settings, "auth-reader"),
            "namespace": KUBE_SYSTEM,
            "labels": labels(settings),
        },
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "extension-apiserver-authentication-reader"},
        "subjects": _subjects(settings),
    }


def _subjects(settings: Settings) -> list[Manifest]:
    return [{"kind": "ServiceAccount", "name": settings.name, "namespace": settings.namespace}]
