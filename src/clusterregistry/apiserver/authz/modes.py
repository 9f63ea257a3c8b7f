"""From ``--authorization-mode`` to an authorizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clusterregistry.apiserver.authn.user import MASTERS
from clusterregistry.apiserver.authz.always import AlwaysAllow, AlwaysDeny
from clusterregistry.apiserver.authz.interface import Authorizer
from clusterregistry.apiserver.authz.privileged_groups import PrivilegedGroups
from clusterregistry.apiserver.authz.rbac.authorizer import RBACAuthorizer
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.authz.union import Union

RBAC = "RBAC"
WEBHOOK = "Webhook"
ALWAYS_ALLOW = "AlwaysAllow"
ALWAYS_DENY = "AlwaysDeny"

MODES: dict[str, Callable[[Policy], Authorizer]] = {
    RBAC: RBACAuthorizer,
    ALWAYS_ALLOW: lambda _: AlwaysAllow(),
    ALWAYS_DENY: lambda _: AlwaysDeny(),
}

NAMES = (RBAC, WEBHOOK, ALWAYS_ALLOW, ALWAYS_DENY)
"""What ``--authorization-mode`` may name."""


def in_order(
    modes: Sequence[str], policy: Policy | None = None, *, made: Mapping[str, Authorizer] | None = None
) -> Union:
    """The authorizer for validated mode names, asked in this order. ``policy`` is what RBAC decides from.

    ``made`` are the authorizers of modes that need more than that, by name.

    ``system:masters`` comes before all of them, in every mode, as in kube-apiserver: an administrator cannot be
    locked out by a policy.
    """
    rules, ready = Policy() if policy is None else policy, made or {}
    named = (ready[mode] if mode in ready else MODES[mode](rules) for mode in modes)
    return Union((PrivilegedGroups(MASTERS), *named))
