"""Label selectors: ``env=prod,tier in (a,b),!legacy``, as ``k8s.io/apimachinery/pkg/labels`` parses them.

The grammar and the messages are Kubernetes'; a parsed selector is one function over a label mapping.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import label_key_errors, label_value_errors
from clusterregistry.apimachinery.meta.selectors import SelectorError, check_length, check_number

Labels = Mapping[str, str]
Matcher = Callable[[Labels], bool]

_BINARY = ("in", "notin", "=", "==", "!=", "gt", "lt")
_INT64 = range(-(2**63), 2**63)
_INTEGER = re.compile(r"[+-]?[0-9]+").fullmatch
_NO_LABELS: Labels = {}
_NEGATIVE = ("!=", "notin", "!")
"""The operators that hold for labels without the key."""

_MANY = 8
"""Requirements from which on those are looked up that the labels are about: 100 of them take 1 us instead of 50."""

_INT64_DIGITS = 64
"""A label value has at most 63 characters; this only bounds the conversion."""


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One condition on one key. ``operator`` is one of = != in notin > < exists and ! (absent)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


def _match_of(requirements: tuple[Requirement, ...]) -> Matcher:
    if len(requirements) < _MANY:
        return _all_of([_matcher(each) for each in requirements])
    needed = frozenset(each.key for each in requirements if each.operator not in _NEGATIVE)
    by_key: dict[str, list[Matcher]] = {}
    for each in requirements:
        by_key.setdefault(each.key, []).append(_matcher(each))

    def match(labels: Labels) -> bool:
        if not labels.keys() >= needed:
            return False
        # Others than those on present keys hold: they are negative.
        return all(matcher(labels) for key in by_key.keys() & labels.keys() for matcher in by_key[key])

    return match


def _all_of(matchers: list[Matcher]) -> Matcher:
    if not matchers:
        return lambda _labels: True
    if len(matchers) == 1:
        return matchers[0]
    return lambda labels: all(matcher(labels) for matcher in matchers)


def _matcher(requirement: Requirement) -> Matcher:
    key, values = requirement.key, frozenset(requirement.values)
    first = requirement.values[0] if requirement.values else ""
    match requirement.operator:
        case "=":
            return lambda labels: labels.get(key) == first
        case "!=":
            return lambda labels: labels.get(key) != first
        case "in":
            return lambda labels: labels.get(key) in values
        case "notin":
            return lambda labels: labels.get(key) not in values
        case "exists":
            return lambda labels: key in labels
        case "!":
            return lambda labels: key not in labels
        case ">":
            bound = int(first)
            return lambda labels: (number := _int64(labels.get(key))) is not None and number > bound
        case _:
            bound = int(first)
            return lambda labels: (number := _int64(labels.get(key))) is not None and number < bound


def _int64(text: str | None) -> int | None:
    if text is None or len(text) > _INT64_DIGITS or not _INTEGER(text):
        return None
    number = int(text)
    return number if number in _INT64 else None


class LabelSelector:
    """All of its requirements must hold; equal ones count once. Equal selectors compare and hash alike."""

    __slots__ = ("_match", "requirements")

    def __init__(self, requirements: tuple[Requirement, ...]) -> None:
        self.requirements = tuple(sorted(set(requirements)))
        self._match = _match_of(self.requirements)

    @property
    def empty(self) -> bool:
        return not self.requirements

    @property
    def narrowing(self) -> dict[str, tuple[str, ...]]:
        """The labels that must have one of some values: enough to narrow a search by an index, not to select."""
        return {r.key: r.values for r in reversed(self.requirements) if r.operator in ("=", "in")}

    @property
    def is_one_narrowing(self) -> bool:
        """Whether the selector is one such requirement: then the index finds exactly the selected objects."""
        return len(self.requirements) == 1 and self.requirements[0].operator in ("=", "in")

    def matches(self, labels: Labels | None) -> bool:
        return self._match(labels or _NO_LABELS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabelSelector) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"LabelSelector({str(self)!r})"


@bounded_cache(4096)
def parse_label_selector(text: str) -> LabelSelector:
    """The selector that ``text`` spells; an empty text selects everything. Raises SelectorError."""
    check_length(text)
    return LabelSelector(_Parser(text).requirements())


EVERYTHING = LabelSelector(())


class _Token(NamedTuple):
    kind: str
    text: str


_END = _Token("end", "")
# A NUL ends a token and is swallowed with it, and at the start of one it ends the text: so does Go's lexer.
_LEXEME = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])\0?|([^\0=!(),<> \t\r\n]+)\0?)?")


def _tokens(text: str) -> list[_Token]:
    tokens, position = [], 0
    while match := _LEXEME.match(text, position):
        symbol, word = match.groups()
        if symbol is None and word is None:
            break
        tokens.append(_Token(symbol, symbol) if symbol else _Token(word if word in ("in", "notin") else "word", word))
        position = match.end()
    return [*tokens, _END]


class _Parser:
    """Recursive descent over the tokens. ``in`` and ``notin`` are words except where an operator is due."""

    def __init__(self, text: str) -> None:
        self._rest = _tokens(text)[::-1]

    def requirements(self) -> tuple[Requirement, ...]:
        """Each of them once."""
        found: dict[Requirement, None] = {}
        while self._peek() != "end":
            if self._peek() not in ("word", "!"):
                raise SelectorError(f"found '{self._next().text}', expected: !, identifier, or 'end of string'")
            found[self._requirement()] = None
            check_number(len(found))
            self._separator()
        return tuple(found)

    def _peek(self) -> str:
        kind = self._rest[-1].kind
        return "word" if kind in ("in", "notin") else kind

    def _next(self) -> _Token:
        return self._rest.pop() if len(self._rest) > 1 else self._rest[0]

    def _separator(self) -> None:
        if self._peek() == "end":
            return
        token = self._next()
        if token.kind != ",":
            raise SelectorError(f"found '{token.text}', expected: ',' or 'end of string'")
        if self._peek() not in ("word", "!"):
            raise SelectorError(f"found '{self._next().text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!" and bool(self._next())
        key = self._key()
        if absent:
            return Requirement(key, "!")
        if self._peek() in ("end", ","):
            return Requirement(key, "exists")
        operator = self._operator()
        values = self._set() if operator in ("in", "notin") else {self._value()}
        return _checked(Requirement(key, operator, tuple(sorted(values))))

    def _key(self) -> str:
        kind, token = self._peek(), self._next()
        if kind != "word":
            raise _unparsed(f"found '{token.text}', expected: identifier")
        if wrong := label_key_errors(token.text):
            raise _unparsed(str(field_errors.invalid("<nil>", token.text, "; ".join(wrong))))
        return token.text

    def _operator(self) -> str:
        token = self._next()
        if token.kind not in ("in", "notin", "=", "==", "!=", ">", "<"):
            raise _unparsed(f"found '{token.text}', expected: {', '.join(_BINARY)}")
        return "=" if token.kind == "==" else token.kind

    def _value(self) -> str:
        if self._peek() in ("end", ","):
            return ""
        kind, token = self._peek(), self._next()
        if kind != "word":
            raise _unparsed(f"found '{token.text}', expected: identifier")
        return token.text

    def _set(self) -> set[str]:
        opening = self._next()
        if opening.kind != "(":
            raise _unparsed(f"found '{opening.text}' expected: '('")
        if self._peek() == ")":
            self._next()
            return {""}
        if self._peek() not in ("word", ","):
            raise _unparsed(f"found '{self._next().text}', expected: ',', ')' or identifier")
        values = self._members()
        self._next()
        return values

    def _members(self) -> set[str]:
        """The values up to the closing parenthesis, which stays. Nothing between commas is the empty value."""
        values: set[str] = set()
        while True:
            kind, token = self._peek(), self._next()
            if kind == "word":
                values.add(token.text)
                if self._peek() not in (",", ")"):
                    raise _unparsed(f"found '{self._next().text}', expected: ',' or ')'")
            elif kind == ",":
                if not values or self._peek() in (",", ")"):
                    values.add("")
            else:
                raise _unparsed(f"found '{token.text}', expected: ',', or identifier")
            if self._peek() == ")":
                return values


def _checked(requirement: Requirement) -> Requirement:
    wrong: list[FieldError] = []
    for index, value in enumerate(requirement.values):
        if requirement.operator in (">", "<") and _int64(value) is None:
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            wrong.append(field_errors.invalid(f"values[{index}]", value, detail))
    for index, value in enumerate(requirement.values):
        if messages := label_value_errors(value):
            path = f"values[{index}][{requirement.key}]"
            wrong.append(field_errors.invalid(path, value, "; ".join(messages)))
    if wrong:
        raise _unparsed(field_errors.aggregate(wrong))
    return requirement


def _unparsed(message: str) -> SelectorError:
    return SelectorError(f"unable to parse requirement: {message}")
