"""The schema of Lease."""

from __future__ import annotations

from clusterregistry.apimachinery.schema.schemas import MICRO_TIME, Integer, Object, String

LEASE_KIND = "Lease"


def _micro_time(description: str) -> String:
    return String(format="date-time", type_name=MICRO_TIME, description=description)


LEASE_SPEC = Object(
    type_name="v1.LeaseSpec",
    description="Spec says who holds the lease, and until when.",
    fields={
        "holderIdentity": String(description="HolderIdentity is the present holder; empty for none."),
        "leaseDurationSeconds": Integer(
            format="int32",
            description="LeaseDurationSeconds is how long others wait after renewTime before they take the lease.",
        ),
        "acquireTime": _micro_time("AcquireTime is when the present holder took the lease."),
        "renewTime": _micro_time("RenewTime is when the present holder last renewed the lease."),
        "leaseTransitions": Integer(
            format="int32", description="LeaseTransitions is how often the lease went to another holder."
        ),
        "strategy": String(
            type_name="v1.CoordinatedLeaseStrategy",
            description="Strategy by which a coordinator picks the holder. Dropped: there is no coordinator.",
        ),
        "preferredHolder": String(
            description="PreferredHolder should have the lease instead of the present holder. Dropped as well."
        ),
    },
    pointers=("holderIdentity", "leaseDurationSeconds", "leaseTransitions", "strategy", "preferredHolder"),
)

LEASE = Object(
    type_name="v1.Lease",
    description="Lease is held by one process at a time: leaders are elected with it.",
    fields={"spec": LEASE_SPEC},
    always_written=("spec",),
)
