"""Field selectors: ``metadata.name=a,spec.x!=b``, as ``k8s.io/apimachinery/pkg/fields`` parses them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.meta.selectors import SelectorError, check_length, check_number

NAME = "metadata.name"
NAMESPACE = "metadata.namespace"

ReadField = Callable[[str], str]
"""Reads the value of a field from one object; empty where the object has none."""

_TERM = re.compile(r"(?:[^\\,]|\\.|\\\Z)*", re.DOTALL)
_OPERATOR = re.compile("!=|==|=")
_ESCAPED = re.compile(r"\\(.?)|([,=])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Term:
    """One comparison; ``equal`` is False for ``!=``."""

    field: str
    equal: bool
    value: str

    def matches(self, read: ReadField) -> bool:
        return (read(self.field) == self.value) is self.equal

    def __str__(self) -> str:
        escaped = re.sub(r"[\\,=]", lambda found: "\\" + found.group(), self.value)
        return f"{self.field}{'=' if self.equal else '!='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """All of its terms must hold. Equal selectors compare and hash alike."""

    terms: tuple[Term, ...]

    @property
    def empty(self) -> bool:
        return not self.terms

    @property
    def name(self) -> str | None:
        """The only name that can match; None if the selector does not require one."""
        return next((term.value for term in self.terms if term.equal and term.field == NAME), None)

    @property
    def narrowing(self) -> Mapping[str, Collection[str]]:
        """The fields, besides those of the metadata, that must have one value, each with that value."""
        return {term.field: (term.value,) for term in self.terms if term.equal and term.field not in _OF_THE_METADATA}

    def matches(self, read: ReadField) -> bool:
        """Whether an object is selected."""
        return all(term.matches(read) for term in self.terms)

    def renamed(self, names: Mapping[str, str]) -> FieldSelector:
        """The selector with other names of fields, where they are other names."""
        if all(names.get(term.field, term.field) == term.field for term in self.terms):
            return self
        return FieldSelector(
            tuple(Term(names.get(term.field, term.field), term.equal, term.value) for term in self.terms)
        )

    def with_name(self, name: str) -> FieldSelector:
        """The selector, narrowed to one name."""
        return FieldSelector((*self.terms, Term(NAME, equal=True, value=name)))

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


EVERYTHING = FieldSelector(())
_OF_THE_METADATA = (NAME, NAMESPACE)


def parse_field_selector(text: str, supported: Collection[str] | None = (NAME,)) -> FieldSelector:
    """The selector that ``text`` spells. Raises SelectorError, also for a field not ``supported`` (None: all are)."""
    selector = _parse(text) if text else EVERYTHING
    for term in selector.terms:
        if supported is not None and term.field not in supported:
            raise SelectorError(f"field label not supported: {term.field}")
    return selector


@bounded_cache(1024)
def _parse(text: str) -> FieldSelector:
    check_length(text)
    parts = sorted({part for part in _split_terms(text) if part})
    check_number(len(parts))
    return FieldSelector(tuple(_parse_term(text, part) for part in parts))


def _split_terms(text: str) -> list[str]:
    """The parts between commas; an escaped comma is data."""
    parts, start = [], 0
    while True:
        match = _TERM.match(text, start)
        end = match.end() if match else start
        parts.append(text[start:end])
        if end >= len(text):
            return parts
        start = end + 1


def _parse_term(text: str, part: str) -> Term:
    operator = _OPERATOR.search(part)
    if operator is None:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
    return Term(part[: operator.start()], operator.group() != "!=", _unescaped(part[operator.end() :]))


def _unescaped(value: str) -> str:
    return _ESCAPED.sub(_literal, value)


def _literal(match: re.Match[str]) -> str:
    escaped, bare = match.groups()
    if bare:
        # The number is intended: Go prints the rune with %v.
        raise SelectorError(f"invalid field selector: unescaped character in value: {ord(bare)}")
    if escaped not in ("\\", ",", "="):
        raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
    return str(escaped)
