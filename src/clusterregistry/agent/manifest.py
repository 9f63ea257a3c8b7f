"""What is deployed into a member: namespace, account, rights, the Secret with the kubeconfig, and the agent itself.

The agent may read what the observer needs, and replace its own Secret when its certificate is renewed. It needs no way
in: nothing listens, and no port is opened.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.codecs import yaml_codec

Manifest = dict[str, Any]

NAMESPACE = "clusterregistry-agent"
NAME = "clusterregistry-agent"
SECRET = "clusterregistry-agent-identity"  # noqa: S105 - the name of an object
SECRET_KEY = "kubeconfig"  # noqa: S105 - likewise
_FOLDER = "/etc/clusterregistry-agent"
_RBAC = "rbac.authorization.k8s.io"
_LABELS = {"app.kubernetes.io/name": "clusterregistry", "app.kubernetes.io/component": "agent"}
_USER = 65532
"""The user ``nonroot`` of distroless images."""

MEMBER_RULES: list[Manifest] = [
    {"nonResourceURLs": ["/readyz", "/healthz", "/version"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]},
]
"""What the observer reads, and nothing else."""

_SECRET_RULES: list[Manifest] = [
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": ["patch"]},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """What differs from member to member."""

    cluster: str
    kubeconfig: bytes
    image: str
    certificate_seconds: int


def objects(wanted: Deployed) -> list[Manifest]:
    """The objects in the order in which they are applied."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": NAMESPACE,
                "labels": {**_LABELS, "pod-security.kubernetes.io/enforce": "restricted"},
            },
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(NAME)},
        *_rights(),
        _secret(wanted),
        _deployment(wanted),
    ]


def as_yaml(manifests: list[Manifest]) -> str:
    return "".join(f"---\n{yaml_codec.encode(manifest).decode()}" for manifest in manifests)


def _rights() -> list[Manifest]:
    subjects = [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}]
    described = {"name": NAME, "labels": _LABELS}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": described, "rules": MEMBER_RULES},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": described,
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": subjects,
        },
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": _metadata(NAME), "rules": _SECRET_RULES},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": _metadata(NAME),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": NAME},
            "subjects": subjects,
        },
    ]


def _secret(wanted: Deployed) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(SECRET),
        "type": "Opaque",
        "data": {SECRET_KEY: base64.b64encode(wanted.kubeconfig).decode()},
    }


def _deployment(wanted: Deployed) -> Manifest:
    match = {**_LABELS, "app.kubernetes.io/instance": NAME}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(NAME),
        "spec": {
            "replicas": 1,
            # Two agents of one cluster would do the same work twice.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": match},
            "template": {"metadata": {"labels": match}, "spec": _pod(wanted)},
        },
    }


def _pod(wanted: Deployed) -> Manifest:
    volumes = [
        {"name": "identity", "secret": {"secretName": SECRET, "defaultMode": 0o440}},
        {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    ]
    return {
        "serviceAccountName": NAME,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(wanted)],
        "volumes": volumes,
    }


def _container(wanted: Deployed) -> Manifest:
    return {
        "name": "agent",
        "image": wanted.image,
        "command": ["clusterregistry", "agent"],
        "args": [
            f"--cluster={wanted.cluster}",
            f"--kubeconfig={_FOLDER}/{SECRET_KEY}",
            f"--kubeconfig-secret={NAMESPACE}/{SECRET}",
            f"--certificate-duration={wanted.certificate_seconds}s",
            "--logging-format=json",
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "identity", "mountPath": _FOLDER, "readOnly": True},
            # A client certificate passes through a file: Python's TLS reads no other.
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the pod's own
        ],
    }


def _metadata(name: str) -> Manifest:
    return {"name": name, "namespace": NAMESPACE, "labels": _LABELS}
