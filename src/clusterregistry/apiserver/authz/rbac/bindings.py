"""Bindings of roles to subjects, and the index that finds the bindings of a user.

A ClusterRoleBinding has the key ``NAME``, a RoleBinding ``NAMESPACE/NAME``. So have ClusterRoles and Roles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apiserver.authn.user import User

CLUSTER_ROLE = "ClusterRole"
ROLE = "Role"

_Positions = dict[str, int]
"""The keys of bindings, each with the position of the subject."""

_Index = dict[str, dict[str, _Positions]]
"""By the name of a user or group, then by namespace; the bindings of ClusterRoles are those of the namespace ''."""


def namespace_of(key: str) -> str:
    """The namespace in the key of a role or binding; '' for a ClusterRole or ClusterRoleBinding."""
    return key.rpartition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A role and the subjects that it is bound to; ``namespace`` is empty for a ClusterRoleBinding."""

    role_kind: str
    role: str
    subjects: tuple[Subject, ...]
    namespace: str = ""

    @classmethod
    def from_wire(cls, binding: Mapping[str, Any], namespace: str = "") -> Self:
        """From the validated wire form of a ClusterRoleBinding, or of a RoleBinding in a namespace."""
        role = binding.get("roleRef") or {}
        return cls(
            role_kind=role.get("kind") or "",
            role=role.get("name") or "",
            subjects=tuple(Subject.from_wire(each, namespace) for each in binding.get("subjects") or ()),
            namespace=namespace,
        )

    @property
    def role_key(self) -> str | None:
        """The key of the role; None for a reference that no role can be found by."""
        if self.role_kind == CLUSTER_ROLE:
            return self.role
        return f"{self.namespace}/{self.role}" if self.role_kind == ROLE and self.namespace else None

    @property
    def problem(self) -> str:
        """kube-apiserver's error for a binding whose role does not exist."""
        if self.role_kind in (CLUSTER_ROLE, ROLE):
            return f"{self.role_kind.lower()}.rbac.authorization.k8s.io {quoted(self.role)} not found"
        return f"unsupported role reference kind: {quoted(self.role_kind)}"

    def described(self, key: str) -> str:
        """The binding and its role, as kube-apiserver describes them in the reason of a decision."""
        kind, name = "ClusterRoleBinding", key
        if self.namespace:
            kind, name = "RoleBinding", f"{key.removeprefix(self.namespace + '/')}/{self.namespace}"
        return f"{kind} {quoted(name)} of {self.role_kind} {quoted(self.role)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A user, group or service account. As in kube-apiserver, validation alone checks its API group."""

    kind: str
    name: str
    namespace: str = ""

    @classmethod
    def from_wire(cls, subject: Mapping[str, Any], binding_namespace: str = "") -> Self:
        """A service account without a namespace is one of the namespace of the binding."""
        return cls(
            kind=subject.get("kind") or "",
            name=subject.get("name") or "",
            namespace=subject.get("namespace") or binding_namespace,
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


class BindingIndex:
    """Finds the bindings of a user in a namespace, and the namespaces in which a user has bindings."""

    def __init__(self) -> None:
        self._by_user: _Index = {}
        self._by_group: _Index = {}
        self._counts: dict[str, int] = {}

    def __contains__(self, namespace: str) -> bool:
        """Whether there are bindings in a namespace."""
        return namespace in self._counts

    def bindings_of(self, user: User, namespace: str) -> _Positions:
        """The bindings of a user, each with the position of the first subject that is the user or one of its groups."""
        found = dict(self._by_user.get(user.name, {}).get(namespace, {}))
        for group in user.groups:
            for key, position in self._by_group.get(group, {}).get(namespace, {}).items():
                found[key] = min(position, found.get(key, position))
        return found

    def namespaces_of(self, user: User) -> set[str]:
        """The namespaces in which a user has RoleBindings."""
        found = set(self._by_user.get(user.name, ()))
        for group in user.groups:
            found.update(self._by_group.get(group, ()))
        found.discard("")
        return found

    def add(self, key: str, binding: Binding) -> None:
        namespace = binding.namespace
        self._counts[namespace] = self._counts.get(namespace, 0) + 1
        for position, (index, name) in enumerate(self._places(binding)):
            if index is not None:
                index.setdefault(name, {}).setdefault(namespace, {}).setdefault(key, position)

    def remove(self, key: str, binding: Binding) -> None:
        namespace = binding.namespace
        self._counts[namespace] -= 1
        if not self._counts[namespace]:
            del self._counts[namespace]
        for index, name in self._places(binding):
            if index is not None:
                _remove(index, name, namespace=namespace, key=key)

    def _places(self, binding: Binding) -> Iterator[tuple[_Index | None, str]]:
        """The index and the name of each subject; None for a subject that matches no user."""
        for subject in binding.subjects:
            if subject.user is not None:
                yield self._by_user, subject.user
            elif subject.group is not None:
                yield self._by_group, subject.group
            else:
                yield None, ""


def _remove(index: _Index, name: str, *, namespace: str, key: str) -> None:
    """Removes a binding of a subject, which may be listed twice, and what is empty without it."""
    positions = index.get(name, {}).get(namespace)
    if positions is None:
        return
    positions.pop(key, None)
    if not positions:
        del index[name][namespace]
    if not index[name]:
        del index[name]
