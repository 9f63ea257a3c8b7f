"""Placeholders in texts of ``access.yaml``, which the object of a cluster fills.

They are ``{name}``, ``{clusterID}`` and ``{config.KEY}``. A filled text stays one argument or one name: there is no
shell, and values are bounded. Other braces stand for themselves, so that an argument may be JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MAX_VALUE = 1024
"""Characters of the value of a placeholder."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z][A-Za-z0-9._-]*)\}")
_PLAIN = re.compile(r"[A-Za-z0-9._:/@,-]+", re.ASCII)
_CONFIG = "config."
NAMES = ("name", "clusterID")


class PlaceholderError(Exception):
    """The object of a cluster has no usable value for a placeholder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceholderValues:
    """What a cluster fills placeholders with. ``config`` is that of the auth provider that the rule matches."""

    name: str
    cluster_id: str = ""
    config: Mapping[str, str] = field(default_factory=dict)


def unknown_placeholders(text: str) -> Iterator[str]:
    """The placeholders of a text that do not exist."""
    for name in _PLACEHOLDER.findall(text):
        if name not in NAMES and not (name.startswith(_CONFIG) and len(name) > len(_CONFIG)):
            yield name


def fill(text: str, values: PlaceholderValues, *, is_code: bool = False) -> str:
    """The text with the values in place. Raises PlaceholderError.

    A value at the beginning of the text must not begin with a dash: a command would take it for an option. In the code
    of a shell (``is_code``), which the operator wrote, values are of characters that mean nothing to it.
    """

    def value_of(found: re.Match[str]) -> str:
        value = _value(found[1], values)
        if is_code and not _PLAIN.fullmatch(value):
            raise PlaceholderError(f"the value of {{{found[1]}}} has characters that mean something to a shell")
        if found.start() == 0 and value.startswith("-"):
            raise PlaceholderError(f"the value of {{{found[1]}}} begins with a dash, as an option of a command does")
        return value

    return _PLACEHOLDER.sub(value_of, text)


def _value(name: str, values: PlaceholderValues) -> str:
    if name == "name":
        value, where = values.name, "metadata.name"
    elif name == "clusterID":
        value, where = values.cluster_id, "spec.clusterID"
    else:
        key = name.removeprefix(_CONFIG)
        value, where = values.config.get(key, ""), f'"{key}" in the config of its auth provider'
    if not value:
        raise PlaceholderError(f"the cluster has no {where}, which {{{name}}} stands for")
    if len(value) > MAX_VALUE or not value.isprintable():
        raise PlaceholderError(f"the value of {{{name}}} is longer than {MAX_VALUE} characters or not printable")
    return value
