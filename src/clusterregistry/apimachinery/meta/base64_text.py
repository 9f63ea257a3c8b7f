"""Base64 in the texts of objects. Several look at what is in one text, and it is decoded once for all of them."""

from __future__ import annotations

import binascii

from clusterregistry.apimachinery.bounded_cache import bounded_cache


@bounded_cache(16, longest=32 * 1024)
def content_of(text: str) -> bytes | None:
    """What standard base64 with padding holds; None for what is none. For go-openapi the empty string is none."""
    if len(text) % 4 or text.endswith("==="):
        return None  # padding behind a whole number of groups is not noticed by what follows
    try:
        return binascii.a2b_base64(text, strict_mode=True) or None
    except ValueError:
        return None


def is_base64(text: str) -> bool:
    return content_of(text) is not None
