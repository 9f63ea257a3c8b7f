"""Options about what users may do: the group, and what to warn about."""

from __future__ import annotations

from dataclasses import dataclass

from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.options import checks
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import BOOLEAN, WORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationOptions:
    """Authorization."""

    authorization_mode: tuple[str, ...] = option(
        ("RBAC",),
        kind=WORDS,
        help="How to decide, in this order, until one has an opinion: RBAC, Webhook, AlwaysAllow (for trials on one "
        "machine), AlwaysDeny. With RBAC users may do what the ClusterRoles allow that are bound to them: at first "
        "reading discovery, health and version; `view` adds reading objects, `edit` writing them.",
        example="--authorization-mode=RBAC",
    )
    authorization_filtered_lists: bool = option(
        True,
        kind=BOOLEAN,
        help="Whoever may not list or watch a collection, but may get some of its objects by their names (a role with "
        "`resourceNames`), gets a list or watch of just these. False refuses such requests, as kube-apiserver does.",
        example="--authorization-filtered-lists=false",
    )


def warnings(options: AuthorizationOptions, *, bind_address: str) -> tuple[str, ...]:
    address = checks.ip_of(bind_address)
    if modes.ALWAYS_ALLOW not in options.authorization_mode or address is None or checks.is_loopback(address):
        return ()
    flags = f"--authorization-mode has AlwaysAllow and --bind-address is {bind_address}"
    remedy = "leave --authorization-mode out and bind roles to users, or give --bind-address=127.0.0.1"
    return (f"every user who has signed in may do everything, from other machines too: {flags}. What to do: {remedy}",)
