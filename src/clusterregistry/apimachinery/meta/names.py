"""The syntax of names, label keys and label values, and generated names.

Each check returns its errors, in Kubernetes' own words; none for a valid text.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import NamedTuple

from clusterregistry.apimachinery.bounded_cache import bounded_cache

Messages = tuple[str, ...]

_CACHED = 16384
"""Keys and values repeat across a fleet; beyond this many distinct ones a check is merely slower."""

_SUBDOMAIN_LIMIT = 253
_PART_LIMIT = 63
_GENERATED_BASE_LIMIT = 58
_GENERATED_LETTERS = 5
_GENERATED_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""kube-apiserver's alphabet: no vowels and no 0, 1 or 3, so that no words come out."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_KEY_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY_NAME})?"

_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_key_name = re.compile(_KEY_NAME).fullmatch
_is_value = re.compile(_VALUE).fullmatch

_ENDS = "and must start and end with an alphanumeric character"
_LABEL_MESSAGE = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS} "
    f"(e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_MESSAGE = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_KEY_NAME_MESSAGE = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY_NAME}')"
)
_KEY_MESSAGE = (
    f"a valid label key {_KEY_NAME_MESSAGE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_VALUE_MESSAGE = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)


def size(text: str) -> int:
    """The length in UTF-8, which is what Kubernetes' limits count."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def name_errors(name: str) -> Messages:
    """The errors of an object's name: names are DNS subdomains."""
    return _subdomain_errors(name, unit="characters")


def generate_name_errors(prefix: str) -> Messages:
    """The errors of a name's prefix, which may end in a dash."""
    return name_errors(_masked(prefix))


def label_name_errors(name: str) -> Messages:
    """The errors of a name that must be a DNS label, as those of namespaces."""
    wrong: Messages = () if size(name) <= _PART_LIMIT else (_too_long(_PART_LIMIT, unit="characters"),)
    if _is_label(name):
        return wrong
    return (*wrong, "must not contain dots" if _is_subdomain(name) else _LABEL_MESSAGE)


def label_prefix_errors(prefix: str) -> Messages:
    return label_name_errors(_masked(prefix))


def _masked(prefix: str) -> str:
    """The prefix as kube-apiserver checks it: without a dash at the end, with its last two characters replaced."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def path_segment_errors(name: str) -> Messages:
    """The errors of a name that must be a path segment: the only rule of some kinds."""
    if name in {".", ".."}:
        return (f"may not be '{name}'",)
    return path_segment_prefix_errors(name)


def path_segment_prefix_errors(prefix: str) -> Messages:
    return tuple(f"may not contain '{character}'" for character in "/%" if character in prefix)


class NameRule(NamedTuple):
    """The rules of a kind for names, and for the prefixes of generated names."""

    name: Callable[[str], Messages]
    prefix: Callable[[str], Messages]


LABELS = NameRule(label_name_errors, label_prefix_errors)
SUBDOMAINS = NameRule(name_errors, generate_name_errors)
PATH_SEGMENTS = NameRule(path_segment_errors, path_segment_prefix_errors)


@bounded_cache(_CACHED)
def label_key_errors(key: str) -> Messages:
    """The errors of a label key: ``[PREFIX/]NAME``. The rule also holds for annotation keys and finalizers."""
    prefix, slash, name = key.partition("/")
    if not slash:
        return _key_name_errors(prefix)
    if "/" in name:
        return (_KEY_MESSAGE,)
    if not prefix:
        return ("prefix part must be non-empty", *_key_name_errors(name))
    wrong = tuple(f"prefix part {message}" for message in _subdomain_errors(prefix, unit="bytes"))
    return wrong + _key_name_errors(name)


@bounded_cache(_CACHED)
def label_value_errors(value: str) -> Messages:
    wrong: Messages = ()
    if size(value) > _PART_LIMIT:
        wrong = (_too_long(_PART_LIMIT, unit="bytes"),)
    return wrong if _is_value(value) else (*wrong, _VALUE_MESSAGE)


def generate_name(base: str) -> str:
    """``base``, shortened if need be, and five random letters. Not unique: the caller tries again on a clash."""
    suffix = "".join(secrets.choice(_GENERATED_ALPHABET) for _ in range(_GENERATED_LETTERS))
    return base[:_GENERATED_BASE_LIMIT] + suffix


def _subdomain_errors(value: str, *, unit: str) -> Messages:
    wrong: Messages = ()
    if size(value) > _SUBDOMAIN_LIMIT:
        wrong = (_too_long(_SUBDOMAIN_LIMIT, unit=unit),)
    return wrong if _is_subdomain(value) else (*wrong, _SUBDOMAIN_MESSAGE)


def _key_name_errors(name: str) -> Messages:
    wrong: Messages = ()
    if not name:
        wrong = ("name part must be non-empty",)
    elif size(name) > _PART_LIMIT:
        wrong = ("name part " + _too_long(_PART_LIMIT, unit="bytes"),)
    return wrong if _is_key_name(name) else (*wrong, f"name part {_KEY_NAME_MESSAGE}")


def _too_long(limit: int, *, unit: str) -> str:
    return f"must be no more than {limit} {unit}"
