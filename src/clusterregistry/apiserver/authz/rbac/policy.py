"""RBAC: all roles and bindings in memory, and the authorizer that decides from what they grant to a user.

``registry.rbac.policy_informer`` keeps the policy in step with the stored roles and bindings. A request in a namespace
is decided by ClusterRoleBindings and by the RoleBindings of that namespace, any other one by ClusterRoleBindings alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes, Decision, PathRule, ResourceRule, UserRules, Verdict
from clusterregistry.apiserver.authz.rbac.bindings import Binding, BindingIndex
from clusterregistry.apiserver.authz.rbac.grants import NO_GRANTS, Grant, Grants
from clusterregistry.apiserver.authz.rbac.rules import Rule

_CACHED_USERS = 2048
"""Users whose grants are cached; the same number of pairs of a user and a namespace."""

_TRACKED_SUBJECTS = 100_000
"""Users and groups whose last change is known one by one."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class RBACAuthorizer:
    """Allows what the roles bound to a user allow, and has no opinion on anything else."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def authorize(self, attributes: Attributes) -> Decision:
        if attributes.namespace:
            return self._policy.grants_in(attributes.user, attributes.namespace).decide(attributes)
        return self._policy.grants(attributes.user).decide(attributes)

    def rules_of(self, user: User, *, namespace: str = "") -> UserRules:
        grants = self._policy.grants_in(user, namespace)
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

    def names_of(
        self, user: User, *, verb: str, group: str, resource: str, namespace: str | None = ""
    ) -> frozenset[str]:
        """Only names that a rule lists: a rule without names does not show which objects exist."""
        names = self._policy.grants_in(user, namespace or "").names(verb=verb, group=group, resource=resource)
        if namespace is None:
            return names | self._policy.local_rights(user, verb=verb, group=group, resource=resource).keys
        return frozenset(f"{namespace}/{name}" for name in names) if namespace else names

    def namespaces_of(self, user: User, *, verb: str, group: str, resource: str) -> frozenset[str]:
        return self._policy.local_rights(user, verb=verb, group=group, resource=resource).namespaces

    def changed_at(self, user: User, *, in_namespaces: bool = False) -> int:
        return self._policy.changed_at(user, in_namespaces=in_namespaces)

    def granted_at(self, user: User, *, namespace: str = "") -> int:
        return self._policy.grants_in(user, namespace).revision

    async def caught_up(self, revision: int) -> None:
        await self._policy.caught_up(revision)

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        return self._policy.on_change(listener)


@dataclass(frozen=True, slots=True)
class LocalRights:
    """What the RoleBindings of a user allow with a verb on a resource, in all namespaces."""

    keys: frozenset[str]
    """``NAMESPACE/NAME`` of the objects that rules name."""
    namespaces: frozenset[str]
    """The namespaces in which it is allowed with all objects."""


class Policy:
    """Roles and bindings by their keys: ``NAME`` or ``NAMESPACE/NAME``.

    Setting one that is equal to the present one changes nothing.
    """

    def __init__(self) -> None:
        self._roles: dict[str, tuple[Rule, ...]] = {}
        self._bindings: dict[str, Binding] = {}
        self._role_revisions: dict[str, int] = {}
        self._binding_revisions: dict[str, int] = {}
        self._changes = _LastChanges()
        """Those of ClusterRoleBindings and their roles."""
        self._local_changes = _LastChanges()
        """Those of RoleBindings and their roles."""
        self._index = BindingIndex()
        self._by_role: defaultdict[str | None, set[str]] = defaultdict(set)
        self._grants: dict[tuple[str, tuple[str, ...]], Grants] = {}
        self._local_grants: dict[tuple[str, tuple[str, ...], str], Grants] = {}
        self._local_rights: dict[tuple[str, tuple[str, ...], str, str, str], LocalRights] = {}
        self._listeners: dict[object, Callable[[], None]] = {}
        self._wait_for: Callable[[int], Awaitable[None]] | None = None
        self.generation = 0
        """Grows with each change."""

    def grants(self, user: User) -> Grants:
        """The present grants of a user outside of namespaces.

        Costs a look-up if the user had a request since the last change.
        """
        key = (user.name, user.groups)
        known = self._grants.get(key)
        if known is None:
            known = self._grants_of(user)
            _cache(self._grants, key, known)
        return known

    def grants_in(self, user: User, namespace: str) -> Grants:
        """Those in a namespace, which may be none. As in kube-apiserver, ClusterRoleBindings come first."""
        if not namespace or namespace not in self._index:
            return self.grants(user)
        key = (user.name, user.groups, namespace)
        known = self._local_grants.get(key)
        if known is None:
            known = self.grants(user)
            if self._index.bindings_of(user, namespace):
                known = self._grants_of(user, namespace, beyond=known)
            _cache(self._local_grants, key, known)
        return known

    def local_rights(self, user: User, *, verb: str, group: str, resource: str) -> LocalRights:
        """What the user's RoleBindings allow with a verb on a resource, in all namespaces."""
        key = (user.name, user.groups, verb, group, resource)
        known = self._local_rights.get(key)
        if known is None:
            known = self._local_rights_of(user, verb=verb, group=group, resource=resource)
            _cache(self._local_rights, key, known)
        return known

    def role(self, key: str) -> Sequence[Rule] | None:
        """The rules of a role; None if there is no such role."""
        return self._roles.get(key)

    def set_role(self, key: str, rules: Iterable[Rule], *, revision: int) -> None:
        """Adds a role, or replaces its rules."""
        new = tuple(rules)
        if self._roles.get(key) != new:
            self._roles[key] = new
            self._role_revisions[key] = revision
            self._on_role_changed(key, revision)

    def remove_role(self, key: str, *, revision: int) -> None:
        if self._roles.pop(key, None) is not None:
            del self._role_revisions[key]
            self._on_role_changed(key, revision)

    def set_binding(self, key: str, binding: Binding, *, revision: int) -> None:
        """Adds a binding, or replaces the one of this key, whose namespace is that of the binding."""
        if self._bindings.get(key) != binding:
            before = self._unlink(key)
            self._bindings[key] = binding
            self._binding_revisions[key] = revision
            self._by_role[binding.role_key].add(key)
            self._index.add(key, binding)
            self._on_changed(revision, [binding, before] if before else [binding])

    def remove_binding(self, key: str, *, revision: int) -> None:
        before = self._unlink(key)
        if before:
            self._on_changed(revision, [before])

    def _unlink(self, key: str) -> Binding | None:
        """Removes a binding from the indexes and returns it."""
        binding = self._bindings.pop(key, None)
        if binding is None:
            return None
        del self._binding_revisions[key]
        self._by_role[binding.role_key].remove(key)
        if not self._by_role[binding.role_key]:
            del self._by_role[binding.role_key]
        self._index.remove(key, binding)
        return binding

    # Changes and their revisions

    def changed_at(self, user: User, *, in_namespaces: bool = False) -> int:
        """The revision of the last change that may concern a user, as far as it is known.

        Changes of rights within namespaces count only where they matter.
        """
        last = self._changes.last_for(user)
        return max(last, self._local_changes.last_for(user)) if in_namespaces else last

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
        self._local_changes.begin_at(revision)

    def begin_anew(self, revision: int) -> None:
        """The same for a storage that was restored: its revisions may be lower than those known before."""
        self._changes.begin_anew(revision)
        self._local_changes.begin_anew(revision)
        for revisions in (self._role_revisions, self._binding_revisions):
            revisions |= {key: revision for key, known in revisions.items() if known > revision}
        self._grants.clear()
        self._local_grants.clear()

    def _on_role_changed(self, key: str, revision: int) -> None:
        self._on_changed(revision, [self._bindings[each] for each in self._by_role.get(key, ())])

    def _on_changed(self, revision: int, bindings: Iterable[Binding]) -> None:
        self.generation += 1
        for binding in bindings:
            changes = self._local_changes if binding.namespace else self._changes
            for subject in binding.subjects:
                changes.note(revision, user=subject.user, group=subject.group)
            if not binding.namespace:
                self._grants.clear()
        self._local_grants.clear()
        self._local_rights.clear()
        for listener in list(self._listeners.values()):
            listener()

    # From users to bindings to rules

    def _grants_of(self, user: User, namespace: str = "", *, beyond: Grants = NO_GRANTS) -> Grants:
        """What the bindings of one namespace, or those outside of any, grant besides others."""
        grants: list[Grant] = [*beyond.grants]
        problems: list[str] = [*beyond.problems]
        revision = beyond.revision
        for key, position in sorted(self._index.bindings_of(user, namespace).items()):
            binding = self._bindings[key]
            role_key = binding.role_key
            rules = None if role_key is None else self._roles.get(role_key)
            if role_key is None or rules is None:
                problems.append(binding.problem)
                continue
            reason = f"RBAC: allowed by {binding.described(key)} to {binding.subjects[position]}"
            decision = Decision(Verdict.ALLOW, reason)
            grants += [Grant(rule, decision) for rule in rules]
            revision = max(revision, self._binding_revisions[key], self._role_revisions[role_key])
        return Grants(grants, problems, revision=revision)

    def _local_rights_of(self, user: User, *, verb: str, group: str, resource: str) -> LocalRights:
        keys: set[str] = set()
        namespaces: set[str] = set()
        for namespace in self._index.namespaces_of(user):
            for binding in map(self._bindings.__getitem__, self._index.bindings_of(user, namespace)):
                for rule in self._roles.get(binding.role_key or "", ()):
                    if rule.allows_on_some(verb, group=group, resource=resource, subresource=""):
                        keys.update(f"{namespace}/{name}" for name in rule.names if name)
                        if not rule.names:
                            namespaces.add(namespace)
        return LocalRights(frozenset(keys), frozenset(namespaces))


def _cache(cache: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Adds an entry to a full cache by clearing it first."""
    if len(cache) >= _CACHED_USERS:
        cache.clear()
    cache[key] = value


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
