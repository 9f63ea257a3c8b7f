"""What a user may do by rights on sets, plainly. Imports nothing of the server, so as not to share its mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Labels = Mapping[str, str]


def selects(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Whether a label selector, as sets have it, selects an object. None selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels", {})
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _fulfils(each, labels) for each in selector.get("matchExpressions", ())
    )


def _fulfils(expression: Mapping[str, Any], labels: Labels) -> bool:
    has, values = expression["key"] in labels, expression.get("values", ())
    value = labels.get(expression["key"])
    return {
        "Exists": has,
        "DoesNotExist": not has,
        "In": has and value in values,
        "NotIn": not has or value not in values,
    }[str(expression["operator"])]


@dataclass(frozen=True)
class SetRule:
    """Verbs on the members of sets; None: of all."""

    verbs: frozenset[str]
    sets: frozenset[str] | None


@dataclass
class World:
    """Everything that decides about one user, who has no other rights than these."""

    clusters: dict[str, Labels] = field(default_factory=dict)
    sets: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The specs."""
    rules: Sequence[SetRule] = ()
    named: frozenset[str] = frozenset()
    """The clusters that the user may get by their names."""
    bound: bool = True

    def sets_of(self, name: str, labels: Labels) -> set[str]:
        return {
            each
            for each, spec in self.sets.items()
            if name in spec.get("clusters", ()) or selects(spec.get("selector"), labels)
        }

    def with_verb(self, verb: str) -> set[str]:
        """The sets that exist and on which the user has the verb."""
        rules = [rule for rule in self.rules if verb in rule.verbs] if self.bound else []
        return {each for each in self.sets if any(rule.sets is None or each in rule.sets for rule in rules)}

    def visible(self, verb: str = "list") -> set[str] | None:
        """The clusters that a list or watch shows; None: it is refused."""
        names = self.named if self.bound else frozenset[str]()
        sets = self.with_verb(verb)
        if not names and not sets:
            return None
        return {name for name, labels in self.clusters.items() if name in names or sets & self.sets_of(name, labels)}

    def deletable(self) -> set[str] | None:
        """The clusters that deletecollection deletes; None: it is refused."""
        sets = self.with_verb("deletecollection")
        if not sets:
            return None
        return {name for name, labels in self.clusters.items() if sets & self.sets_of(name, labels)}

    def status(self, verb: str, name: str, done: int = 200) -> int:
        """The status of a request for one cluster, which changes no labels."""
        if verb == "get" and self.bound and name in self.named:
            return done if name in self.clusters else 404
        sets = self.with_verb(verb)
        if name in self.clusters:
            return done if sets & self.sets_of(name, self.clusters[name]) else 403
        naming = {each for each, spec in self.sets.items() if name in spec.get("clusters", ())}
        return 404 if sets & naming or (sets and self.with_verb("create")) else 403

    def status_of_move(self, name: str, labels: Labels) -> int:
        """The status of a patch that changes the labels."""
        if (status := self.status("patch", name)) != 200:
            return status
        moved = self.sets_of(name, self.clusters[name]) ^ self.sets_of(name, labels)
        return 200 if moved <= self.with_verb("join") else 403

    def status_of_create(self, name: str, labels: Labels) -> int:
        creating = self.with_verb("create")
        if not creating & self.sets_of(name, labels):
            return 403
        return 409 if name in self.clusters else 201

    def status_of_put(self, name: str, labels: Labels) -> int:
        """The status of a PUT of a cluster that does not exist."""
        both = [self.sets_of(name, labels) & self.with_verb(verb) for verb in ("update", "create")]
        return 201 if all(both) else 403
