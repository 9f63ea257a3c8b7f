"""What kube-apiserver tells its extensions about users and front proxies, in a configmap that everybody of them reads.

The keys are those of ``kube-system/extension-apiserver-authentication``. A key that is absent says that the host
cluster has no such thing; one that cannot be read is a mistake, and nothing of the configmap counts then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterregistry.apiserver.authn.certificates import certificates_in
from clusterregistry.apiserver.authn.request_header import ProxyHeaders

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"
SHOWN = f"configmap {NAMESPACE}/{NAME}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationConfig:
    """Whose certificates are users', whose are front proxies', and how these speak."""

    client_cas: str = ""
    proxy_cas: str = ""
    proxy_names: tuple[str, ...] = ()
    headers: ProxyHeaders


def read(configmap: Mapping[str, Any]) -> AuthenticationConfig:
    """What a configmap says. Raises ValueError that names every mistake."""
    data = configmap.get("data")
    reading = _Reading(data if isinstance(data, dict) else {})
    config = AuthenticationConfig(
        client_cas=reading.authorities("client-ca-file"),
        proxy_cas=reading.authorities("requestheader-client-ca-file"),
        proxy_names=reading.texts("requestheader-allowed-names"),
        headers=ProxyHeaders(
            user=reading.headers("requestheader-username-headers"),
            uid=reading.headers("requestheader-uid-headers"),
            group=reading.headers("requestheader-group-headers"),
            extra=reading.headers("requestheader-extra-headers-prefix"),
        ),
    )
    if reading.mistakes:
        raise ValueError(f"{SHOWN}: {'; '.join(reading.mistakes)}")
    return config


class _Reading:
    """Looks through the data and collects what is wrong with it."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self.mistakes: list[str] = []

    def authorities(self, key: str) -> str:
        pem = self._text(key)
        if pem.strip() and not certificates_in(pem):
            self.mistakes.append(f"{key}: holds no certificates in PEM")
        return pem

    def texts(self, key: str) -> tuple[str, ...]:
        text = self._text(key)
        if not text:
            return ()
        try:
            listed = json.loads(text)
        except ValueError:
            listed = None
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            self.mistakes.append(f"{key}: is no list of texts in JSON")
            return ()
        return tuple(listed)

    def headers(self, key: str) -> tuple[str, ...]:
        return tuple(name.lower() for name in self.texts(key) if name)

    def _text(self, key: str) -> str:
        value = self._data.get(key, "")
        if isinstance(value, str):
            return value
        self.mistakes.append(f"{key}: must be text")
        return ""
