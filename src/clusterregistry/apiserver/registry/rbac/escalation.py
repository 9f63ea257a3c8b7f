"""Admission against privilege escalation: a user can grant only rights that the user has, by a role or by a binding.

As in kube-apiserver, members of ``system:masters`` are exempt, and users with the verb ``escalate`` on the role that
they write, or ``bind`` on the role that they bind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from clusterregistry.api.rbac import GROUP
from clusterregistry.api.rbac.v1 import VERSION
from clusterregistry.api.rbac.v1.types import CLUSTER_ROLE_KIND
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.user import MASTERS, User
from clusterregistry.apiserver.authz.interface import Attributes, Authorizer, decided
from clusterregistry.apiserver.authz.rbac.coverage import escalation_message, not_covered
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.authz.rbac.rules import ANY, Rule, rules_from_wire
from clusterregistry.apiserver.registry.errors import api_error
from clusterregistry.apiserver.storage.errors import StorageError

Object = dict[str, Any]

ROLES = "clusterroles"
BINDINGS = "clusterrolebindings"

_EVERYTHING = (
    Rule(verbs=(ANY,), api_groups=(ANY,), resources=(ANY,)),
    Rule(verbs=(ANY,), non_resource_urls=(ANY,)),
)
_COLLECTOR_FIELDS = frozenset(("finalizers", "ownerReferences", "managedFields", "selfLink", "resourceVersion"))


class _Escalation:
    def __init__(
        self, policy: Policy, authorizer: Authorizer, *, current_revision: Callable[[], Awaitable[int]]
    ) -> None:
        """``current_revision`` returns that of the storage, and raises StorageError."""
        self._policy, self._authorizer, self._current_revision = policy, authorizer, current_revision

    async def _may(self, verb: str, *, user: User, name: str) -> bool:
        """Whether a user has a verb that allows granting rights that the user does not have."""
        if MASTERS in user.groups:
            return True
        await self._catch_up()
        attributes = Attributes(
            user=user, verb=verb, is_resource_request=True, group=GROUP, version=VERSION, resource=ROLES, name=name
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

    def _missing(self, user: User, wanted: Iterable[Rule]) -> list[Rule]:
        return not_covered(wanted, held=[grant.rule for grant in self._policy.grants(user).grants])


class RoleEscalation(_Escalation):
    """For ClusterRoles: the user must have all their rules. A role that aggregates others may come to have any."""

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:
        """Raises 403, and 503 and 504 if the present rights are not known."""
        if _is_garbage_collection(obj, old) or await self._may("escalate", user=user, name=name):
            return
        if missing := self._missing(user, rules_from_wire(obj["rules"])):
            raise _refused(ROLES, obj, escalation_message(user, missing))
        aggregates = "aggregationRule" in obj or (old is not None and "aggregationRule" in old)
        if aggregates and self._missing(user, _EVERYTHING):
            raise _refused(ROLES, obj, "must have cluster-admin privileges to use the aggregationRule")


class BindingEscalation(_Escalation):
    """For ClusterRoleBindings: the user must have all rules of the role."""

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:  # noqa: ARG002 - the port's
        """Raises 403, 503 and 504, and 404 for a missing role, whose rules are not known."""
        role_ref = obj["roleRef"]
        if role_ref["kind"] != CLUSTER_ROLE_KIND:
            return  # validation refuses it
        if _is_garbage_collection(obj, old) or await self._may("bind", user=user, name=role_ref["name"]):
            return
        rules = self._policy.role(role_ref["name"])
        if rules is None:
            # As in kube-apiserver: the message names the resource that is written.
            raise errors.not_found(group=GROUP, resource=BINDINGS, name=role_ref["name"])
        if missing := self._missing(user, rules):
            raise _refused(BINDINGS, obj, escalation_message(user, missing))


def _refused(resource: str, obj: Object, detail: str) -> errors.APIError:
    return errors.forbidden(group=GROUP, resource=resource, name=obj["metadata"].get("name", ""), detail=detail)


def _is_garbage_collection(obj: Object, old: Object | None) -> bool:
    """Whether the update changes only fields of garbage collection: that grants nothing."""
    return old is not None and _without_collector_fields(obj) == _without_collector_fields(old)


def _without_collector_fields(obj: Object) -> Object:
    kept = {name: value for name, value in obj["metadata"].items() if name not in _COLLECTOR_FIELDS}
    return {**obj, "metadata": kept}
