"""When a credential ends: the earliest of the ``exp`` of its token and the end of its client certificate."""

from __future__ import annotations

import base64
import binascii

import orjson

from clusterregistry.client.credentials import Credential

_MAX_TIME = 253_402_300_799
"""The last second of the year 9999."""


def expiry_of(credential: Credential) -> float | None:
    """The Unix time at which it ends; None: it does not say. Nothing is verified: the cluster does that."""
    scheme, _, token = credential.authorization.partition(" ")
    found = [
        _token_end(token) if scheme == "Bearer" else None,
        _certificate_end(credential.certificate) if credential.certificate else None,
    ]
    return min((end for end in found if end is not None), default=None)


def earliest(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)


def _token_end(token: str) -> float | None:
    """``exp`` of a JWT."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 - header, claims, signature
        return None
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return None
    end = claims.get("exp") if isinstance(claims, dict) else None
    if not isinstance(end, int | float) or isinstance(end, bool) or not 0 < end <= _MAX_TIME:
        return None
    return float(end)


def _certificate_end(certificate: bytes) -> float | None:
    from cryptography import x509  # noqa: PLC0415 - a slow import, and most credentials are tokens

    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()
    except Exception:  # noqa: BLE001 - what this parser refuses may still be accepted by OpenSSL
        return None
