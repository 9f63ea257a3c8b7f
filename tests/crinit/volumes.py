"""Volumes of pods as directories, filled the way a kubelet does it."""

from __future__ import annotations

import base64
import itertools
from pathlib import Path
from typing import Any

from tests.crinit.namespaces import Namespace

ROOT_AUTHORITY = "kube-root-ca.crt"
"""The configmap that a controller of Kubernetes puts into every namespace."""

_versions = itertools.count(1)


class NotYet(Exception):  # noqa: N818 - a kubelet waits then, and tries again
    """Something that a pod mounts is not there."""


class Volumes:
    """Those of one namespace. ``directory`` keeps the claims; other volumes go with their pod."""

    def __init__(self, namespace: Namespace, directory: Path) -> None:
        self._namespace, self._directory = namespace, directory

    def mount(self, volume: dict[str, Any], place: Path) -> Path:
        """The directory of a volume; a claim's is the same for every pod."""
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            if self._namespace.get("persistentvolumeclaims", claim) is None:
                raise NotYet(claim)
            place = self._directory / "claims" / claim
        place.mkdir(parents=True, exist_ok=True)
        if "secret" in volume:
            self._secret(volume["secret"], place)
        if "configMap" in volume:
            self._config_map(volume["configMap"]["name"], place)
        return place

    def _config_map(self, name: str, place: Path) -> None:
        found = self._namespace.get("configmaps", name)
        if found is None:
            raise NotYet(name)
        swap(place, found["data"])

    def _secret(self, source: dict[str, Any], place: Path) -> None:
        secret = self._namespace.get("secrets", source["secretName"])
        if secret is None and source.get("optional"):
            return
        if secret is None:
            raise NotYet(source["secretName"])
        only = {each["key"]: each["path"] for each in source.get("items", [])}
        swap(
            place,
            {
                only.get(key, key): base64.b64decode(data).decode()
                for key, data in secret["data"].items()
                if not only or key in only
            },
        )

    def project(self, pod: dict[str, Any], volume: dict[str, Any], place: Path) -> Path:
        """What kube-apiserver adds to a pod for its service account: token, authority and namespace."""
        files: dict[str, str] = {}
        for source in volume["projected"]["sources"]:
            if asked := source.get("serviceAccountToken"):
                described = {"kind": "Pod", "apiVersion": "v1", "name": pod["metadata"]["name"]}
                bound = {**described, "uid": pod["metadata"]["uid"]}
                files[asked["path"]] = self.token(pod["spec"]["serviceAccountName"], bound, asked["expirationSeconds"])
            for item in source.get("configMap", {}).get("items", []):
                found = self._namespace.get("configmaps", source["configMap"]["name"])
                if found is None:
                    raise NotYet(source["configMap"]["name"])
                files[item["path"]] = found["data"][item["key"]]
            for item in source.get("downwardAPI", {}).get("items", []):
                assert item["fieldRef"]["fieldPath"] == "metadata.namespace"
                files[item["path"]] = self._namespace.name
        swap(place, files)
        return place

    def token(self, account: str, bound: dict[str, str], seconds: int = 3607) -> str:
        """A token that is good as long as the object to which it is bound is there."""
        asked = {"expirationSeconds": seconds, "boundObjectRef": bound}
        path = self._namespace.path("v1", "serviceaccounts", account) + "/token"
        made = self._namespace.host.create(
            path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": asked}
        )
        return str(made["status"]["token"])


def swap(place: Path, files: dict[str, str]) -> None:
    """Puts files there all at once, as a kubelet does: the names lead through one link that changes."""
    if all((place / name).exists() and (place / name).read_text() == text for name, text in files.items()):
        return
    version = place / f"..version-{next(_versions)}"
    version.mkdir(parents=True)
    for name, content in files.items():
        (version / name).write_text(content)
    (place / "..new").symlink_to(version.name)
    (place / "..new").rename(place / "..data")
    for name in files:
        if not (place / name).is_symlink():
            (place / name).symlink_to(f"..data/{name}")
