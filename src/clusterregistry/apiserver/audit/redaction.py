"""Masks credentials in events: values that look like credentials, and values under the name of one.

It errs on the side of masking: logs are copied to places that are not protected like credentials.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote_plus

from clusterregistry.apimachinery.credentials import ENDINGS, names_credential

MASK = "[masked]"

LONGEST_TEXT = 16 * 1024
"""Characters of one text that an event shows."""


def _with_separators(ending: str) -> str:
    """``apikey`` as it is found in a text: ``api-key``, ``api_key``."""
    return ending.replace("key", "[-_]?key[-_]?").removesuffix("[-_]?").removeprefix("[-_]?")


LooksSecret = Callable[[str], str]
"""The kind of credential that a text looks like; empty for none."""

_WORDS = rf"(?:{'|'.join(map(_with_separators, ENDINGS))}|pass)s?"
# A key and its value within a text, as in a kubeconfig, in JSON (quoted once or more), in a query or on a command line.
_ASSIGNED = re.compile(
    rf"""
    ({_WORDS} \\*["']? [ \t]{{0,16}} [:=] [ \t]{{0,16}})
    (?!\[masked)
    (?: [|>][-+0-9]{{0,3}}[ \t]{{0,16}}\r?\n [^\r\n]+    # a block of YAML: at least its first line
      | \\*"(?:[^"\\]|\\[^"])* | '[^']* | [^\s"'\\,;&}}\]]+ )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    r"""(authorization\\*["']?[ \t]{0,16}[:=][ \t]{0,16}+\\*["']?)(?![|>])[^"'\\\r\n&]+""", re.IGNORECASE
)
_BEARER = re.compile(r"\b(bearer|basic)(?:\s|%20|\+){1,16}[^\s\"'\\,;&]+", re.IGNORECASE)
_HINT = re.compile(r"token|pass|pwd|secret|key|credential|bearer|basic|authorization", re.IGNORECASE)
_LONG_KEY = 32
"""Characters: shorter keys, which nearly all are, are not checked."""
_NAMING = ("path", "name", "key")
"""The field with the name of a map's ``value``, as in JSON patches and lists of properties."""


class Masker:
    """Masks texts, queries and JSON."""

    def __init__(self, looks_secret: LooksSecret) -> None:
        self._looks_secret = looks_secret

    def text(self, text: str) -> str:
        """The text with its secrets masked, cut after LONGEST_TEXT characters.

        The kind of credential is detected in the whole text: a token that is cut looks like none. Assignments take
        four times as long to find, so they are masked after the cut.
        """
        if what := self._looks_secret(text):
            return f"[masked: {what}]"
        if len(text) > LONGEST_TEXT:
            return f"{_without_assigned(text[:LONGEST_TEXT])}[{len(text) - LONGEST_TEXT} more characters]"
        return _without_assigned(text)

    def query(self, query: str) -> str:
        """The query with each secret parameter masked, by its name or its value."""
        return "&".join(self._parameter(parameter) for parameter in query.split("&"))

    def json(self, value: Any) -> Any:
        """The value with its secrets masked, a copy. Raises RecursionError for a value that is nested too deeply."""
        if type(value) is str:
            return self.text(value)
        if type(value) is dict:
            return self._map(value)
        if type(value) is list:
            return [self.json(each) for each in value]
        return value

    def _parameter(self, parameter: str) -> str:
        name, equals, value = parameter.partition("=")
        if equals and (names_credential(unquote_plus(name)) or self._is_masked(value)):
            return f"{name}={MASK}"
        return MASK if self._is_masked(parameter) else parameter

    def _is_masked(self, quoted: str) -> bool:
        text = unquote_plus(quoted)
        return bool(self._looks_secret(text)) or _without_assigned(text) != text

    def _map(self, value: Mapping[str, Any]) -> dict[str, Any]:
        masked = {self._key(key): self._value(key, each) for key, each in value.items()}
        if type(value.get("value")) in (str, dict, list):
            called = next((value[name] for name in _NAMING if type(value.get(name)) is str), "")
            masked["value"] = self._value(called.rpartition("/")[2], value["value"])
        return masked

    def _key(self, key: str) -> str:
        """Masks a key: a map with arbitrary keys, such as a provider's configuration, may have a credential as one."""
        what = self._looks_secret(key) if len(key) >= _LONG_KEY else ""
        if what:
            return f"[masked: {what}]"
        return key if len(key) <= LONGEST_TEXT else f"{key[:LONGEST_TEXT]}[{len(key) - LONGEST_TEXT} more characters]"

    def _value(self, key: str, value: Any) -> Any:
        if type(value) in (str, list) and names_credential(key):
            return self._hidden(value)
        return self.json(value)

    def _hidden(self, value: Any) -> Any:
        if type(value) is list:
            return [self._hidden(each) for each in value]
        return MASK if type(value) is str and value else self.json(value)


def _without_assigned(text: str) -> str:
    if not _HINT.search(text):
        return text
    text = _AUTHORIZATION.sub(rf"\1{MASK}", text)  # all of it: the scheme alone would be taken for the value
    return _BEARER.sub(rf"\1 {MASK}", _ASSIGNED.sub(rf"\1{MASK}", text))
