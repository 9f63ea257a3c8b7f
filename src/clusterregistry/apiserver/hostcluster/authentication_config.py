"""kube-apiserver's configuration of users and front proxies for its extensions, in a configmap.

The keys are those of ``kube-system/extension-apiserver-authentication``. A key is absent where the host cluster has no
such configuration. One that cannot be read is a mistake, and nothing of the configmap is used.
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
    """The authorities of users' and front proxies' certificates in PEM, and the names and headers of front proxies."""

    client_cas: str = ""
    proxy_cas: str = ""
    proxy_names: tuple[str, ...] = ()
    headers: ProxyHeaders


def read(configmap: Mapping[str, Any]) -> AuthenticationConfig:
    """The configuration in a configmap. Raises ValueError with every mistake."""
    data = configmap.get("data")
    reader = _Reader(data if isinstance(data, dict) else {})
    config = AuthenticationConfig(
        client_cas=reader.authorities("client-ca-file"),
        proxy_cas=reader.authorities("requestheader-client-ca-file"),
        proxy_names=reader.texts("requestheader-allowed-names"),
        headers=ProxyHeaders(
            user=reader.headers("requestheader-username-headers"),
            uid=reader.headers("requestheader-uid-headers"),
            group=reader.headers("requestheader-group-headers"),
            extra=reader.headers("requestheader-extra-headers-prefix"),
        ),
    )
    if reader.mistakes:
        raise ValueError(f"{SHOWN}: {'; '.join(reader.mistakes)}")
    return config


class _Reader:
    """Reads the keys of the data, and collects the mistakes."""

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
