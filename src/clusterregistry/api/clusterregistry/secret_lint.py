"""The secret lint: finds credentials in objects that many users may read.

A registry holds pointers to credentials, never credentials. The lint finds common mistakes: values anywhere in the
spec, labels and annotations that match the pattern of a credential, and values in the configuration of an
authentication provider whose key names a credential. It proves no absence, and no finding shows the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from clusterregistry.api.clusterregistry.credential_patterns import SHORTEST, find_credential, finder_for
from clusterregistry.api.clusterregistry.v1alpha1.validation import ca_bundle_error
from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.credentials import names_credential
from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Holds the whole object again: a credential in it is reported at its own path, if it is still there."""

_WARNINGS_LIMIT = 10
_ADVICE = "store a pointer instead, such as a secret's name or a file's path, and revoke what was sent"


Find = Callable[[str], str]
"""Returns the kind of credential that a text holds; empty for none."""


class Finding(NamedTuple):
    """``what`` the value at ``path`` looks like."""

    path: str
    what: str


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


def inspect(*, spec: Any = None, labels: Any = None, annotations: Any = None) -> list[Finding]:
    """Finds values that look like credentials, one finding each. Takes any JSON."""
    find = finder_for(_texts([spec, labels, annotations, _config_keys(spec)]))
    if find is None:  # as nearly always: then the paths of texts do not matter
        return list(_by_keys(spec))
    in_maps = [
        *_in_map("metadata.labels", labels, find),
        *_in_map("metadata.annotations", annotations, find),
    ]
    return [*_in_spec(spec, find), *in_maps] or _left_behind(annotations, find)


def warnings(findings: list[Finding]) -> list[str]:
    """The warnings of findings, at most ten: a client cannot make the headers of an answer grow without bound."""
    shown = [
        f"{path}: looks like {what}; everyone who may read clusters can read it: {_ADVICE}" for path, what in findings
    ]
    if len(shown) > _WARNINGS_LIMIT:
        more = len(shown) - _WARNINGS_LIMIT
        return [*shown[:_WARNINGS_LIMIT], f"{more} more values look like credentials"]
    return shown


def errors(findings: list[Finding]) -> list[FieldError]:
    return [field_errors.forbidden(path, f"looks like {what}; {_ADVICE}") for path, what in findings]


def _texts(values: list[Any]) -> list[str]:
    """All texts in JSON values, however short. Appends nested values to ``values``."""
    texts: list[str] = []
    for value in values:  # grows as it is walked: without recursion, as in ``_strings``
        if type(value) is str:
            texts.append(value)
        elif type(value) is dict:
            values.extend(value.values())
        elif type(value) is list:
            values.extend(value)
    return texts


def _in_spec(spec: Any, find: Find) -> Iterator[Finding]:
    """By looks anywhere, and by key in providers' configuration."""
    yield from _in_keys(spec, find)
    seen: set[str] = set()
    for place, text in _strings("spec", spec):
        if what := _in_bundle(text) if place[1] == "caBundle" else find(text):
            seen.add(path := _rendered(place))
            yield Finding(path, what)
    yield from _by_keys(spec, seen)


def _in_keys(spec: Any, find: Find) -> Iterator[Finding]:
    """Credentials that are keys of a provider's configuration. The path of such a finding does not contain the key."""
    for path, config in _provider_configs(spec):
        if what := next(filter(None, map(find, config)), ""):
            yield Finding(path, f"{what} as a key")


def _by_keys(spec: Any, seen: Collection[str] = ()) -> Iterator[Finding]:
    for config_path, config in _provider_configs(spec):
        for key, value in config.items():
            if isinstance(value, str) and (what := _by_key(key, value)):
                path = f"{config_path}.{_shown(key)}"
                if path not in seen:
                    yield Finding(path, what)


@bounded_cache(256, longest=32 * 1024)
def _in_bundle(text: str) -> str:
    """Validation refuses other mistakes, such as a private key. Cached as there: a fleet shares few authorities."""
    return "" if ca_bundle_error(text) else find_credential(text)


_Place = tuple[Any, str | int]
"""The place of a value: the place of its container, and its key or index. Only a finding makes a path of it."""


def _strings(name: str, value: Any) -> Iterator[tuple[_Place, str]]:
    """All longer texts with their places. Without recursion: the client chooses the depth of an unvalidated object."""
    pending: list[tuple[_Place, Any]] = [((None, name), value)]
    while pending:
        place, value = pending.pop()
        if type(value) is str:
            if len(value) >= SHORTEST:
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
        steps.append(f"[{step}]" if isinstance(step, int) else f".{_shown(step)}")
    return "".join(reversed(steps)).removeprefix(".")


def _shown(key: str) -> str:
    """A key in a path; one that holds a credential is masked."""
    return "[masked]" if find_credential(key) else key


def _config_keys(spec: Any) -> list[Any]:
    return [key for _, config in _provider_configs(spec) for key in config]


def _provider_configs(spec: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and configuration of every provider that has one."""
    auth_info = spec.get("authInfo") if isinstance(spec, dict) else None
    providers = auth_info.get("providers") if isinstance(auth_info, dict) else None
    for index, provider in enumerate(providers if isinstance(providers, list) else ()):
        config = provider.get("config") if isinstance(provider, dict) else None
        if isinstance(config, dict):
            yield f"spec.authInfo.providers[{index}].config", config


def _in_map(path: str, texts: Any, find: Find) -> Iterator[Finding]:
    for key, value in texts.items() if isinstance(texts, dict) else ():
        if key != LAST_APPLIED and isinstance(value, str) and (what := find(value)):
            yield Finding(f"{path}[{key}]", what)


def _left_behind(annotations: Any, find: Find) -> list[Finding]:
    """Credentials that only the last applied configuration still holds."""
    text = annotations.get(LAST_APPLIED) if isinstance(annotations, dict) else None
    what = find(text) if isinstance(text, str) else ""
    return [Finding(f"metadata.annotations[{LAST_APPLIED}]", what)] if what else []


def _by_key(key: str, value: str) -> str:
    if not value.strip() or not names_credential(key):
        return ""
    return "" if _POINTER.fullmatch(value.strip()) else "a credential"
