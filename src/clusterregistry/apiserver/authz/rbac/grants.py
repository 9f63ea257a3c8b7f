"""What one user may do by the roles bound to them, made ready for being asked over and over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from clusterregistry.apiserver.authz.interface import NO_OPINION, Attributes, Decision, Verdict
from clusterregistry.apiserver.authz.rbac.rules import Rule

_QUESTIONS_KEPT = 256
"""How many different questions of one user stay answered. Usual ones are as many as verbs on resources."""
_FEW = 8
"""Up to so many rules that name objects are looked through one by one; the names of more are put together."""

_Question = tuple[str, str, str, str]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Grant:
    """One rule, and the decision that it leads to where it allows something."""

    rule: Rule
    decision: Decision


class _Answer:
    """What the rules say to one verb on one resource: for all objects, or for those that are named."""

    __slots__ = ("_named", "_names", "_table", "for_all")

    def __init__(self, grants: Sequence[Grant]) -> None:
        self.for_all = next((each.decision for each in grants if not each.rule.names), None)
        self._named = [(each.rule.names, each.decision) for each in grants if each.rule.names]
        self._names: frozenset[str] | None = None
        # The names of few rules are looked up in the rules, which all users share. Many rules name few objects each.
        many = len(self._named) > _FEW
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


class Grants:
    """The rules of one user, in the order in which they count. Never changed: another policy makes others."""

    __slots__ = ("_answers", "_otherwise", "_paths", "grants", "problems", "revision")

    def __init__(self, grants: Sequence[Grant], problems: Sequence[str] = (), *, revision: int = 0) -> None:
        """``problems`` are what keeps some rules from being known; a user who is refused gets to read them.

        ``revision`` is that of the newest role or binding which counts here.
        """
        self.revision = revision
        self.grants = tuple(grants)
        self.problems = tuple(problems)
        self._otherwise = Decision(Verdict.NO_OPINION, f"RBAC: {aggregated(self.problems)}") if problems else NO_OPINION
        self._answers: dict[_Question, _Answer] = {}
        self._paths: dict[tuple[str, str], Decision] = {}

    def decision(self, attributes: Attributes) -> Decision:
        """ALLOW, or no opinion: RBAC denies nothing."""
        if not attributes.is_resource_request:
            return self._path_decision(attributes.verb, attributes.path)
        question = (attributes.verb, attributes.group, attributes.resource, attributes.subresource)
        answer = self._answers.get(question) or self._answer(question)
        return answer.for_all or answer.for_name(attributes.name) or self._otherwise

    def names(self, *, verb: str, group: str, resource: str) -> frozenset[str]:
        """The objects that rules with resource names allow the verb on."""
        question = (verb, group, resource, "")
        return (self._answers.get(question) or self._answer(question)).names

    def _answer(self, question: _Question) -> _Answer:
        verb, group, resource, subresource = question
        found = [
            each
            for each in self.grants
            if each.rule.allows_on_some(verb, group=group, resource=resource, subresource=subresource)
        ]
        answer = _Answer(found)
        _keep(self._answers, question, answer)
        return answer

    def _path_decision(self, verb: str, path: str) -> Decision:
        known = self._paths.get((verb, path))
        if known is None:
            allowed = (each.decision for each in self.grants if each.rule.allows_path(verb, path))
            known = next(allowed, self._otherwise)
            _keep(self._paths, (verb, path), known)
        return known


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Anybody can ask for anything: what is kept is forgotten rather than let grow."""
    if len(kept) >= _QUESTIONS_KEPT:
        kept.clear()
    kept[key] = value


def aggregated(problems: Sequence[str]) -> str:
    """Several errors as one, the way Kubernetes writes them."""
    different = list(dict.fromkeys(problems))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"
