"""The look-out for credentials in objects that many may read.

A registry holds pointers to credentials, never credentials. This finds the common ways of getting that wrong:
by what a value looks like anywhere in the spec and the annotations, and by what its key is called in the
configuration of an authentication provider. It is no proof of absence, and no finding ever shows the value.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from clusterregistry.apis.meta import field_errors
from clusterregistry.apis.meta.field_errors import FieldError

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Holds the whole object once more: what is wrong in it is reported where it belongs."""

_WARNINGS_LIMIT = 10
_SHORTEST = 12
"""No value that is shorter looks like any of the patterns."""

_ADVICE = "store a pointer instead, such as a secret's name or a file's path, and revoke what was sent"


class Finding(NamedTuple):
    """``what`` a value at ``path`` looks like, for people."""

    path: str
    what: str


# The look-behinds keep the search linear: a long run of such letters is tried from its start only.
_PATTERNS = re.compile(
    r"""
      (?P<key>-----BEGIN\ [A-Z0-9\ ]{0,40}PRIVATE\ KEY(?:\ BLOCK)?-----)
    | (?P<encoded>(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi[A-Za-z0-9+/]{10,})
    | (?P<jwt>(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*)
    | (?P<aws>\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)
    | (?P<gcp>"type"\s*:\s*"service_account"|\bya29\.[A-Za-z0-9_-]{20,}|\bAIza[A-Za-z0-9_-]{35})
    | (?P<github>\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{22,})
    | (?P<gitlab>\bglpat-[A-Za-z0-9_-]{20,})
    | (?P<slack>\bxox[abeoprs]-[A-Za-z0-9-]{10,})
    | (?P<url>\b[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^/\s:@]{0,256}:[^/\s@]{1,256}@)
    """,
    re.VERBOSE,
)
_HINTS = (
    *("PRIVATE KEY", "LS0tLS1CRUdJTi", "eyJ", "AKIA", "ASIA", "service_account", "ya29.", "AIza", "://"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox"),
)
"""Every match contains one of these: a search for plain text spares nearly all values the expression."""

_LOOKS_LIKE = {
    "key": "a private key",
    "encoded": "an encoded private key",
    "jwt": "a JSON web token",
    "aws": "an AWS access key",
    "gcp": "a Google Cloud credential",
    "github": "a GitHub token",
    "gitlab": "a GitLab token",
    "slack": "a Slack token",
    "url": "a URL with a password",
}

_SEPARATORS = re.compile(r"[^a-z0-9]+")
_CREDENTIAL_ENDINGS = (
    *("token", "password", "passwd", "passphrase", "secret", "secretkey", "secretaccesskey"),
    *("privatekey", "apikey", "keydata", "credential", "credentials"),
)
"""What such a key ends in, lower case and without separators. ``tokenFile``, ``secretName``, ``token-url`` do not."""

_POINTER = re.compile(
    r"""
      (?:vault|file|env|exec|secret|secretref|ref|k8s|kubernetes|arn|aws|awssm|ssm|gcp|gcpsm|azure|azurekeyvault
        |op|keyring|keychain|sops|spiffe|https?|s3|gs):.*
    | (?:~|\.{1,2})?/.*            # a path
    | projects/[^/]+/secrets/.*    # a secret of Google Cloud
    | \$[({\w].* | \{\{.* | <.*>   # a placeholder
    | true | false | none | null
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def inspect(*, spec: Any, annotations: Any) -> list[Finding]:
    """What looks like a credential, one finding a value. Takes any JSON."""
    return [*_in_spec(spec), *_in_annotations(annotations)]


def warnings(findings: list[Finding]) -> list[str]:
    """For people, and bounded: a client cannot make the answer's headers grow without end."""
    shown = [
        f"{path}: looks like {what}; everyone who may read clusters can read it: {_ADVICE}" for path, what in findings
    ]
    if len(shown) > _WARNINGS_LIMIT:
        more = len(shown) - _WARNINGS_LIMIT
        return [*shown[:_WARNINGS_LIMIT], f"{more} more values look like credentials"]
    return shown


def errors(findings: list[Finding]) -> list[FieldError]:
    return [field_errors.forbidden(path, f"looks like {what}; {_ADVICE}") for path, what in findings]


def credential_in(text: str) -> str:
    """What kind of credential ``text`` holds by its looks, empty for none."""
    if len(text) < _SHORTEST or not any(map(text.__contains__, _HINTS)):
        return ""
    for match in _PATTERNS.finditer(text):
        kind = match.lastgroup or ""
        if kind == "jwt" and not _is_token_header(match[0].partition(".")[0]):
            continue
        if kind == "encoded" and b"PRIVATE KEY" not in _decoded(match[0][:96]):
            continue
        return _LOOKS_LIKE[kind]
    return ""


def _in_spec(spec: Any) -> Iterator[Finding]:
    """By looks anywhere but in the CA bundle, which validation judges, and by key in providers' configuration."""
    seen: set[str] = set()
    for place, text in _strings(spec):
        if place[1] != "caBundle" and (what := credential_in(text)):
            seen.add(path := _rendered(place))
            yield Finding(path, what)
    for path, key, value in _provider_config(spec):
        if path not in seen and (what := _by_key(key, value)):
            yield Finding(path, what)


_Place = tuple[Any, str | int]
"""Where a value is: the place of what holds it, and its key or index. A path is only made of it for a finding."""


def _strings(spec: Any) -> Iterator[tuple[_Place, str]]:
    """Walks without recursion: the depth of what is not yet validated is the client's to choose."""
    pending: list[tuple[_Place, Any]] = [((None, "spec"), spec)]
    while pending:
        place, value = pending.pop()
        if type(value) is str:
            if len(value) >= _SHORTEST:
                yield place, value
        elif type(value) is dict:
            pending.extend([((place, name), value[name]) for name in reversed(value)])
        elif type(value) is list:
            pending.extend([((place, index), value[index]) for index in reversed(range(len(value)))])


def _rendered(place: _Place) -> str:
    steps: list[str] = []
    parent: Any = place
    while parent is not None:
        parent, step = parent
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


def _provider_config(spec: Any) -> Iterator[tuple[str, str, str]]:
    """Path, key and value of every entry of every provider's configuration."""
    auth_info = spec.get("authInfo") if isinstance(spec, dict) else None
    providers = auth_info.get("providers") if isinstance(auth_info, dict) else None
    for index, provider in enumerate(providers if isinstance(providers, list) else ()):
        config = provider.get("config") if isinstance(provider, dict) else None
        for key, value in config.items() if isinstance(config, dict) else ():
            if isinstance(value, str):
                yield f"spec.authInfo.providers[{index}].config.{key}", key, value


def _in_annotations(annotations: Any) -> Iterator[Finding]:
    for key, value in annotations.items() if isinstance(annotations, dict) else ():
        if key != LAST_APPLIED and isinstance(value, str) and (what := credential_in(value)):
            yield Finding(f"metadata.annotations[{key}]", what)


def _by_key(key: str, value: str) -> str:
    if not value.strip() or not _SEPARATORS.sub("", key.lower()).endswith(_CREDENTIAL_ENDINGS):
        return ""
    return "" if _POINTER.fullmatch(value.strip()) else "a credential"


def _is_token_header(encoded: str) -> bool:
    try:
        header = orjson.loads(_decoded(encoded.replace("-", "+").replace("_", "/")))
    except orjson.JSONDecodeError:
        return False
    return isinstance(header, dict) and "alg" in header


def _decoded(encoded: str) -> bytes:
    whole = encoded[: len(encoded) // 4 * 4] if len(encoded) % 4 == 1 else encoded + "=" * (-len(encoded) % 4)
    try:
        return base64.b64decode(whole)
    except binascii.Error:
        return b""
