"""RBAC as an authorizer: from a policy to decisions, lists of rules and names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes, Decision, PathRule, ResourceRule, UserRules, Verdict
from clusterregistry.apiserver.authz.rbac.grants import Grant, Grants
from clusterregistry.apiserver.authz.rbac.rules import Rule

_MOST = 100_000
"""Of how many users and groups the last change is known one by one."""


class Changes:
    """The last change for each user and group. What is not known counts as changed: that only makes more work."""

    def __init__(self) -> None:
        self._begin = 0
        self._last = 0
        self._users: dict[str, int] = {}
        self._groups: dict[str, int] = {}

    def begin_at(self, revision: int) -> None:
        """What came before this revision is not known."""
        self._begin = max(self._begin, revision)

    def begin_anew(self, revision: int) -> None:
        """The same where revisions begin anew, as in a storage that was restored: those told before say nothing."""
        self._users.clear()
        self._groups.clear()
        self._begin = self._last = revision

    def note(self, revision: int, *, user: str | None, group: str | None) -> None:
        """Something changed for a user or a group."""
        self._last = max(self._last, revision)
        if len(self._users) + len(self._groups) >= _MOST:
            self._users.clear()
            self._groups.clear()
            self.begin_at(self._last)
        if user is not None:
            self._users[user] = max(revision, self._users.get(user, 0))
        if group is not None:
            self._groups[group] = max(revision, self._groups.get(group, 0))

    def last_for(self, user: User) -> int:
        """The revision of the last change that may concern a user."""
        of_groups = (self._groups.get(group, 0) for group in user.groups)
        return max(self._begin, self._users.get(user.name, 0), *of_groups)


_USERS_KEPT = 2048
"""Of how many users what they may do is kept at hand."""
_CLUSTER_ROLE = "ClusterRole"

_Places = dict[str, dict[str, int]]
"""By the name of a user or group: the bindings it is in, and as which subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """To whom a role is bound. As in kube-apiserver its API group is for validation to check."""

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
        """The name of the user that is meant, if one is."""
        if self.kind == "User":
            return self.name
        if self.kind == "ServiceAccount" and self.namespace:
            return f"system:serviceaccount:{self.namespace}:{self.name}"
        return None

    @property
    def group(self) -> str | None:
        """The name of the group that is meant, if one is."""
        return self.name if self.kind == "Group" else None

    def __str__(self) -> str:
        # kube-apiserver writes the namespace of a service account last.
        name = f"{self.name}/{self.namespace}" if self.kind == "ServiceAccount" else self.name
        return f"{self.kind} {quoted(name)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A role, and to whom it is bound."""

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


class Policy:
    """Roles and bindings by their names. Setting what is there already changes nothing."""

    def __init__(self) -> None:
        self._roles: dict[str, tuple[Rule, ...]] = {}
        self._bindings: dict[str, Binding] = {}
        self._role_revisions: dict[str, int] = {}
        self._binding_revisions: dict[str, int] = {}
        self._changes = Changes()
        self._by_user: _Places = {}
        self._by_group: _Places = {}
        self._by_role: defaultdict[str, set[str]] = defaultdict(set)
        self._grants: dict[tuple[str, tuple[str, ...]], Grants] = {}
        self._listeners: dict[object, Callable[[], None]] = {}
        self._wait_for: Callable[[int], Awaitable[None]] | None = None
        self.generation = 0
        """Grows with each change."""

    def set_role(self, name: str, rules: Iterable[Rule], *, revision: int) -> None:
        """A role is there from now on, with these rules."""
        new = tuple(rules)
        if self._roles.get(name) != new:
            self._roles[name] = new
            self._role_revisions[name] = revision
            self._role_changed(name, revision)

    def remove_role(self, name: str, *, revision: int) -> None:
        if self._roles.pop(name, None) is not None:
            del self._role_revisions[name]
            self._role_changed(name, revision)

    def set_binding(self, name: str, binding: Binding, *, revision: int) -> None:
        """A binding is there from now on, instead of any of this name before."""
        if self._bindings.get(name) != binding:
            before = self._unlink(name)
            self._bindings[name] = binding
            self._binding_revisions[name] = revision
            self._link(name, binding)
            self._changed(revision, [binding, before] if before else [binding])

    def remove_binding(self, name: str, *, revision: int) -> None:
        before = self._unlink(name)
        if before:
            self._changed(revision, [before])

    def role(self, name: str) -> Sequence[Rule] | None:
        """The rules of a role; None when there is no such role."""
        return self._roles.get(name)

    def follow(self, wait_for: Callable[[int], Awaitable[None]]) -> None:
        """Says how to wait until all changes up to a revision have been set here. Without it they always have."""
        self._wait_for = wait_for

    async def caught_up(self, revision: int) -> None:
        """Returns once all changes up to a revision count. Raises what who keeps the roles raises."""
        if self._wait_for is not None:
            await self._wait_for(revision)

    def begin_at(self, revision: int) -> None:
        """Says that what came before this revision is not known: after a restart, or when changes were missed."""
        self._changes.begin_at(revision)

    def begin_anew(self, revision: int) -> None:
        """Says the same of a storage that was read anew. Its revisions may be lower than those told before."""
        self._changes.begin_anew(revision)
        for revisions in (self._role_revisions, self._binding_revisions):
            revisions |= {name: revision for name, known in revisions.items() if known > revision}
        self._grants.clear()

    def changed_at(self, user: User) -> int:
        """The revision of the last change that may concern a user, as far as it is known."""
        return self._changes.last_for(user)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Calls the listener after each change. Returns what ends that; calling it again does nothing."""
        key = object()
        self._listeners[key] = listener

        def end() -> None:
            self._listeners.pop(key, None)

        return end

    def grants(self, user: User) -> Grants:
        """What a user may do by now. Costs a look-up for whoever was here before since the last change."""
        key = (user.name, user.groups)
        known = self._grants.get(key)
        if known is None:
            if len(self._grants) >= _USERS_KEPT:
                self._grants.clear()
            known = self._grants[key] = self._compiled(user)
        return known

    def _compiled(self, user: User) -> Grants:
        grants: list[Grant] = []
        problems: list[str] = []
        revision = 0
        for name, place in sorted(self._places(user).items()):
            binding = self._bindings[name]
            rules = self._rules(binding)
            if rules is None:
                problems.append(f"clusterrole.rbac.authorization.k8s.io {quoted(binding.role)} not found")
                continue
            grants += _bound(rules, name, binding, binding.subjects[place])
            revision = max(revision, self._binding_revisions[name], self._role_revisions[binding.role])
        return Grants(grants, problems, revision=revision)

    def _rules(self, binding: Binding) -> Sequence[Rule] | None:
        return self._roles.get(binding.role) if binding.role_kind == _CLUSTER_ROLE else None

    def _places(self, user: User) -> dict[str, int]:
        """The bindings that concern a user, and the first subject of each that does."""
        found = dict(self._by_user.get(user.name, {}))
        for group in user.groups:
            for name, place in self._by_group.get(group, {}).items():
                found[name] = min(place, found.get(name, place))
        return found

    def _link(self, name: str, binding: Binding) -> None:
        self._by_role[binding.role].add(name)
        for place, (index, key) in enumerate(self._index_keys(binding)):
            if index is not None:
                index.setdefault(key, {}).setdefault(name, place)

    def _unlink(self, name: str) -> Binding | None:
        """The binding that was there."""
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

    def _index_keys(self, binding: Binding) -> Iterator[tuple[_Places | None, str]]:
        """Where each subject is found; None for one that nobody can be."""
        for subject in binding.subjects:
            if subject.user is not None:
                yield self._by_user, subject.user
            elif subject.group is not None:
                yield self._by_group, subject.group
            else:
                yield None, ""

    def _role_changed(self, name: str, revision: int) -> None:
        self._changed(revision, [self._bindings[each] for each in self._by_role.get(name, ())])

    def _changed(self, revision: int, bindings: Iterable[Binding]) -> None:
        self.generation += 1
        for binding in bindings:
            for subject in binding.subjects:
                self._changes.note(revision, user=subject.user, group=subject.group)
        self._grants.clear()
        for listener in list(self._listeners.values()):
            listener()


def _bound(rules: Sequence[Rule], name: str, binding: Binding, subject: Subject) -> list[Grant]:
    reason = f"RBAC: allowed by ClusterRoleBinding {quoted(name)} of ClusterRole {quoted(binding.role)} to {subject}"
    decision = Decision(Verdict.ALLOW, reason)
    return [Grant(rule, decision) for rule in rules]


class RBACAuthorizer:
    """Allows what the roles bound to a user allow, and has no opinion on anything else."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def authorize(self, attributes: Attributes) -> Decision:
        return self._policy.grants(attributes.user).decision(attributes)

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
        """Only names that a rule spells out: who may get whatever they can name has not been shown any."""
        return self._policy.grants(user).names(verb=verb, group=group, resource=resource)

    def changed_at(self, user: User) -> int:
        return self._policy.changed_at(user)

    def granted_at(self, user: User) -> int:
        return self._policy.grants(user).revision

    async def caught_up(self, revision: int) -> None:
        await self._policy.caught_up(revision)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        return self._policy.on_change(listener)
