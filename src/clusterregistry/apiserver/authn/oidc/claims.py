"""What a token says: whether it is good now and here, and who it is about. Kube-apiserver's rules."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeGuard

from clusterregistry.apiserver.authn.oidc.settings import IssuerSettings
from clusterregistry.apiserver.authn.user import User, authenticated

_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)", re.ASCII)

NOT_BEFORE_LEEWAY = 60.0
"""Seconds that an issuer's clock may be ahead of ours, as in kube-apiserver. The end of a token has no leeway."""

LAST_SECOND = 1e12
"""In the year 33658: a token that ends later is a mistake."""

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"

log = logging.getLogger(__name__)


class Refused(Exception):  # noqa: N818 - what happens to the token
    """A token that is not good; the message says why, and holds nothing that would be of use with another."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token whose signature nobody has checked yet."""

    text: str
    header: dict[str, Any]
    claims: dict[str, Any]

    @property
    def issuer(self) -> object:
        return self.claims.get("iss")

    @property
    def algorithm(self) -> object:
        return self.header.get("alg")

    @property
    def key_id(self) -> str:
        """Empty when the token names no key."""
        value = self.header.get("kid", "")
        if not isinstance(value, str):
            raise Refused("its kid is no text")
        return value


def parse(text: str) -> Token | None:
    """The token in a text of a bounded length; None for what is no JSON web token. Never raises."""
    parts = _COMPACT.fullmatch(text)
    if parts is None:
        return None
    try:
        return Token(text, _json_object(parts[1]), _json_object(parts[2]))
    except (ValueError, RecursionError):
        return None


def _json_object(part: str) -> dict[str, Any]:
    content = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    # The last character may hold bits that mean nothing: only one of its spellings is the token's.
    if base64.urlsafe_b64encode(content).rstrip(b"=") != part.encode():
        raise ValueError(part)
    document = json.loads(content.decode(), object_pairs_hook=_without_repetitions, parse_constant=_refuse)
    if not isinstance(document, dict):
        raise ValueError(part)  # noqa: TRY004 - one kind of error for what is no token
    return document


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two equal keys one reader takes the first and another the last: neither is right."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is there twice")
    return members


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity, which are no JSON


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
