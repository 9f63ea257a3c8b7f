"""Says why bytes are not JSON, in the words of Go's encoding/json.

Only a document that orjson has refused comes here: the decoder of a valid one never pays for this.
"""

from __future__ import annotations

import re

from clusterregistry.apimachinery.codecs.decoded import MAX_DEPTH

END_OF_INPUT = "unexpected end of JSON input"
TOO_DEEP = "exceeded max depth"

_BEGIN_VALUE = "looking for beginning of value"
_BEGIN_KEY = "looking for beginning of object key string"

_SPACE = rb"[ \t\r\n]*+"
_PLAIN_STRING = rb'"[^"\\\x00-\x1f]*+"'
_NUMBER = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_PLAIN = rb"(?:%b|%b|true|false|null)" % (_PLAIN_STRING, _NUMBER)

_number = re.compile(_NUMBER).match
_not_space = re.compile(rb"[^ \t\r\n]").search
_not_hexadecimal = re.compile(rb"[^0-9a-fA-F]").search
_end_of_string = re.compile(rb'["\x00-\x1f]|\\(?![/bfnrt]|u[0-9a-fA-F]{4})').search
"""The closing quote or the first wrong byte, where escaped quotes and backslashes are masked."""
# Plain items are skipped in one step each.
_plain_element = re.compile(rb"%b%b%b," % (_SPACE, _PLAIN, _SPACE)).match
_plain_member = re.compile(rb"%b%b%b:%b%b%b," % (_SPACE, _PLAIN_STRING, _SPACE, _SPACE, _PLAIN, _SPACE)).match

_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    "'": "\\'",
}


def syntax_error(body: bytes) -> str | None:
    """Go's message for the first byte that is wrong; None for a document without a wrong byte. Never recurses.

    Go reads a nesting of 10,000, this server one of MAX_DEPTH.
    """
    body += b" "  # as Go does: where a document ends within a literal, a number or an escape, the wrong byte is a space
    try:
        # Of the same length, so that places are the same. A pair of backslashes is never half of another escape.
        _Scanner(body.replace(rb"\\", b"__").replace(rb"\"", b"__")).scan()
    except _WrongByteError as found:
        if found.context == TOO_DEEP:
            return TOO_DEEP
        if found.at >= len(body):
            return END_OF_INPUT
        return f"invalid character {_quoted(body[found.at])} {found.context}"
    return None


class _WrongByteError(Exception):
    """The place of the first wrong byte, and what Go says about it."""

    def __init__(self, at: int, context: str) -> None:
        super().__init__(context)
        self.at = at
        self.context = context


class _Scanner:
    """Walks through one document. Each method begins at ``_at`` and ends behind what it is named after."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0
        self._open: list[bytes] = []
        """The brackets of the maps and lists around this place."""

    def scan(self) -> None:
        """Raises _WrongByteError."""
        self._value()
        while self._open:
            self._item()
        if self._next():
            raise _WrongByteError(self._at, "after top-level value")

    def _next(self) -> bytes:
        """The next byte that is no space; empty at the end of the document."""
        self._at = self._place(_not_space(self._body, self._at))
        return self._body[self._at : self._at + 1]

    def _place(self, found: re.Match[bytes] | None) -> int:
        """Where a pattern was found; the end of the document if it was not."""
        return len(self._body) if found is None else found.start()

    def _item(self) -> None:
        """What follows a value: the end of its map or list, or the next item of that."""
        after = self._next()
        in_list = self._open[-1] == b"["
        if after == (b"]" if in_list else b"}"):
            self._at += 1
            self._open.pop()
        elif after == b",":
            self._at += 1
            self._begin_item()
            self._value()
        else:
            raise _WrongByteError(self._at, "after array element" if in_list else "after object key:value pair")

    def _begin_item(self) -> None:
        """Plain items, then the key of the next member in a map: a value follows."""
        is_list = self._open[-1] == b"["
        plain = _plain_element if is_list else _plain_member
        while (found := plain(self._body, self._at)) is not None:
            self._at = found.end()
        if not is_list:
            self._key()

    def _key(self) -> None:
        if self._next() != b'"':
            raise _WrongByteError(self._at, _BEGIN_KEY)
        self._text()
        if self._next() != b":":
            raise _WrongByteError(self._at, "after object key")
        self._at += 1

    def _value(self) -> None:
        """A scalar, an empty map or list, or the beginning of a map or list with its first item."""
        first = self._next()
        while first and first in b"{[":
            self._at += 1
            if self._next() == (b"]" if first == b"[" else b"}"):
                self._at += 1
                return
            self._open.append(first)
            if len(self._open) > MAX_DEPTH:
                raise _WrongByteError(self._at, TOO_DEEP)
            self._begin_item()
            first = self._next()
        self._scalar(first)

    def _scalar(self, first: bytes) -> None:
        if first == b'"':
            self._text()
        elif first in _LITERALS:
            self._literal(_LITERALS[first])
        elif first and first in b"-0123456789":
            self._number()
        else:
            raise _WrongByteError(self._at, _BEGIN_VALUE)

    def _text(self) -> None:
        body, at = self._body, self._place(_end_of_string(self._body, self._at + 1))
        ending = body[at : at + 1]
        if ending == b'"':
            self._at = at + 1
        elif ending != b"\\":
            raise _WrongByteError(at, "in string literal")
        elif body[at + 1 : at + 2] != b"u":
            raise _WrongByteError(at + 1, "in string escape code")
        else:
            raise _WrongByteError(self._place(_not_hexadecimal(body, at + 2)), r"in \u hexadecimal character escape")

    def _literal(self, literal: bytes) -> None:
        for expected in literal:
            if self._body[self._at : self._at + 1] != bytes((expected,)):
                raise _WrongByteError(self._at, f"in literal {literal.decode()} (expecting '{chr(expected)}')")
            self._at += 1

    def _number(self) -> None:
        body, found = self._body, _number(self._body, self._at)
        if found is None:
            raise _WrongByteError(self._at + 1, "in numeric literal")  # behind the sign
        self._at = at = found.end()
        after = body[at : at + 1]
        has_exponent = b"e" in found[0].lower()
        if after == b"." and b"." not in found[0] and not has_exponent:
            raise _WrongByteError(at + 1, "after decimal point in numeric literal")
        if after and after in b"eE" and not has_exponent:
            signed = body[at + 1 : at + 2] in (b"+", b"-")
            raise _WrongByteError(at + 1 + signed, "in exponent of numeric literal")


def _quoted(byte: int) -> str:
    """As Go quotes a byte, which it takes for a character."""
    character = chr(byte)
    if character in _ESCAPES:
        return f"'{_ESCAPES[character]}'"
    if character.isprintable():
        return f"'{character}'"
    return f"'\\x{byte:02x}'" if byte < 0x80 else f"'\\u{byte:04x}'"  # noqa: PLR2004 - the end of ASCII
