"""The controller, which observes clusters and writes their status: Deployment, configuration, account and rights.

In a standalone registry it is a user with a certificate of the registry's authority, and the registry has a role for
that user. If aggregated, its service account has the same rights in the host cluster. Credentials of clusters come from
the Secret NAME-clusters, which an operator makes and fills; without it the folder is empty.
"""

from __future__ import annotations

from dataclasses import replace

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.crinit.manifests import pods, secrets
from clusterregistry.crinit.manifests.objects import CONTROLLER, Manifest, cluster_wide, labels, metadata, selector
from clusterregistry.crinit.settings import ControllerSettings, Mode, Settings

CONTAINER = "controller"
PORT = 8443
ACCESS_CONFIG = "access.yaml"
_RBAC = "rbac.authorization.k8s.io"
_IDENTITY = "/etc/clusterregistry/identity"
_ACCESS = "/etc/clusterregistry/access"
_CLUSTERS = "/etc/clusterregistry/clusters"

DEFAULT_ACCESS_CONFIG = f"""\
apiVersion: {GROUP}/v1alpha1
kind: AccessConfiguration
rules:
- match: {{}}
  use: {{file: {{directory: {_CLUSTERS}}}}}
"""
"""KEY.token or KEY.kubeconfig for each cluster."""


def objects(settings: Settings) -> list[Manifest]:
    """Returns all objects but the Secret with the identity and the network policy; none without a controller."""
    if settings.controller is None:
        return []
    return [
        access_config(settings, settings.controller),
        _account(settings),
        *(_rights(settings) if settings.mode is Mode.AGGREGATED else []),
        _deployment(settings, settings.controller),
        *([_budget(settings)] if settings.controller.replicas > 1 else []),
    ]


def possible_objects(settings: Settings) -> list[Manifest]:
    """Returns all objects that a controller of this registry may have but the network policy, the pods' first."""
    full = replace(settings, controller=ControllerSettings(replicas=2))
    identity = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(full, secrets.name_of(full, secrets.CONTROLLER)),
    }
    return [*reversed(objects(full)), identity]


def access_config_name(settings: Settings) -> str:
    return f"{settings.name}-access"


def access_config(settings: Settings, controller: ControllerSettings) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(settings, access_config_name(settings)),
        "data": {ACCESS_CONFIG: controller.access_config or DEFAULT_ACCESS_CONFIG},
    }


def _account(settings: Settings) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(settings, settings.controller_name),
        "automountServiceAccountToken": False,
    }


def _rights(settings: Settings) -> list[Manifest]:
    """Returns the rights of the role that a standalone registry has for its controller, in the host cluster."""
    name, described = cluster_wide(settings, CONTROLLER), {"labels": labels(settings, CONTROLLER)}
    subjects = [{"kind": "ServiceAccount", "name": settings.controller_name, "namespace": settings.namespace}]
    in_namespace = _metadata(settings, settings.controller_name)
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, **described},
            "rules": CLUSTER_RULES,
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name, **described},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
            "subjects": subjects,
        },
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": in_namespace, "rules": LEASE_RULES},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": in_namespace,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": settings.controller_name},
            "subjects": subjects,
        },
    ]


CLUSTER_RULES: list[Manifest] = [
    {"apiGroups": [GROUP], "resources": ["clusters"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [GROUP], "resources": ["clusters/status"], "verbs": ["get", "patch", "update"]},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
]
LEASE_RULES: list[Manifest] = [
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"]},
]


def _deployment(settings: Settings, controller: ControllerSettings) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(settings, settings.controller_name),
        "spec": {
            "replicas": controller.replicas,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": selector(settings, CONTROLLER)},
            "template": {
                "metadata": {"labels": labels(settings, CONTROLLER)},
                "spec": _pod(settings, controller),
            },
        },
    }


def _pod(settings: Settings, controller: ControllerSettings) -> Manifest:
    mounts = _mounts(settings)
    pod: Manifest = {
        "serviceAccountName": settings.controller_name,
        "automountServiceAccountToken": settings.mode is Mode.AGGREGATED,
        "securityContext": pods.pod_security(),
        "containers": [_container(settings, controller, mounts)],
        "volumes": [mount.volume() for mount in mounts],
    }
    if controller.replicas > 1:
        pod["topologySpreadConstraints"] = pods.spread(selector(settings, CONTROLLER))
    return pod


def _container(settings: Settings, controller: ControllerSettings, mounts: list[pods.Mount]) -> Manifest:
    args = pods.arguments(_own_arguments(settings), controller.argument_overrides)
    return pods.https_container(settings, CONTAINER, command="controller", args=args, port=PORT, mounts=mounts)


def _mounts(settings: Settings) -> list[pods.Mount]:
    mounts = [
        pods.empty("tmp", path="/tmp"),  # noqa: S108 - the pod's own, and the root file system is read-only
        pods.config_map("access", path=_ACCESS, config_map_name=access_config_name(settings)),
        pods.secret("clusters", path=_CLUSTERS, secret_name=secrets.name_of(settings, secrets.CLUSTERS), optional=True),
    ]
    if settings.mode is Mode.STANDALONE:
        name = secrets.name_of(settings, secrets.CONTROLLER)
        mounts.append(pods.secret("identity", path=_IDENTITY, secret_name=name))
    return mounts


def _own_arguments(settings: Settings) -> list[str]:
    own = [f"--access-config={_ACCESS}/{ACCESS_CONFIG}", "--bind-address=0.0.0.0", f"--secure-port={PORT}"]
    if settings.mode is Mode.STANDALONE:
        return [f"--kubeconfig={_IDENTITY}/kubeconfig", *own]
    return [*own, f"--leader-elect-resource-namespace={settings.namespace}"]


def _budget(settings: Settings) -> Manifest:
    return pods.budget(settings, settings.controller_name, CONTROLLER)


def _metadata(settings: Settings, name: str) -> Manifest:
    return metadata(settings, name, component=CONTROLLER)
