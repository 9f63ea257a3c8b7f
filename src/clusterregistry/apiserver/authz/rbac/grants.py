"""What one user is granted: the rules in the order in which they count, and the decisions that they make.

Nothing here knows where the rules come from: ``policy`` finds those that count in a namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from clusterregistry.apiserver.authz.interface import NO_OPINION, Attributes, Decision, Verdict
from clusterregistry.apiserver.authz.rbac.rules import Rule

_CACHED_ANSWERS = 256
"""Answers that are cached for one user. Usual ones are as many as verbs on resources."""

_FEW_RULES = 8
"""Rules with resource names that are searched one by one; the names of more rules are put into one table."""

_Question = tuple[str, str, str, str]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Grant:
    """One rule, and the decision for a request that it allows."""

    rule: Rule
    decision: Decision


class Grants:
    """The rules of one user, in the order in which they count. Immutable: a changed policy makes new ones."""

    __slots__ = ("_answers", "_otherwise", "_paths", "grants", "problems", "revision")

    def __init__(self, grants: Sequence[Grant], problems: Sequence[str] = (), *, revision: int = 0) -> None:
        """``problems`` are the reasons why some rules are not known; the message of a refusal has them.

        ``revision`` is that of the newest role or binding of the user.
        """
        self.revision = revision
        self.grants = tuple(grants)
        self.problems = tuple(problems)
        self._otherwise = Decision(Verdict.NO_OPINION, f"RBAC: {aggregated(self.problems)}") if problems else NO_OPINION
        self._answers: dict[_Question, _Answer] = {}
        self._paths: dict[tuple[str, str], Decision] = {}

    def decide(self, attributes: Attributes) -> Decision:
        """ALLOW, or no opinion: RBAC denies nothing."""
        if not attributes.is_resource_request:
            return self._decide_path(attributes.verb, attributes.path)
        question = (attributes.verb, attributes.group, attributes.resource, attributes.subresource)
        answer = self._answers.get(question) or self._answer(question)
        return answer.for_all or answer.for_name(attributes.name) or self._otherwise

    def names(self, *, verb: str, group: str, resource: str) -> frozenset[str]:
        """The objects that rules with resource names allow the verb on."""
        question = (verb, group, resource, "")
        return (self._answers.get(question) or self._answer(question)).names

    def _answer(self, question: _Question) -> _Answer:
        verb, group, resource, subresource = question
        answer = _Answer(
            [
                each
                for each in self.grants
                if each.rule.allows_on_some(verb, group=group, resource=resource, subresource=subresource)
            ]
        )
        _cache(self._answers, question, answer)
        return answer

    def _decide_path(self, verb: str, path: str) -> Decision:
        known = self._paths.get((verb, path))
        if known is None:
            allowed = (each.decision for each in self.grants if each.rule.allows_path(verb, path))
            known = next(allowed, self._otherwise)
            _cache(self._paths, (verb, path), known)
        return known


NO_GRANTS = Grants(())


class _Answer:
    """The decisions of the rules on one verb and resource: for all objects, or for those that are named."""

    __slots__ = ("_named", "_names", "_table", "for_all")

    def __init__(self, grants: Sequence[Grant]) -> None:
        self.for_all = next((each.decision for each in grants if not each.rule.names), None)
        self._named = [(each.rule.names, each.decision) for each in grants if each.rule.names]
        self._names: frozenset[str] | None = None
        # The names of few rules are looked up in the rules, which all users share. Many rules name few objects each.
        many = len(self._named) > _FEW_RULES
        self._table = {name: decision for names, decision in reversed(self._named) for name in names} if many else None

    @property
    def names(self) -> frozenset[str]:
        """All objects that are named. No object has the empty name, though a rule may."""
        if self._names is None:
            self._names = frozenset().union(*(names for names, _ in self._named)) - {""}
        return self._names

    def for_name(self, name: str) -> Decision | None:
        if self._table is not None:
            return self._table.get(name)
        for names, decision in self._named:
            if name in names:
                return decision
        return None


def _cache(cache: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Adds an entry to a full cache by clearing it first: clients choose the keys."""
    if len(cache) >= _CACHED_ANSWERS:
        cache.clear()
    cache[key] = value


def aggregated(problems: Sequence[str]) -> str:
    """Several errors as one message, as Kubernetes writes them."""
    different = list(dict.fromkeys(problems))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"
