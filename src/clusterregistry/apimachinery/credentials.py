"""Recognises credentials by the names of their keys and by the first bytes of private keys."""

from __future__ import annotations

import re

from clusterregistry.apimachinery.bounded_cache import bounded_cache

ENDINGS = (
    *("token", "password", "passwd", "pwd", "passphrase", "secret", "secretkey", "secretaccesskey"),
    *("privatekey", "accesskey", "apikey", "keydata", "credential", "bearer", "authorization"),
)
"""Endings of the names of credentials, lower case and without separators; ``s`` and digits may follow. ``tokenFile``,
``secretName`` and ``token-url`` are not such names."""

_SHORT = r"(?<!by)(?<!com)(?<!im)(?<!over)(?<!sur)(?<!tres)(?<!under)pass"
"""An ending too, but not in common words."""

_ENDING = re.compile(rf"(?:{'|'.join(ENDINGS)}|{_SHORT})s?[0-9]*+\Z")
_SEPARATORS = re.compile(r"[^a-z0-9]+")


@bounded_cache(1024)
def names_credential(key: str) -> bool:
    """Whether a key, such as ``access_token`` or ``client-key-data``, is the name of a credential."""
    return _ENDING.search(_SEPARATORS.sub("", key.lower())) is not None


_OPENSSH = b"openssh-key-v1\0"

# The bytes after the length of the outermost sequence. 02 is an integer, 04 octets, 06 an OID, 30 a sequence.
_BEGINNING = re.compile(
    rb"""
      \x02\x01[\x00\x01] \x30 .{1,4}? \x06         # PKCS #8: version, the name of the algorithm
    | \x02\x01[\x00\x01] \x02 [\x20-\xff]          # RSA (PKCS #1) and DSA: version, a large number
    | \x02\x01\x01 \x04 [\x14-\x7f]                # of an elliptic curve (SEC 1): version, the key
    | \x02\x01\x03 \x30                            # PKCS #12, a store of keys
    | \x30.{1,3}?\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05       # encrypted PKCS #8, by a password (PKCS #5)
    | \x30.{1,3}?\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01   # the same (PKCS #12)
    """,
    re.VERBOSE | re.DOTALL,
)


def is_private_key(content: bytes) -> bool:
    """Whether bytes are a private key, encrypted or not, or a store of such keys."""
    if content.startswith(_OPENSSH):
        return True
    start = _content_start(content)
    return start > 0 and _BEGINNING.match(content, start) is not None


def _content_start(der: bytes) -> int:
    """The start of the content of a DER sequence; 0 for other bytes."""
    if len(der) < 16 or der[0] != 0x30:  # noqa: PLR2004 - no key is that short; a sequence
        return 0
    first = der[1]
    if first < 0x80:  # noqa: PLR2004 - the length itself, else the number of its bytes
        return 2 if len(der) >= 2 + first else 0
    size = first & 0x7F
    start = 2 + size
    if size > 4 or len(der) < start:  # noqa: PLR2004 - longer than any key
        return 0
    return start if len(der) >= start + int.from_bytes(der[2:start]) else 0
