"""The schemas of Namespace and Event, and of the structs that other groups share with them."""

from __future__ import annotations

from clusterregistry.apimachinery.schema.schemas import MICRO_TIME, Array, Integer, Object, String

NAMESPACE_KIND = "Namespace"
EVENT_KIND = "Event"

METADATA_NAME_LABEL = "kubernetes.io/metadata.name"
"""The label of a namespace that is its name, for selectors of namespaces."""

FINALIZER_KUBERNETES = "kubernetes"
"""The finalizer in the spec of a namespace that its content holds."""

ACTIVE, TERMINATING = "Active", "Terminating"
"""The phases of a namespace."""


def _text(description: str) -> String:
    return String(description=description)


def _time(description: str) -> String:
    return String(format="date-time", description=description)


def micro_time(description: str) -> String:
    """The schema of a time with six decimals."""
    return String(format="date-time", type_name=MICRO_TIME, description=description)


# Namespace

NAMESPACE_CONDITION = Object(
    type_name="v1.NamespaceCondition",
    description="NamespaceCondition says how far the deletion of a namespace has come.",
    fields={
        "type": String(type_name="v1.NamespaceConditionType", description="Type names the condition."),
        "status": String(type_name="v1.ConditionStatus", description="Status is True, False or Unknown."),
        "lastTransitionTime": _time("LastTransitionTime is when the status last changed."),
        "reason": _text("Reason is one word in CamelCase for the last change."),
        "message": _text("Message explains the last change to people."),
    },
    required=("type", "status"),
    always_written=("lastTransitionTime",),
)

NAMESPACE = Object(
    type_name="v1.Namespace",
    description="Namespace is a scope for the names of objects.",
    fields={
        "spec": Object(
            type_name="v1.NamespaceSpec",
            description="Spec says what has to be done before the namespace is removed.",
            fields={
                "finalizers": Array(
                    items=String(type_name="v1.FinalizerName"),
                    description="Finalizers must all be gone before a deleted namespace is removed.",
                ),
            },
        ),
        "status": Object(
            type_name="v1.NamespaceStatus",
            description="Status is the present state of the namespace.",
            fields={
                "phase": String(type_name="v1.NamespacePhase", description="Phase is Active or Terminating."),
                "conditions": Array(
                    items=NAMESPACE_CONDITION,
                    list_type="map",
                    map_keys=("type",),
                    description="Conditions are what was last observed of the namespace.",
                ),
            },
        ),
    },
    always_written=("spec", "status"),
)

# Event

OBJECT_REFERENCE = Object(
    type_name="v1.ObjectReference",
    description="ObjectReference names an object, or a part of one.",
    atomic=True,
    fields={
        "kind": _text("Kind of the object."),
        "namespace": _text("Namespace of the object; empty for an object without one."),
        "name": _text("Name of the object."),
        "uid": String(type_name="types.UID", description="UID of the object."),
        "apiVersion": _text("APIVersion is the group and version of the kind."),
        "resourceVersion": _text("ResourceVersion is the state of the object that is meant, if it is a certain one."),
        "fieldPath": _text(
            "FieldPath names a part of the object, such as spec.containers{name} for one of the containers of a pod."
        ),
    },
)

EVENT_SOURCE = Object(
    type_name="v1.EventSource",
    description="EventSource names the component that reports an event.",
    fields={
        "component": _text("Component is the name of the component."),
        "host": _text("Host is the name of the node on which it runs."),
    },
)

EVENT = Object(
    type_name="v1.Event",
    description="Event reports something that happened to an object. Events are removed after some time.",
    fields={
        "involvedObject": OBJECT_REFERENCE,
        "reason": _text("Reason is one word in CamelCase: why the object is in its present state."),
        "message": _text("Message describes the event to people."),
        "source": EVENT_SOURCE,
        "firstTimestamp": _time("FirstTimestamp is when the event was first recorded."),
        "lastTimestamp": _time("LastTimestamp is when the event was last recorded."),
        "count": Integer(format="int32", description="Count is how often the event has occurred."),
        "type": _text("Type is Normal or Warning; there may be others in the future."),
        "eventTime": micro_time("EventTime is when the event was first observed."),
        "series": Object(
            type_name="v1.EventSeries",
            description="Series is about the occurrences of an event that was seen more than once.",
            fields={
                "count": Integer(format="int32", description="Count is the number of occurrences so far."),
                "lastObservedTime": micro_time("LastObservedTime is the time of the last occurrence."),
            },
            always_written=("lastObservedTime",),
        ),
        "action": _text("Action is what was done, or failed to be done, with the object."),
        "related": OBJECT_REFERENCE,
        "reportingComponent": _text("ReportingComponent is the controller that reports, such as example.com/agent."),
        "reportingInstance": _text("ReportingInstance is the process of the controller that reports."),
    },
    required=("involvedObject",),
    always_written=(
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "eventTime",
        "reportingComponent",
        "reportingInstance",
    ),
)
