"""From ``--authorization-mode`` to an authorizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clusterregistry.authn.users import MASTERS
from clusterregistry.authz.always import AlwaysAllow, AlwaysDeny
from clusterregistry.authz.interface import Authorizer
from clusterregistry.authz.privileged_groups import PrivilegedGroups
from clusterregistry.authz.public_paths import discovery, public_information
from clusterregistry.authz.rbac.authorizer import RBACAuthorizer
from clusterregistry.authz.rbac.policy import Policy
from clusterregistry.authz.union import Union

RBAC = "RBAC"
ALWAYS_ALLOW = "AlwaysAllow"
ALWAYS_DENY = "AlwaysDeny"


def default_roles() -> Authorizer:
    """What RBAC gives without any role of the operator's: only the public paths and discovery."""
    return Union((public_information(), discovery()))


def rbac(policy: Policy) -> Authorizer:
    """The roles of a policy, and the default roles."""
    return Union((RBACAuthorizer(policy), default_roles()))


MODES: dict[str, Callable[[Policy], Authorizer]] = {
    RBAC: rbac,
    ALWAYS_ALLOW: lambda _: AlwaysAllow(),
    ALWAYS_DENY: lambda _: AlwaysDeny(),
}


def in_order(modes: Sequence[str], policy: Policy | None = None) -> Union:
    """The authorizer for validated mode names, asked in this order. ``policy`` is what RBAC decides from.

    ``system:masters`` comes before all of them, in every mode, as in kube-apiserver: an administrator cannot be
    locked out by a policy.
    """
    rules = Policy() if policy is None else policy
    return Union((PrivilegedGroups(MASTERS), *(MODES[mode](rules) for mode in modes)))
