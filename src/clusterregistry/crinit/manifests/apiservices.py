"""The APIService by which the host's kube-apiserver hands requests on to an aggregated registry."""

from __future__ import annotations

import base64

from clusterregistry.crinit.credentials.material import Material
from clusterregistry.crinit.manifests import services
from clusterregistry.crinit.manifests.objects import Manifest, labels
from clusterregistry.crinit.settings import Mode, Settings

GROUP = "clusterregistry.k8s.io"
VERSION = "v1alpha1"
NAME = f"{VERSION}.{GROUP}"


def apiservices(settings: Settings, material: Material) -> list[Manifest]:
    if settings.mode is not Mode.AGGREGATED:
        return []
    return [
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": NAME, "labels": labels(settings)},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "groupPriorityMinimum": 1000,
                "versionPriority": 15,
                "service": {"name": settings.name, "namespace": settings.namespace, "port": services.PORT},
                "caBundle": base64.b64encode(material.authority.certificate).decode(),
            },
        }
    ]
