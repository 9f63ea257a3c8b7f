"""The default roles of the programs of a registry, each bound to the user that the program has a certificate for.

In a host cluster crinit makes roles with the same rules.
"""

from __future__ import annotations

from clusterregistry.api import coordination, events
from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.apiserver.registry.rbac.bootstrap import GrantedRole

CONTROLLER = GrantedRole(
    name="system:clusterregistry:controller",
    rules=(
        {"verbs": ["get", "list", "watch"], "apiGroups": [GROUP], "resources": ["clusters"]},
        {"verbs": ["get", "patch", "update"], "apiGroups": [GROUP], "resources": ["clusters/status"]},
        {"verbs": ["create", "patch", "update"], "apiGroups": ["", events.GROUP], "resources": ["events"]},
        {"verbs": ["create"], "apiGroups": [coordination.GROUP], "resources": ["leases"]},
        {
            "verbs": ["get", "update"],
            "apiGroups": [coordination.GROUP],
            "resources": ["leases"],
            "resourceNames": ["clusterregistry-controller"],
        },
    ),
    users=("system:clusterregistry:controller",),
)
"""``clusterregistry controller``. Of leases it may renew its own alone: one of another name takes another role."""
