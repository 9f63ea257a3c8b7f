"""Base64 in the texts of objects, decoded once for all checks of a text."""

from __future__ import annotations

import binascii

from clusterregistry.apimachinery.bounded_cache import bounded_cache


@bounded_cache(16, longest=32 * 1024)
def content_of(text: str) -> bytes | None:
    """Decodes standard base64 with padding; None for invalid base64 and, as in go-openapi, for the empty string."""
    if len(text) % 4 or text.endswith("==="):
        return None  # a2b_base64 accepts padding after a whole number of groups
    try:
        return binascii.a2b_base64(text, strict_mode=True) or None
    except ValueError:
        return None


def is_base64(text: str) -> bool:
    return content_of(text) is not None
