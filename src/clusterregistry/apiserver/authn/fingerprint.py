"""What a token is remembered by: never the token itself."""

from __future__ import annotations

import hashlib
import os

MAX_TOKEN = 32 * 1024
"""Characters. A longer token is nobody's: those of the issuers that put all groups into them stay far below."""

_KEY = os.urandom(32)


def usable(token: str) -> bool:
    """Whether a token is worth a look: RFC 6750 has nothing but ASCII in tokens."""
    return len(token) <= MAX_TOKEN and token.isascii()


def fingerprint(token: str) -> bytes:
    """Different for different tokens, the same while the process lives, and of no use to whoever reads our memory."""
    return hashlib.sha256(_KEY + token.encode("ascii")).digest()
