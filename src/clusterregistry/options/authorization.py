"""Options about what users may do."""

from __future__ import annotations

from dataclasses import dataclass

from clusterregistry.options.fields import option
from clusterregistry.options.kinds import BOOLEAN, WORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationOptions:
    """Authorization."""

    authorization_mode: tuple[str, ...] = option(
        ("RBAC",),
        kind=WORDS,
        help="How to decide, in this order, until one has an opinion: RBAC, Webhook, AlwaysAllow (for trials), "
        "AlwaysDeny. Members of `system:masters` may do everything in every mode. With RBAC others may do what the "
        "ClusterRoles allow that are bound to them: at first that is reading discovery, health and version.",
        example="--authorization-mode=RBAC",
    )
    authorization_filtered_lists: bool = option(
        True,
        kind=BOOLEAN,
        help="Whoever may not list or watch a collection, but may get some of its objects by their names (a role with "
        "`resourceNames`), gets a list or watch of just these. False refuses such requests, as kube-apiserver does.",
        example="--authorization-filtered-lists=false",
    )
