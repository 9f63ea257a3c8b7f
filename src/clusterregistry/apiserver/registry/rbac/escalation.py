"""Admission against privilege escalation: a user can grant only rights that the user has, by a role or by a binding.

As in kube-apiserver, members of ``system:masters`` are exempt, and users with the verb ``escalate`` on the role that
they write, or ``bind`` on the role that they bind. In a namespace, the rights that count are those in that namespace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from clusterregistry.api.rbac import GROUP
from clusterregistry.api.rbac.v1 import VERSION
from clusterregistry.api.rbac.v1.types import CLUSTER_ROLE_KIND, ROLE_KIND
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.user import MASTERS, User
from clusterregistry.apiserver.authz.interface import Attributes, Authorizer, decided
from clusterregistry.apiserver.authz.rbac.bindings import Binding
from clusterregistry.apiserver.authz.rbac.coverage import escalation_message, not_covered
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.authz.rbac.rules import ANY, Rule, rules_from_wire
from clusterregistry.apiserver.registry.errors import api_error
from clusterregistry.apiserver.storage.errors import StorageError

Object = dict[str, Any]

CLUSTER_ROLES = "clusterroles"
CLUSTER_ROLE_BINDINGS = "clusterrolebindings"
ROLES = "roles"
ROLE_BINDINGS = "rolebindings"
RESOURCES = (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
"""The plurals of roles and bindings."""

_ROLES_BY_KIND = {CLUSTER_ROLE_KIND: CLUSTER_ROLES, ROLE_KIND: ROLES}

_EVERYTHING = (
    Rule(verbs=(ANY,), api_groups=(ANY,), resources=(ANY,)),
    Rule(verbs=(ANY,), non_resource_urls=(ANY,)),
)
_COLLECTOR_FIELDS = frozenset(("finalizers", "ownerReferences", "managedFields", "selfLink", "resourceVersion"))


class _Escalation:
    def __init__(
        self,
        policy: Policy,
        authorizer: Authorizer,
        *,
        resource: str,
        current_revision: Callable[[], Awaitable[int]],
    ) -> None:
        """``current_revision`` returns that of the storage, and raises StorageError."""
        self._policy, self._authorizer, self._current_revision = policy, authorizer, current_revision
        self._resource = resource
        """The resource that is written."""

    async def _may(self, verb: str, *, user: User, roles: str, name: str, namespace: str) -> bool:
        """Whether a user has a verb on a role that allows granting rights that the user does not have."""
        if MASTERS in user.groups:
            return True
        await self._catch_up()
        attributes = Attributes(
            user=user,
            verb=verb,
            is_resource_request=True,
            group=GROUP,
            version=VERSION,
            resource=roles,
            name=name,
            namespace=namespace,
        )
        return (await decided(self._authorizer, attributes)).allowed

    async def _catch_up(self) -> None:
        """Waits until the policy has what other replicas have written: a right that was just lost cannot be granted.

        As in kube-apiserver, which for this reads roles and bindings from the storage, and not from its informers.
        Raises 503 and 504.
        """
        try:
            await self._policy.caught_up(await self._current_revision())
        except StorageError as error:
            raise api_error(error) from error

    def _check(self, obj: Object, wanted: Iterable[Rule], *, user: User) -> None:
        """Refuses to grant rights that the user does not have in the namespace of the object. Raises 403."""
        grants = self._policy.grants_in(user, _namespace(obj))
        if missing := not_covered(wanted, held=[grant.rule for grant in grants.grants]):
            raise self._refused(obj, escalation_message(user, missing, grants.problems))

    def _refused(self, obj: Object, detail: str) -> errors.APIError:
        name = obj["metadata"].get("name", "")
        return errors.forbidden(group=GROUP, resource=self._resource, name=name, detail=detail)


class RoleEscalation(_Escalation):
    """For Roles and ClusterRoles: the user must have all their rules.

    A ClusterRole that aggregates others may come to have any.
    """

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:
        """Raises 403, and 503 and 504 if the present rights are not known."""
        if _is_garbage_collection(obj, old):
            return
        if await self._may("escalate", user=user, roles=self._resource, name=name, namespace=_namespace(obj)):
            return
        self._check(obj, rules_from_wire(obj["rules"]), user=user)
        if "aggregationRule" in obj or (old is not None and "aggregationRule" in old):
            self._check_everything(obj, user=user)

    def _check_everything(self, obj: Object, *, user: User) -> None:
        if not_covered(_EVERYTHING, held=[grant.rule for grant in self._policy.grants(user).grants]):
            raise self._refused(obj, "must have cluster-admin privileges to use the aggregationRule")


class BindingEscalation(_Escalation):
    """For RoleBindings and ClusterRoleBindings: the user must have all rules of the role."""

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:  # noqa: ARG002 - the port's
        """Raises 403, 503 and 504, and 404 for a missing role, whose rules are not known."""
        namespace, role_ref = _namespace(obj), obj["roleRef"]
        binding = Binding(role_kind=role_ref["kind"], role=role_ref["name"], subjects=(), namespace=namespace)
        if binding.role_key is None:
            return  # validation refuses it
        roles = _ROLES_BY_KIND[role_ref["kind"]]
        if _is_garbage_collection(obj, old):
            return
        if await self._may("bind", user=user, roles=roles, name=role_ref["name"], namespace=namespace):
            return
        rules = self._policy.role(binding.role_key)
        if rules is None:
            # As in kube-apiserver: the message names the resource that is written.
            raise errors.not_found(group=GROUP, resource=self._resource, name=role_ref["name"])
        self._check(obj, rules, user=user)


ADMISSIONS: Mapping[str, type[RoleEscalation | BindingEscalation]] = {
    CLUSTER_ROLES: RoleEscalation,
    ROLES: RoleEscalation,
    CLUSTER_ROLE_BINDINGS: BindingEscalation,
    ROLE_BINDINGS: BindingEscalation,
}
"""The admission of each resource, by its plural."""


def _namespace(obj: Object) -> str:
    """The namespace of an object; '' for one that belongs to none."""
    namespace: str = obj["metadata"].get("namespace", "")
    return namespace


def _is_garbage_collection(obj: Object, old: Object | None) -> bool:
    """Whether the update changes only fields of garbage collection: that grants nothing."""
    return old is not None and _without_collector_fields(obj) == _without_collector_fields(old)


def _without_collector_fields(obj: Object) -> Object:
    kept = {name: value for name, value in obj["metadata"].items() if name not in _COLLECTOR_FIELDS}
    return {**obj, "metadata": kept}
