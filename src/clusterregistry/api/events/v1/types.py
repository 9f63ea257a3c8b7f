"""The schema of Event."""

from __future__ import annotations

from clusterregistry.api.core.v1.types import EVENT_SOURCE, OBJECT_REFERENCE, micro_time
from clusterregistry.apimachinery.schema.schemas import Integer, Object, String


def _text(description: str) -> String:
    return String(description=description)


def _deprecated_time(description: str) -> String:
    return String(format="date-time", description=description)


EVENT = Object(
    type_name="v1.Event",
    description="Event reports something that happened to an object. Events are removed after some time.",
    fields={
        "eventTime": micro_time("EventTime is when the event was first observed. Required."),
        "series": Object(
            type_name="v1.EventSeries",
            description="Series is about the occurrences of an event that was seen more than once.",
            fields={
                "count": Integer(format="int32", description="Count is the number of occurrences so far."),
                "lastObservedTime": micro_time("LastObservedTime is the time of the last occurrence."),
            },
            required=("count", "lastObservedTime"),
        ),
        "reportingController": _text(
            "ReportingController is the controller that reports, such as example.com/agent. Required in new events."
        ),
        "reportingInstance": _text(
            "ReportingInstance is the process of the controller that reports: at most 128 characters, required in new "
            "events."
        ),
        "action": _text(
            "Action is what was done, or failed to be done, with the object, for programs: at most 128 characters, "
            "required in new events."
        ),
        "reason": _text("Reason is why the action was taken: at most 128 characters, required in new events."),
        "regarding": OBJECT_REFERENCE,
        "related": OBJECT_REFERENCE,
        "note": _text("Note describes the event to people, in at most 1024 characters."),
        "type": _text("Type is Normal or Warning; there may be others in the future. Required in new events."),
        "deprecatedSource": EVENT_SOURCE,
        "deprecatedFirstTimestamp": _deprecated_time("The firstTimestamp of an Event of the core group."),
        "deprecatedLastTimestamp": _deprecated_time("The lastTimestamp of an Event of the core group."),
        "deprecatedCount": Integer(format="int32", description="The count of an Event of the core group."),
    },
    required=("eventTime",),
    always_written=("regarding", "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"),
)
