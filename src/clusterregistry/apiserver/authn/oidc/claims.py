"""What a token says: whether it is good now and here, and who it is about. Kube-apiserver's rules."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeGuard

from clusterregistry.apiserver.authn.oidc.settings import IssuerSettings
from clusterregistry.apiserver.authn.oidc.tokens import Refused
from clusterregistry.apiserver.authn.user import User, authenticated

log = logging.getLogger(__name__)

NOT_BEFORE_LEEWAY = 60.0
"""Seconds that an issuer's clock may be ahead of ours, as in kube-apiserver. The end of a token has no leeway."""

LAST_SECOND = 1e12
"""In the year 33658: a token that ends later is a mistake."""

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


def check(claims: Mapping[str, Any], settings: IssuerSettings, *, now: float) -> float:
    """When the token ends. Raises Refused for one that is not for us, or not good now."""
    if claims.get("iss") != settings.url:
        raise Refused("another issuer's")
    if settings.client_id not in _audiences(claims):
        raise Refused("its audience is not --oidc-client-id")
    ends = _seconds(claims, "exp")
    if ends is None:
        raise Refused("it has no exp")
    if now >= ends:
        raise Refused("it has expired")
    begins = _seconds(claims, "nbf")
    if begins is not None and now + NOT_BEFORE_LEEWAY < begins:
        raise Refused("it is not good yet (nbf)")
    return ends


def user_of(claims: Mapping[str, Any], settings: IssuerSettings) -> User:
    """Who a checked token is about. Raises Refused when it does not say so, or lacks a claim that it must have."""
    _check_required(claims, settings.required_claims)
    return authenticated(
        name=settings.username_prefix + _username(claims, settings.username_claim),
        groups=[settings.groups_prefix + group for group in _groups(claims, settings.groups_claim)],
        extra=_credential(claims),
    )


def _check_required(claims: Mapping[str, Any], required: Mapping[str, str]) -> None:
    for name, wanted in required.items():
        if claims.get(name) != wanted:
            raise Refused(f"its claim {name} is not what --oidc-required-claim wants")


def _username(claims: Mapping[str, Any], claim: str) -> str:
    # An address that the issuer has not verified could be anybody's.
    if claim == "email" and claims.get("email_verified", True) is not True:
        raise Refused("its email is not verified")
    name = claims.get(claim)
    if not _is_text(name) or not name:
        raise Refused(f"its claim {claim} is no user name")
    return name


def _groups(claims: Mapping[str, Any], claim: str) -> list[str]:
    if not claim:
        return []
    if _is_distributed(claims, claim):
        log.warning("a token's claim %s is distributed, which is not supported: its user has no groups", claim)
    groups = claims.get(claim)
    if groups is None:
        return []
    named = [groups] if isinstance(groups, str) else groups
    if not isinstance(named, list) or not all(map(_is_text, named)):
        raise Refused(f"its claim {claim} is neither a text nor a list of them")
    return [group for group in named if group]


def _is_distributed(claims: Mapping[str, Any], claim: str) -> bool:
    names = claims.get("_claim_names")
    return claim not in claims and isinstance(names, dict) and claim in names


def _credential(claims: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    identifier = claims.get("jti")
    return {CREDENTIAL_ID: (f"JTI={identifier}",)} if _is_text(identifier) and identifier else {}


def _is_text(value: object) -> TypeGuard[str]:
    """JSON can escape half a character, which no answer and no log could hold."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _audiences(claims: Mapping[str, Any]) -> list[Any]:
    audience = claims.get("aud")
    return audience if isinstance(audience, list) else [audience]


def _seconds(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    # Python's booleans are numbers; what is beyond the range never comes, or does not fit.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < LAST_SECOND:
        raise Refused(f"its {name} is no time")
    return float(value)
