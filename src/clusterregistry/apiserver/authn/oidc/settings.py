"""Settings of an issuer and its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")
"""kube-apiserver's list: no algorithm with a shared secret, and not ``none``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerSettings:
    """One issuer. ``username_prefix`` and ``groups_prefix`` are the effective ones."""

    url: str
    client_id: str
    username_claim: str = "sub"
    username_prefix: str = ""
    groups_claim: str = ""
    groups_prefix: str = ""
    required_claims: Mapping[str, str] = field(default_factory=dict)
    algorithms: tuple[str, ...] = ("RS256",)

    @property
    def discovery_url(self) -> str:
        return f"{self.url.rstrip('/')}/.well-known/openid-configuration"
