"""Finds credentials in texts by their patterns. It knows neither objects nor the names of fields.

A text without credentials costs next to nothing, and every search takes linear time, whatever the text.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import orjson

from clusterregistry.apimachinery.credentials import is_private_key
from clusterregistry.apimachinery.meta.base64_text import content_of

SHORTEST = 12
"""No shorter text matches any of the patterns."""


class _Pattern(NamedTuple):
    """One kind of credential: every match of its pattern contains one of the hints."""

    what: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _pattern(what: str, hints: str, *patterns: str) -> _Pattern:
    """Hints are plain texts, which are found fast: most texts have none, and no pattern is tried on them."""
    return _Pattern(what, tuple(hints.split("|")), re.compile("|".join(patterns)))


_ENCODED_KEY, _TOKEN = "an encoded private key", "a JSON web token"
_SET_TO = r"""["']?\s{0,9}[=:]\s{0,9}["']?"""

# The look-behinds keep the search linear: a long run of such letters is tried from its start only.
_PATTERNS = (
    _pattern(
        "a private key",
        "PRIVATE KEY|PuTTY-User|AGE-SECRET",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        r"PuTTY-User-Key-File-\d",
        r"AGE-SECRET-KEY-1[A-Z0-9]{50}",
    ),
    _pattern(_ENCODED_KEY, "LS0tLS1CRUdJTi", r"(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi[A-Za-z0-9+/]{10,}"),
    _pattern(_TOKEN, "eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*"),
    _pattern("an AWS access key", "AKIA|ASIA", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    _pattern(
        "an AWS access key",
        "secret_access|SECRET_ACCESS|SecretAccessKey",
        rf"(?:secret_access_key|SECRET_ACCESS_KEY|SecretAccessKey){_SET_TO}[A-Za-z0-9+/]{{40}}",
    ),
    _pattern("an Azure credential", "AccountKey=|AccessKey=", r"\b(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40}"),
    _pattern("an Azure credential", "sig=", r"[?&]sig=[A-Za-z0-9%+/]{43}"),
    _pattern("an Azure credential", "8Q~", r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31}"),
    _pattern("a Google Cloud credential", "service_account", r'"type"\s{0,9}:\s{0,9}"service_account"'),
    _pattern(
        "a Google Cloud credential",
        "ya29.|AIza|GOCSPX-",
        r"\b(?:ya29\.[A-Za-z0-9_-]{20}|AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{20})",
    ),
    _pattern(
        "a GitHub token",
        "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22})",
    ),
    _pattern("a GitLab token", "glpat-|gldt-|glrt-", r"\bgl(?:pat|dt|rt)-[A-Za-z0-9_-]{20}"),
    _pattern("a Slack token", "xox|xapp-", r"\b(?:xox[abeoprs]-[A-Za-z0-9-]{10}|xapp-\d-[A-Za-z0-9-]{10})"),
    _pattern("a Slack token", "hooks.slack", r"hooks\.slack\.com/services/T[A-Z0-9]{1,20}/B[A-Z0-9]{1,20}/[A-Za-z0-9]"),
    _pattern("a Vault token", "hvs.", r"\bhvs\.[A-Za-z0-9_-]{24}"),
    _pattern("a password for a container registry", '"auth"', r'"auth"\s{0,9}:\s{0,9}"[A-Za-z0-9+/]{8,1024}={0,2}"'),
    _pattern(
        "the hash of a password",
        "$",
        r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}",
        r"\$apr1\$[^$\s]{1,8}\$[./A-Za-z0-9]{22}",
        r"\$[156y]\$[^$\s]{1,40}\$[./A-Za-z0-9$]{22}",
    ),
    _pattern("the hash of a password", "{SHA}", r":\{SHA\}[A-Za-z0-9+/]{27}="),
    _pattern(
        "an Authorization header",
        "uthorization",
        rf"\b[Aa]uthorization{_SET_TO}(?:[Bb]asic|[Bb]earer)\s{{1,9}}[A-Za-z0-9+/._~-]{{8}}",
    ),
    _pattern("a URL with a password", "://", r"\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^/?#\s:@]{0,256}:[^/?#\s@]{1,256}@"),
)

_HINTS = tuple((hint, pattern) for pattern in _PATTERNS for hint in pattern.hints)
_SHORTEST_ENCODED = 2 * SHORTEST
_ORDER = {each: number for number, each in enumerate(_PATTERNS)}


def _is_capital(hint: str) -> bool:
    return hint != hint.lower()


_CAPITAL_HINTS = tuple((hint, pattern) for hint, pattern in _HINTS if _is_capital(hint))
_SIGNS = '_=-.~"${/'
_HINTS_BY_SIGN = tuple(
    (sign, tuple((hint, pattern) for hint, pattern in _HINTS if sign in hint and not _is_capital(hint)))
    for sign in _SIGNS
)
_OTHER_HINTS = tuple(
    (hint, pattern) for hint, pattern in _HINTS if not _is_capital(hint) and not any(sign in hint for sign in _SIGNS)
)
"""Hints by what they have in common: most texts are lower case and have few signs, and need few searches."""

_KUBECONFIG_HINT = "Config"
_KUBECONFIG = re.compile(r"""\bkind["']?\s{0,9}:\s{0,9}["']?Config\b""")
_KUBECONFIG_USER = re.compile(r"""[\s"'{,](?:token|password)["']?\s{0,9}:\s{0,9}["']?[^\s"'{}\[\],$<:/]{6}""")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{22,}+(?:\s+[A-Za-z0-9+/]++)*+={0,2}")
"""Base64, possibly in lines. The first line is long, so that plain words are not decoded in vain."""

_KEY_IN_OTHER_LETTERS = re.compile(r"M[A-Za-z0-9_-]{58,}={0,2}|30(?:[\s:]?[0-9a-fA-F]{2}){45,}", re.ASCII)
"""A key in DER as base64 for URLs, or in hexadecimal."""

_BARE_HINTS = tuple((hint, pattern) for hint, pattern in _HINTS if hint in ("LS0tLS1CRUdJTi", "AKIA", "ASIA", "AIza"))
"""The hints that can stand in text that is base64 as a whole: all other patterns need other letters."""


def find_credential(text: str) -> str:
    """Returns the kind of credential that ``text`` holds, empty for none. Text that is base64 is decoded too."""
    return _by_pattern(text) or _by_content(text)


def finder_for(texts: Iterable[str]) -> Callable[[str], str] | None:
    """Returns ``find_credential`` for these texts alone, which is much faster; None when no text holds a credential.

    One search for hints through all texts leaves out the patterns that cannot match any of them.
    """
    plain: list[str] = []
    encoded: list[str] = []
    for text in texts:
        if len(text) >= SHORTEST:
            (encoded if _is_encoded(text) else plain).append(text)
    words = "\n".join(plain)
    patterns = _hinted(words) | _bare_hinted("\n".join(encoded))
    if not patterns and _KUBECONFIG_HINT not in words and not any(map(_encoded_in, encoded)):
        return None
    ordered = _in_order(patterns)
    return lambda text: _by_pattern(text, ordered) or _by_content(text)


def _in_order(patterns: Iterable[_Pattern]) -> list[_Pattern]:
    return sorted(patterns, key=_ORDER.__getitem__)


def _hinted(text: str) -> set[_Pattern]:
    """The patterns that a text has hints of."""
    found = [pattern for hint, pattern in _OTHER_HINTS if hint in text]
    for sign, hints in _HINTS_BY_SIGN:
        if sign in text:
            found += [pattern for hint, pattern in hints if hint in text]
    if not text.islower():
        found += [pattern for hint, pattern in _CAPITAL_HINTS if hint in text]
    return set(found)


def _bare_hinted(text: str) -> set[_Pattern]:
    """The same for texts that are base64 as a whole."""
    return {pattern for hint, pattern in _BARE_HINTS if hint in text}


def _by_pattern(text: str, patterns: Iterable[_Pattern] = _PATTERNS) -> str:
    if len(text) < SHORTEST:
        return ""
    for what, hints, pattern in patterns:
        for hint in hints:
            if hint in text and any(_is_meant(what, match[0]) for match in pattern.finditer(text)):
                return what
    return "a kubeconfig with a credential" if _is_kubeconfig_with_user(text) else ""


def _is_meant(what: str, found: str) -> bool:
    """Whether a match of an ambiguous pattern is a credential."""
    if what == _TOKEN:
        return _is_token_header(found.partition(".")[0])
    return what != _ENCODED_KEY or b"PRIVATE KEY" in _decoded(found)


def _is_kubeconfig_with_user(text: str) -> bool:
    return _KUBECONFIG_HINT in text and bool(_KUBECONFIG.search(text) and _KUBECONFIG_USER.search(text))


def _by_content(text: str) -> str:
    """The credential in text that is base64 as a whole, as the data of a Secret is."""
    return _encoded_in(text) if _is_encoded(text) else ""


def _encoded_in(text: str) -> str:
    if _is_key_in_other_letters(text):
        return "a private key, encoded"
    what = _inside(content_of(text) or _decoded("".join(text.split())))
    return f"{what}, encoded" if what else ""


def _inside(content: bytes) -> str:
    """The credential in decoded base64. A key may be encoded twice, such as in ``caBundle``, which is base64 itself."""
    if is_private_key(content):
        return "a private key"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return ""
    if _is_encoded(text) and is_private_key(_decoded("".join(text.split()))):
        return "a private key"
    return _by_pattern(text, _in_order(_hinted(text)))


def _is_encoded(text: str) -> bool:
    if len(text) < _SHORTEST_ENCODED:
        return False
    # Where the length is right, decoding is faster than the pattern, and has often been done already.
    if (len(text) % 4 == 0 and content_of(text) is not None) or _BASE64.fullmatch(text.strip()) is not None:
        return True
    return _is_key_in_other_letters(text)


def _is_key_in_other_letters(text: str) -> bool:
    """Whether text is a private key in base64 for URLs or in hexadecimal. DER begins with 30, in base64 with ``M``."""
    if not text.startswith(("M", "30")) or _KEY_IN_OTHER_LETTERS.fullmatch(text) is None:
        return False
    if text[0] == "M":
        return is_private_key(_decoded(text.replace("-", "+").replace("_", "/")))
    return is_private_key(bytes.fromhex(text.replace(":", "")))


def _is_token_header(encoded: str) -> bool:
    try:
        header = orjson.loads(_decoded(encoded.replace("-", "+").replace("_", "/")))
    except orjson.JSONDecodeError:
        return False
    return isinstance(header, dict) and "alg" in header


def _decoded(encoded: str) -> bytes:
    bare = encoded.rstrip("=")
    whole = bare[: len(bare) // 4 * 4] if len(bare) % 4 == 1 else bare + "=" * (-len(bare) % 4)
    try:
        return binascii.a2b_base64(whole)
    except binascii.Error:
        return b""
