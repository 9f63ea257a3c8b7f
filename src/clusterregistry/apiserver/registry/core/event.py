"""The resource Event: strategies and printed columns. Two groups serve it from one store.

Events of the core group may be almost anything, as they always could; those of ``events.k8s.io`` are validated
strictly, and do not change but for their series.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from clusterregistry.api.core import GROUP
from clusterregistry.api.core.v1 import VERSION
from clusterregistry.api.core.v1.types import EVENT, EVENT_KIND
from clusterregistry.api.core.v1.validation import validate_event, validate_event_update, validate_new_event
from clusterregistry.api.events import GROUP as EVENTS_GROUP
from clusterregistry.api.events.v1 import VERSION as EVENTS_VERSION
from clusterregistry.api.events.v1.conversion import FIELD_LABELS, from_core, to_core
from clusterregistry.api.events.v1.types import EVENT as EVENTS_EVENT
from clusterregistry.apimachinery.meta import object_meta_validation
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import PATH_SEGMENTS, SUBDOMAINS
from clusterregistry.apimachinery.schema import native
from clusterregistry.apiserver.registry.resource import Cell, Column, Resource, SelectField, Version
from clusterregistry.apiserver.registry.strategy import Object

_decode = native.decoder(EVENT, kind=EVENT_KIND)
_decode_events = native.decoder(EVENTS_EVENT, kind=EVENT_KIND)

_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def event_resource(*, retention: float | None) -> Resource:
    """``retention`` is the number of seconds after which an event is removed; None: never."""
    return Resource(
        group=GROUP,
        kind=EVENT_KIND,
        plural="events",
        singular="event",
        short_names=("ev",),
        versions=(
            Version(name=VERSION, schema=EVENT, columns=_columns(lambda event: event), decode=_decode),
            Version(
                name=EVENTS_VERSION,
                group=EVENTS_GROUP,
                schema=EVENTS_EVENT,
                columns=_columns(to_core),
                decode=_decode_events,
                to_storage=to_core,
                from_storage=from_core,
                field_labels=FIELD_LABELS,
                strategy=StrictEventStrategy(),
            ),
        ),
        storage_version=VERSION,
        strategy=EventStrategy(),
        names=PATH_SEGMENTS,
        namespaced=True,
        native=True,
        validates_metadata=True,
        selectable_fields=_selectable_fields(),
        retention=retention,
        default_roles=(),
    )


class EventStrategy:
    """The client owns all of an event."""

    allow_create_on_update = True
    allow_unconditional_update = True
    reset_fields: frozenset[str] = frozenset()

    def prepare_for_create(self, obj: Object) -> None:
        _decode(obj)  # an applied object has not been decoded yet

    def prepare_for_update(self, obj: Object, _old: Object) -> None:
        _decode(obj)

    def validate(self, obj: Object) -> list[FieldError]:
        return validate_event(obj)

    def validate_update(self, obj: Object, _old: Object) -> list[FieldError]:
        return validate_event(obj)

    def warnings(self, _obj: Object, _old: Object | None) -> Sequence[str]:
        return ()


class StrictEventStrategy(EventStrategy):
    """The strategy of ``events.k8s.io``: objects come in the form of the core group."""

    def validate(self, obj: Object) -> list[FieldError]:
        metadata = obj["metadata"]
        return [
            *validate_event(obj, controller_field="reportingController"),
            *object_meta_validation.validate_create(metadata, SUBDOMAINS, namespaced=True),
            *object_meta_validation.validate_qualified_finalizers(metadata),
            *validate_new_event(obj),
        ]

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        metadata = obj["metadata"]
        changed = object_meta_validation.validate_update(metadata, old["metadata"], namespaced=True).change
        return [
            *validate_event(obj, controller_field="reportingController"),
            *changed,
            *object_meta_validation.validate_qualified_finalizers(metadata),
            *validate_event_update(obj, old),
        ]


# Selectable fields


def _selectable_fields() -> dict[str, SelectField]:
    fields: dict[str, SelectField] = {f"involvedObject.{name}": _of_involved_object(name) for name in _REFERENCE}
    texts = {name: _text(name) for name in ("reason", "reportingComponent", "type")}
    return fields | texts | {"source": _source}


def _of_involved_object(name: str) -> SelectField:
    return lambda event: event["involvedObject"].get(name, "")


def _text(name: str) -> SelectField:
    return lambda event: event.get(name, "")


def _source(event: Object) -> str:
    found: str = event["source"].get("component") or event["reportingComponent"]
    return found


# Columns, which are the same in both versions


def _columns(convert: Callable[[Object], Object]) -> tuple[Column, ...]:
    """``convert`` takes an event to the version of the core group, from which the cells are read."""

    def of(read: Cell) -> Cell:
        return lambda event: read(convert(event))

    def text(name: str) -> Cell:
        return of(lambda event: event.get(name, ""))

    return (
        Column(name="Last Seen", type="string", is_age=True, cell=of(_last_seen), description="When it last occurred."),
        Column(name="Type", type="string", cell=text("type"), description="Normal or Warning."),
        Column(name="Reason", type="string", cell=text("reason"), description="Why the object is in its state."),
        Column(name="Object", type="string", cell=of(_target), description="The object that the event is about."),
        Column(
            name="Subobject",
            type="string",
            priority=1,
            cell=of(lambda event: event["involvedObject"].get("fieldPath", "")),
            description="The part of the object that the event is about.",
        ),
        Column(name="Source", type="string", priority=1, cell=of(_reporter), description="Who reports the event."),
        Column(name="Message", type="string", cell=of(_message), description="What happened, in words for people."),
        Column(
            name="First Seen",
            type="string",
            priority=1,
            is_age=True,
            cell=of(_first_seen),
            description="When it first occurred.",
        ),
        Column(name="Count", type="string", priority=1, cell=of(_count), description="How often it occurred."),
        Column(
            name="Name",
            type="string",
            format="name",
            priority=1,
            cell=lambda event: event["metadata"]["name"],
            description="The name of the event. It cannot be changed.",
        ),
    )


def _first_seen(event: Object) -> str:
    """Empty, which the table shows as unknown, where the event has no time."""
    return event["firstTimestamp"] or event["eventTime"] or ""


def _last_seen(event: Object) -> str:
    series = event.get("series")
    if series is not None:
        return series["lastObservedTime"] or ""
    return event["lastTimestamp"] or _first_seen(event)


def _target(event: Object) -> str:
    involved = event["involvedObject"]
    kind, name = involved.get("kind", "").lower(), involved.get("name")
    return f"{kind}/{name}" if name else kind


def _reporter(event: Object) -> str:
    source = event["source"]
    component: str = source.get("component") or event["reportingComponent"]
    host = source.get("host") or event["reportingInstance"]
    return f"{component}, {host}" if host else component


def _message(event: Object) -> str:
    text: str = event.get("message", "").strip()
    return text


def _count(event: Object) -> Any:
    series = event.get("series")
    return series.get("count", 0) if series is not None else event.get("count", 0) or 1
