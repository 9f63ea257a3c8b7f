"""RBAC: all roles and bindings in memory, what one user is granted by them, and the authorizer that decides from that.

``registry.rbac.policy_informer`` keeps the policy in step with the stored roles and bindings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import (
    NO_OPINION,
    Attributes,
    Decision,
    PathRule,
    ResourceRule,
    UserRules,
    Verdict,
)
from clusterregistry.apiserver.authz.rbac.rules import Rule

_CACHED_USERS = 2048
"""Users whose grants are cached."""

_CACHED_ANSWERS = 256
"""Answers that are cached for one user. Usual ones are as many as verbs on resources."""

_FEW_RULES = 8
"""Rules with resource names that are searched one by one; the names of more rules are put into one table."""

_TRACKED_SUBJECTS = 100_000
"""Users and groups whose last change is known one by one."""

_CLUSTER_ROLE = "ClusterRole"

_BindingIndex = dict[str, dict[str, int]]
"""By the name of a user or group: its bindings, each with the position of the subject."""

_Question = tuple[str, str, str, str]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class RBACAuthorizer:
    """Allows what the roles bound to a user allow, and has no opinion on anything else."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def authorize(self, attributes: Attributes) -> Decision:
        return self._policy.grants(attributes.user).decide(attributes)

    def rules_of(self, user: User) -> UserRules:
        grants = self._policy.grants(user)
        rules = [each.rule for each in grants.grants]
        return UserRules(
            resource_rules=tuple(
                ResourceRule(
                    verbs=each.verbs,
                    api_groups=each.api_groups,
                    resources=each.resources,
                    resource_names=each.resource_names,
                )
                for each in rules
                if each.resources
            ),
            path_rules=tuple(
                PathRule(verbs=each.verbs, non_resource_urls=each.non_resource_urls)
                for each in rules
                if each.non_resource_urls
            ),
            problems=grants.problems,
        )

    def names_of(self, user: User, *, verb: str, group: str, resource: str) -> frozenset[str]:
        """Only names that a rule lists: a rule without names does not show which objects exist."""
        return self._policy.grants(user).names(verb=verb, group=group, resource=resource)

    def changed_at(self, user: User) -> int:
        return self._policy.changed_at(user)

    def granted_at(self, user: User) -> int:
        return self._policy.grants(user).revision

    async def caught_up(self, revision: int) -> None:
        await self._policy.caught_up(revision)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        return self._policy.on_change(listener)


class Policy:
    """Roles and bindings by their names. Setting one that is equal to the present one changes nothing."""

    def __init__(self) -> None:
        self._roles: dict[str, tuple[Rule, ...]] = {}
        self._bindings: dict[str, Binding] = {}
        self._role_revisions: dict[str, int] = {}
        self._binding_revisions: dict[str, int] = {}
        self._changes = _LastChanges()
        self._by_user: _BindingIndex = {}
        self._by_group: _BindingIndex = {}
        self._by_role: defaultdict[str, set[str]] = defaultdict(set)
        self._grants: dict[tuple[str, tuple[str, ...]], Grants] = {}
        self._listeners: dict[object, Callable[[], None]] = {}
        self._wait_for: Callable[[int], Awaitable[None]] | None = None
        self.generation = 0
        """Grows with each change."""

    def grants(self, user: User) -> Grants:
        """The present grants of a user. Costs a look-up if the user had a request since the last change."""
        key = (user.name, user.groups)
        known = self._grants.get(key)
        if known is None:
            if len(self._grants) >= _CACHED_USERS:
                self._grants.clear()
            known = self._grants[key] = self._grants_of(user)
        return known

    def role(self, name: str) -> Sequence[Rule] | None:
        """The rules of a role; None if there is no such role."""
        return self._roles.get(name)

    def set_role(self, name: str, rules: Iterable[Rule], *, revision: int) -> None:
        """Adds a role, or replaces its rules."""
        new = tuple(rules)
        if self._roles.get(name) != new:
            self._roles[name] = new
            self._role_revisions[name] = revision
            self._on_role_changed(name, revision)

    def remove_role(self, name: str, *, revision: int) -> None:
        if self._roles.pop(name, None) is not None:
            del self._role_revisions[name]
            self._on_role_changed(name, revision)

    def set_binding(self, name: str, binding: Binding, *, revision: int) -> None:
        """Adds a binding, or replaces the one of this name."""
        if self._bindings.get(name) != binding:
            before = self._unlink(name)
            self._bindings[name] = binding
            self._binding_revisions[name] = revision
            self._link(name, binding)
            self._on_changed(revision, [binding, before] if before else [binding])

    def remove_binding(self, name: str, *, revision: int) -> None:
        before = self._unlink(name)
        if before:
            self._on_changed(revision, [before])

    # Changes and their revisions

    def changed_at(self, user: User) -> int:
        """The revision of the last change that may concern a user, as far as it is known."""
        return self._changes.last_for(user)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls the listener after each change. Returns an idempotent function that ends that."""
        key = object()
        self._listeners[key] = listener

        def end() -> None:
            self._listeners.pop(key, None)

        return end

    def follow(self, wait_for: Callable[[int], Awaitable[None]]) -> None:
        """Sets how ``caught_up`` waits for a revision. Without it every revision counts as reached."""
        self._wait_for = wait_for

    async def caught_up(self, revision: int) -> None:
        """Returns once all changes up to a revision count. Raises what the function given to ``follow`` raises."""
        if self._wait_for is not None:
            await self._wait_for(revision)

    def begin_at(self, revision: int) -> None:
        """Marks changes before this revision as unknown: after a start, or when changes were missed."""
        self._changes.begin_at(revision)

    def begin_anew(self, revision: int) -> None:
        """The same for a storage that was restored: its revisions may be lower than those known before."""
        self._changes.begin_anew(revision)
        for revisions in (self._role_revisions, self._binding_revisions):
            revisions |= {name: revision for name, known in revisions.items() if known > revision}
        self._grants.clear()

    def _on_role_changed(self, name: str, revision: int) -> None:
        self._on_changed(revision, [self._bindings[each] for each in self._by_role.get(name, ())])

    def _on_changed(self, revision: int, bindings: Iterable[Binding]) -> None:
        self.generation += 1
        for binding in bindings:
            for subject in binding.subjects:
                self._changes.note(revision, user=subject.user, group=subject.group)
        self._grants.clear()
        for listener in list(self._listeners.values()):
            listener()

    # From users to bindings to rules

    def _grants_of(self, user: User) -> Grants:
        grants: list[Grant] = []
        problems: list[str] = []
        revision = 0
        for name, position in sorted(self._bindings_of(user).items()):
            binding = self._bindings[name]
            rules = self._roles.get(binding.role) if binding.role_kind == _CLUSTER_ROLE else None
            if rules is None:
                problems.append(f"clusterrole.rbac.authorization.k8s.io {quoted(binding.role)} not found")
                continue
            role, subject = quoted(binding.role), binding.subjects[position]
            reason = f"RBAC: allowed by ClusterRoleBinding {quoted(name)} of ClusterRole {role} to {subject}"
            decision = Decision(Verdict.ALLOW, reason)
            grants += [Grant(rule, decision) for rule in rules]
            revision = max(revision, self._binding_revisions[name], self._role_revisions[binding.role])
        return Grants(grants, problems, revision=revision)

    def _bindings_of(self, user: User) -> dict[str, int]:
        """The bindings of a user, each with the position of the first subject that is the user or one of its groups."""
        found = dict(self._by_user.get(user.name, {}))
        for group in user.groups:
            for name, position in self._by_group.get(group, {}).items():
                found[name] = min(position, found.get(name, position))
        return found

    def _link(self, name: str, binding: Binding) -> None:
        self._by_role[binding.role].add(name)
        for position, (index, key) in enumerate(self._index_keys(binding)):
            if index is not None:
                index.setdefault(key, {}).setdefault(name, position)

    def _unlink(self, name: str) -> Binding | None:
        """Removes a binding from the indexes and returns it."""
        binding = self._bindings.pop(name, None)
        if binding is None:
            return None
        del self._binding_revisions[name]
        self._by_role[binding.role].remove(name)
        if not self._by_role[binding.role]:
            del self._by_role[binding.role]
        for index, key in self._index_keys(binding):
            if index is not None and key in index:
                index[key].pop(name, None)
                if not index[key]:
                    del index[key]
        return binding

    def _index_keys(self, binding: Binding) -> Iterator[tuple[_BindingIndex | None, str]]:
        """The index and key of each subject; None for a subject that matches no user."""
        for subject in binding.subjects:
            if subject.user is not None:
                yield self._by_user, subject.user
            elif subject.group is not None:
                yield self._by_group, subject.group
            else:
                yield None, ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A role and the subjects that it is bound to."""

    role_kind: str
    role: str
    subjects: tuple[Subject, ...]

    @classmethod
    def from_wire(cls, binding: Mapping[str, Any]) -> Self:
        """From the validated wire form of a ClusterRoleBinding."""
        role = binding.get("roleRef") or {}
        return cls(
            role_kind=role.get("kind") or "",
            role=role.get("name") or "",
            subjects=tuple(Subject.from_wire(each) for each in binding.get("subjects") or ()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A user, group or service account. As in kube-apiserver, validation alone checks its API group."""

    kind: str
    name: str
    namespace: str = ""

    @classmethod
    def from_wire(cls, subject: Mapping[str, Any]) -> Self:
        return cls(
            kind=subject.get("kind") or "", name=subject.get("name") or "", namespace=subject.get("namespace") or ""
        )

    @property
    def user(self) -> str | None:
        """The name of the user, if the subject is one."""
        if self.kind == "User":
            return self.name
        if self.kind == "ServiceAccount" and self.namespace:
            return f"system:serviceaccount:{self.namespace}:{self.name}"
        return None

    @property
    def group(self) -> str | None:
        """The name of the group, if the subject is one."""
        return self.name if self.kind == "Group" else None

    def __str__(self) -> str:
        # kube-apiserver writes the namespace of a service account last.
        name = f"{self.name}/{self.namespace}" if self.kind == "ServiceAccount" else self.name
        return f"{self.kind} {quoted(name)}"


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


class _LastChanges:
    """The revision of the last change for each user and group. An unknown one counts as changed at the beginning."""

    def __init__(self) -> None:
        self._begin = 0
        self._last = 0
        self._users: dict[str, int] = {}
        self._groups: dict[str, int] = {}

    def begin_at(self, revision: int) -> None:
        self._begin = max(self._begin, revision)

    def begin_anew(self, revision: int) -> None:
        self._users.clear()
        self._groups.clear()
        self._begin = self._last = revision

    def note(self, revision: int, *, user: str | None, group: str | None) -> None:
        """Records a change for a user or a group."""
        self._last = max(self._last, revision)
        if len(self._users) + len(self._groups) >= _TRACKED_SUBJECTS:
            self._users.clear()
            self._groups.clear()
            self.begin_at(self._last)
        if user is not None:
            self._users[user] = max(revision, self._users.get(user, 0))
        if group is not None:
            self._groups[group] = max(revision, self._groups.get(group, 0))

    def last_for(self, user: User) -> int:
        of_groups = (self._groups.get(group, 0) for group in user.groups)
        return max(self._begin, self._users.get(user.name, 0), *of_groups)
