"""What ``kubectl get clusterroles`` prints: unlike elsewhere the time of creation itself, not an age."""

from __future__ import annotations

from clusterregistry.apiserver.registry.resource import Column

COLUMNS = (
    Column(
        name="Name",
        type="string",
        format="name",
        cell=lambda role: role["metadata"]["name"],
        description="The name of the role. It cannot be changed.",
    ),
    Column(
        name="Created At",
        type="date",
        cell=lambda role: role["metadata"]["creationTimestamp"],
        description="When the role was created.",
    ),
)
