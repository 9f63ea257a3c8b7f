"""Takes out of an event what nobody may read in a log: values that look like credentials or are called so.

It errs on the side of masking: a log is copied to places where nobody expects a credential.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote_plus

MASK = "[masked]"

LONGEST_TEXT = 16 * 1024
"""Characters of one text that an event shows."""

LooksSecret = Callable[[str], str]
"""What kind of credential a text holds by its looks; empty for none."""

_WORDS = r"(?:token|password|passwd|passphrase|secret|(?:private|access|api)[-_]?key|key[-_]?data|credential)s?"
_SECRET_KEY = re.compile(
    r"(?:token|password|passwd|passphrase|secret|secretkey|privatekey|accesskey|apikey|keydata|credential)s?\Z"
)
_SEPARATORS = re.compile(r"[^a-z0-9]+")
# A key and its value within a text, as in a kubeconfig, in JSON (quoted once or more), in a query or on a command line.
_ASSIGNED = re.compile(
    rf"""
    ({_WORDS} \\*["']? [ \t]{{0,16}} [:=] [ \t]{{0,16}})
    (?: [|>][-+0-9]{{0,3}}[ \t]{{0,16}}\r?\n [^\r\n]+    # a block of YAML: at least its first line
      | \\*"(?:[^"\\]|\\[^"])* | '[^']* | [^\s"'\\,;&}}\]]+ )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BEARER = re.compile(r"\b(bearer|basic)(?:\s|%20|\+){1,16}[^\s\"'\\,;&]+", re.IGNORECASE)
_HINT = re.compile(r"token|passw|passphrase|secret|key|credential|bearer|basic", re.IGNORECASE)
_NAMING = ("path", "name", "key")
"""What a map calls the key of its ``value``: JSON patches, lists of properties."""


class Masker:
    """Masks texts, queries and JSON."""

    def __init__(self, looks_secret: LooksSecret) -> None:
        self._looks_secret = looks_secret

    def text(self, text: str) -> str:
        """The text without what is secret in it; of a long one the beginning.

        What it looks like is found out from all of it, for a token that is cut looks like none. What is assigned in it
        takes four times as long to find, and is masked up to the cut just as well.
        """
        if what := self._looks_secret(text):
            return f"[masked: {what}]"
        if len(text) > LONGEST_TEXT:
            return f"{_without_assigned(text[:LONGEST_TEXT])}[{len(text) - LONGEST_TEXT} more characters]"
        return _without_assigned(text)

    def query(self, query: str) -> str:
        """A query whose parameters are judged one by one, by their names and their values."""
        return "&".join(self._parameter(parameter) for parameter in query.split("&"))

    def json(self, value: Any) -> Any:
        """The same, a copy where something is masked. Raises RecursionError for what is nested too deep."""
        if type(value) is str:
            return self.text(value)
        if type(value) is dict:
            return self._map(value)
        if type(value) is list:
            return [self.json(each) for each in value]
        return value

    def _parameter(self, parameter: str) -> str:
        name, equals, value = parameter.partition("=")
        if equals and (is_secret_key(unquote_plus(name)) or self._is_masked(value)):
            return f"{name}={MASK}"
        return MASK if self._is_masked(parameter) else parameter

    def _is_masked(self, quoted: str) -> bool:
        text = unquote_plus(quoted)
        return bool(self._looks_secret(text)) or _without_assigned(text) != text

    def _map(self, value: Mapping[str, Any]) -> dict[str, Any]:
        masked = {key: self._value(key, each) for key, each in value.items()}
        if type(value.get("value")) in (str, dict, list):
            called = next((value[name] for name in _NAMING if type(value.get(name)) is str), "")
            masked["value"] = self._value(called.rpartition("/")[2], value["value"])
        return masked

    def _value(self, key: str, value: Any) -> Any:
        if type(value) in (str, list) and is_secret_key(key):
            return self._hidden(value)
        return self.json(value)

    def _hidden(self, value: Any) -> Any:
        if type(value) is list:
            return [self._hidden(each) for each in value]
        return MASK if type(value) is str and value else self.json(value)


def _without_assigned(text: str) -> str:
    if not _HINT.search(text):
        return text
    return _BEARER.sub(rf"\1 {MASK}", _ASSIGNED.sub(rf"\1{MASK}", text))


def is_secret_key(key: str) -> bool:
    """Whether a key, such as ``access_token`` or ``client-key-data``, is one of a credential."""
    lower = key.lower()
    return bool(_HINT.search(lower) and _SECRET_KEY.search(_SEPARATORS.sub("", lower)))
