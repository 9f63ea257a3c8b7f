"""Takes a JSON web token apart, more strictly than the libraries do: what two readers could read differently is none.

Nothing that comes from here is to be believed before ``keys`` has checked the signature.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

_COMPACT = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)", re.ASCII)


class Refused(Exception):  # noqa: N818 - what happens to the token
    """A token that is not good; the message says why, and holds nothing that would be of use with another."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token whose signature nobody has checked yet."""

    text: str
    header: dict[str, Any]
    claims: dict[str, Any]

    @property
    def issuer(self) -> object:
        return self.claims.get("iss")

    @property
    def algorithm(self) -> object:
        return self.header.get("alg")

    @property
    def key_id(self) -> str:
        """Empty when the token names no key."""
        value = self.header.get("kid", "")
        if not isinstance(value, str):
            raise Refused("its kid is no text")
        return value


def parse(text: str) -> Token | None:
    """The token in a text of a bounded length; None for what is no JSON web token. Never raises."""
    parts = _COMPACT.fullmatch(text)
    if parts is None:
        return None
    try:
        return Token(text, _json_object(parts[1]), _json_object(parts[2]))
    except (ValueError, RecursionError):
        return None


def _json_object(part: str) -> dict[str, Any]:
    content = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    # The last character may hold bits that mean nothing: only one of its spellings is the token's.
    if base64.urlsafe_b64encode(content).rstrip(b"=") != part.encode():
        raise ValueError(part)
    document = json.loads(content.decode(), object_pairs_hook=_without_repetitions, parse_constant=_refuse)
    if not isinstance(document, dict):
        raise ValueError(part)  # noqa: TRY004 - one kind of error for what is no token
    return document


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two equal keys one reader takes the first and another the last: neither is right."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is there twice")
    return members


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity, which are no JSON
