"""What credentials look like. Knows texts only: neither objects nor what their fields are called.

Made so that it hardly costs anything for the many texts that are none, and linear time for those that try to be.
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
"""No text that is shorter looks like any of the patterns."""


class _Look(NamedTuple):
    """One kind of credential. Every match of its pattern contains one of the hints."""

    what: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _look(what: str, hints: str, *patterns: str) -> _Look:
    """Hints are why nearly all texts cost next to nothing: plain text is found fast."""
    return _Look(what, tuple(hints.split("|")), re.compile("|".join(patterns)))


_ENCODED_KEY, _TOKEN = "an encoded private key", "a JSON web token"
_SET_TO = r"""["']?\s{0,9}[=:]\s{0,9}["']?"""

# The look-behinds keep the search linear: a long run of such letters is tried from its start only.
_LOOKS = (
    _look(
        "a private key",
        "PRIVATE KEY|PuTTY-User|AGE-SECRET",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        r"PuTTY-User-Key-File-\d",
        r"AGE-SECRET-KEY-1[A-Z0-9]{50}",
    ),
    _look(_ENCODED_KEY, "LS0tLS1CRUdJTi", r"(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi[A-Za-z0-9+/]{10,}"),
    _look(_TOKEN, "eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*"),
    _look("an AWS access key", "AKIA|ASIA", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    _look(
        "an AWS access key",
        "secret_access|SECRET_ACCESS|SecretAccessKey",
        rf"(?:secret_access_key|SECRET_ACCESS_KEY|SecretAccessKey){_SET_TO}[A-Za-z0-9+/]{{40}}",
    ),
    _look("an Azure credential", "AccountKey=|AccessKey=", r"\b(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40}"),
    _look("an Azure credential", "sig=", r"[?&]sig=[A-Za-z0-9%+/]{43}"),
    _look("an Azure credential", "8Q~", r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31}"),
    _look("a Google Cloud credential", "service_account", r'"type"\s{0,9}:\s{0,9}"service_account"'),
    _look(
        "a Google Cloud credential",
        "ya29.|AIza|GOCSPX-",
        r"\b(?:ya29\.[A-Za-z0-9_-]{20}|AIza[A-Za-z0-9_-]{35}|GOCSPX-[A-Za-z0-9_-]{20})",
    ),
    _look(
        "a GitHub token",
        "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22})",
    ),
    _look("a GitLab token", "glpat-|gldt-|glrt-", r"\bgl(?:pat|dt|rt)-[A-Za-z0-9_-]{20}"),
    _look("a Slack token", "xox|xapp-", r"\b(?:xox[abeoprs]-[A-Za-z0-9-]{10}|xapp-\d-[A-Za-z0-9-]{10})"),
    _look("a Slack token", "hooks.slack", r"hooks\.slack\.com/services/T[A-Z0-9]{1,20}/B[A-Z0-9]{1,20}/[A-Za-z0-9]"),
    _look("a Vault token", "hvs.", r"\bhvs\.[A-Za-z0-9_-]{24}"),
    _look("a password for a container registry", '"auth"', r'"auth"\s{0,9}:\s{0,9}"[A-Za-z0-9+/]{8,1024}={0,2}"'),
    _look(
        "the hash of a password",
        "$",
        r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}",
        r"\$apr1\$[^$\s]{1,8}\$[./A-Za-z0-9]{22}",
        r"\$[156y]\$[^$\s]{1,40}\$[./A-Za-z0-9$]{22}",
    ),
    _look("the hash of a password", "{SHA}", r":\{SHA\}[A-Za-z0-9+/]{27}="),
    _look(
        "an Authorization header",
        "uthorization",
        rf"\b[Aa]uthorization{_SET_TO}(?:[Bb]asic|[Bb]earer)\s{{1,9}}[A-Za-z0-9+/._~-]{{8}}",
    ),
    _look("a URL with a password", "://", r"\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^/?#\s:@]{0,256}:[^/?#\s@]{1,256}@"),
)

_HINTS = tuple((hint, look) for look in _LOOKS for hint in look.hints)
_SHORTEST_ENCODED = 2 * SHORTEST
_ORDER = {look: number for number, look in enumerate(_LOOKS)}


def _is_capital(hint: str) -> bool:
    return hint != hint.lower()


_CAPITAL_HINTS = tuple((hint, look) for hint, look in _HINTS if _is_capital(hint))
_SIGNS = '_=-.~"${/'
_HINTS_BY_SIGN = tuple(
    (sign, tuple((hint, look) for hint, look in _HINTS if sign in hint and not _is_capital(hint))) for sign in _SIGNS
)
_OTHER_HINTS = tuple(
    (hint, look) for hint, look in _HINTS if not _is_capital(hint) and not any(sign in hint for sign in _SIGNS)
)
"""Hints by what they have in common: most texts are in small letters and have few signs, and need few searches."""

_KUBECONFIG_HINT = "Config"
_KUBECONFIG = re.compile(r"""\bkind["']?\s{0,9}:\s{0,9}["']?Config\b""")
_KUBECONFIG_USER = re.compile(r"""[\s"'{,](?:token|password)["']?\s{0,9}:\s{0,9}["']?[^\s"'{}\[\],$<:/]{6}""")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{22,}+(?:\s+[A-Za-z0-9+/]++)*+={0,2}")
"""Possibly in lines. The first one is long: words for people, which are such letters too, are not decoded in vain."""

_KEY_IN_OTHER_LETTERS = re.compile(r"M[A-Za-z0-9_-]{58,}={0,2}|30(?:[\s:]?[0-9a-fA-F]{2}){45,}", re.ASCII)
"""What a key in DER may be in the other base64, or in hexadecimal."""

_BARE_HINTS = tuple((hint, look) for hint, look in _HINTS if hint in ("LS0tLS1CRUdJTi", "AKIA", "ASIA", "AIza"))
"""Of what may stand in text that is base64 as a whole: all other patterns need other letters."""


def find_credential(text: str) -> str:
    """What kind of credential ``text`` holds by its looks, empty for none. Looks also into text that is base64."""
    return _by_looks(text) or _by_content(text)


def finder_for(texts: Iterable[str]) -> Callable[[str], str] | None:
    """``credential_in`` for these texts alone, much faster; None when none of them holds anything.

    What none of them has a hint of is looked for in none of them, and one search through all of them finds that out.
    """
    plain: list[str] = []
    encoded: list[str] = []
    for text in texts:
        if len(text) >= SHORTEST:
            (encoded if _is_encoded(text) else plain).append(text)
    words = "\n".join(plain)
    looks = _hinted(words) | _bare_hinted("\n".join(encoded))
    if not looks and _KUBECONFIG_HINT not in words and not any(map(_encoded_in, encoded)):
        return None
    ordered = _in_order(looks)
    return lambda text: _by_looks(text, ordered) or _by_content(text)


def _in_order(looks: Iterable[_Look]) -> list[_Look]:
    return sorted(looks, key=_ORDER.__getitem__)


def _hinted(text: str) -> set[_Look]:
    """The looks that a text has hints of."""
    found = [look for hint, look in _OTHER_HINTS if hint in text]
    for sign, hints in _HINTS_BY_SIGN:
        if sign in text:
            found += [look for hint, look in hints if hint in text]
    if not text.islower():
        found += [look for hint, look in _CAPITAL_HINTS if hint in text]
    return set(found)


def _bare_hinted(text: str) -> set[_Look]:
    """The same for texts that are base64 as a whole."""
    return {look for hint, look in _BARE_HINTS if hint in text}


def _by_looks(text: str, looks: Iterable[_Look] = _LOOKS) -> str:
    if len(text) < SHORTEST:
        return ""
    for what, hints, pattern in looks:
        for hint in hints:
            if hint in text and any(_is_meant(what, match[0]) for match in pattern.finditer(text)):
                return what
    return "a kubeconfig with a credential" if _is_kubeconfig_with_user(text) else ""


def _is_meant(what: str, found: str) -> bool:
    """Whether what looks like something else as well is one."""
    if what == _TOKEN:
        return _is_token_header(found.partition(".")[0])
    return what != _ENCODED_KEY or b"PRIVATE KEY" in _decoded(found)


def _is_kubeconfig_with_user(text: str) -> bool:
    return _KUBECONFIG_HINT in text and bool(_KUBECONFIG.search(text) and _KUBECONFIG_USER.search(text))


def _by_content(text: str) -> str:
    """Of text that is base64 as a whole, as the data of a Secret is."""
    return _encoded_in(text) if _is_encoded(text) else ""


def _encoded_in(text: str) -> str:
    if _is_key_in_other_letters(text):
        return "a private key, encoded"
    what = _inside(content_of(text) or _decoded("".join(text.split())))
    return f"{what}, encoded" if what else ""


def _inside(content: bytes) -> str:
    """What base64 holds. A key may be encoded twice, such as in ``caBundle``, which is base64 by itself."""
    if is_private_key(content):
        return "a private key"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return ""
    if _is_encoded(text) and is_private_key(_decoded("".join(text.split()))):
        return "a private key"
    return _by_looks(text, _in_order(_hinted(text)))


def _is_encoded(text: str) -> bool:
    if len(text) < _SHORTEST_ENCODED:
        return False
    # Where the length is right, decoding it tells sooner than the pattern, and has often been done already.
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
