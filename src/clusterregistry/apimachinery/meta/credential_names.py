"""What the keys of credentials are called: one list for the look-out for secrets and for the audit log."""

from __future__ import annotations

import re

from clusterregistry.apimachinery.bounded_cache import remembered

ENDINGS = (
    *("token", "password", "passwd", "pwd", "passphrase", "secret", "secretkey", "secretaccesskey"),
    *("privatekey", "accesskey", "apikey", "keydata", "credential", "bearer", "authorization"),
)
"""What such a key ends in, lower case and without separators; ``s`` and digits may follow. ``tokenFile``,
``secretName``, ``token-url`` do not."""

_SHORT = r"(?<!by)(?<!com)(?<!im)(?<!over)(?<!sur)(?<!tres)(?<!under)pass"
"""An ending too, but also that of common words."""

_ENDING = re.compile(rf"(?:{'|'.join(ENDINGS)}|{_SHORT})s?[0-9]*+\Z")
_SEPARATORS = re.compile(r"[^a-z0-9]+")


@remembered(1024)
def names_credential(key: str) -> bool:
    """Whether a key, such as ``access_token`` or ``client-key-data``, is one of a credential."""
    return _ENDING.search(_SEPARATORS.sub("", key.lower())) is not None
