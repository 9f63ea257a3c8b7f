"""The schema of a Cluster."""

from __future__ import annotations

from clusterregistry.apimachinery.schema.schemas import Array, Integer, IntOrString, Map, Object, String

KIND = "Cluster"


def _reference(description: str) -> Object:
    """A pointer to an object of the cluster that holds credentials, as v0.0.6 has it."""
    return Object(
        description=description,
        fields={
            "kind": String(description="Kind of the object that is referred to."),
            "name": String(description="Name of the object that is referred to."),
            "namespace": String(description="Namespace of the object that is referred to."),
        },
    )


SERVER_ENDPOINT = Object(
    description="ServerEndpoint is one way to reach the API server.",
    fields={
        "clientCIDR": String(description="The range of client addresses that should use this server address."),
        "serverAddress": String(
            description="Address of this server for a client in the range: a hostname, hostname:port, IP or IP:port."
        ),
    },
    old_spellings={"clientCidr": "clientCIDR"},
)

AUTH_PROVIDER = Object(
    description="AuthProvider names a way to authenticate to the cluster and where to find what it needs.",
    fields={
        "name": String(description="Name of the provider."),
        "type": Object(
            description="Type of the provider.",
            fields={"name": String(description="Name of the type of provider.")},
        ),
        "config": Map(
            description="Config holds what the provider needs to know: pointers to credentials, never credentials.",
            values=String(),
        ),
    },
)

SPEC = Object(
    description="Spec is what is known about the cluster. A controller may or may not reconcile it.",
    fields={
        "clusterID": String(
            max_length=253,
            description="ClusterID is the identity of the cluster itself, by convention the UID of its kube-system "
            "namespace. It cannot change once it is set.",
        ),
        "kubernetesApiEndpoints": Object(
            description="KubernetesAPIEndpoints are the endpoints of the API server of this cluster.",
            fields={
                "serverEndpoints": Array(
                    description="ServerEndpoints are the network identities of the API server.",
                    items=SERVER_ENDPOINT,
                ),
                "caBundle": String(
                    format="byte", description="CABundle is the certificate authority of the API server."
                ),
            },
        ),
        "authInfo": Object(
            description="AuthInfo is public information on how to authenticate to this cluster. "
            "It holds no credentials.",
            fields={
                "providers": Array(
                    description="Providers are the ways to authenticate to this cluster.", items=AUTH_PROVIDER
                ),
                "user": _reference("User refers to an object with credentials for users of the cluster."),
                "controller": _reference("Controller refers to an object with credentials for controllers."),
            },
        ),
        "cloudProvider": Object(
            description="CloudProvider is where the cluster runs.",
            fields={"name": String(description="Name of the cloud provider.")},
        ),
    },
)

CONDITION = Object(
    description="Condition is one aspect of the state of the cluster.",
    required=("type", "status"),
    fields={
        "type": String(description="Type of the condition, such as OK."),
        "status": String(enum=("True", "False", "Unknown"), description="Whether the condition holds."),
        "reason": String(description="The reason for the last transition, in one word."),
        "message": String(description="The last transition, for people."),
        "lastHeartbeatTime": String(format="date-time", description="When the condition was last checked."),
        "lastTransitionTime": String(format="date-time", description="When the status last changed."),
    },
)

STATES = ("Ready", "Degraded", "Unreachable", "Denied", "Stale", "Never")

STATUS = Object(
    description="Status is what controllers last observed of the cluster.",
    fields={
        "state": String(
            enum=STATES, description="State sums up the conditions. Never: the cluster has not been observed yet."
        ),
        "observedAt": String(
            format="date-time", description="ObservedAt is when the cluster was last observed, by the observer's clock."
        ),
        "conditions": Array(
            description="Conditions are the aspects of the state of the cluster, one of each type.",
            items=CONDITION,
            list_type="map",
            map_keys=("type",),
        ),
        "version": Object(
            description="Version is what runs in the cluster.",
            fields={"kubernetes": String(description="The version of Kubernetes that the cluster reports.")},
        ),
        "nodes": Object(
            description="Nodes counts the nodes of the cluster.",
            fields={
                "total": Integer(format="int32", minimum=0, description="The number of nodes."),
                "ready": Integer(format="int32", minimum=0, description="The number of nodes that are ready."),
            },
        ),
        "capacity": Map(description="Capacity is the sum of what the nodes have.", values=IntOrString()),
        "allocatable": Map(description="Allocatable is the sum of what pods may use.", values=IntOrString()),
        "properties": Array(
            description="Properties are facts about the cluster, one of each name.",
            items=Object(
                description="Property is a fact about the cluster.",
                required=("name", "value"),
                fields={
                    "name": String(description="Name of the property."),
                    "value": String(description="Value of the property."),
                },
            ),
            list_type="map",
            map_keys=("name",),
        ),
    },
)

CLUSTER = Object(
    description="Cluster contains information about a cluster in a cluster registry.",
    fields={"spec": SPEC, "status": STATUS},
)
