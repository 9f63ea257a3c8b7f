"""Validates Namespaces and Events, with kube-apiserver's messages.

All functions take objects that ``schema.native`` has decoded, and leave the metadata aside. Events are in the version
of the core group, also those that came in ``events.k8s.io``: kube-apiserver names their fields by its internal type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from clusterregistry.api.core.v1.types import ACTIVE, TERMINATING
from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import label_key_errors, size
from clusterregistry.apimachinery.meta.object_meta_validation import unqualified_finalizer_errors

Object = dict[str, Any]

_SHORT, _LONG = 128, 1024
"""Bytes of a name or reason, and of a message."""

_LEAST_SERIES = 2
_TYPES = ("Normal", "Warning")


# Namespace


def validate_namespace(namespace: Object) -> list[FieldError]:
    return [
        error
        for finalizer in namespace["spec"].get("finalizers", ())
        for error in _finalizer_errors(finalizer, "spec.finalizers")
    ]


def validate_namespace_status(namespace: Object) -> list[FieldError]:
    """The phase follows from whether the namespace is being deleted."""
    phase = namespace["status"].get("phase", "")
    is_deleted = "deletionTimestamp" in namespace["metadata"]
    wanted = TERMINATING if is_deleted else ACTIVE
    if phase == wanted:
        return []
    detail = f"may only be '{wanted}' if `deletionTimestamp` is {'not empty' if is_deleted else 'empty'}"
    return [field_errors.invalid("status.Phase", phase, detail)]


def validate_namespace_finalizers(namespace: Object) -> list[FieldError]:
    """Validates a write to ``finalize``, where fields are named by their index."""
    return [
        error
        for index, finalizer in enumerate(namespace["spec"].get("finalizers", ()))
        for error in _finalizer_errors(finalizer, f"spec.finalizers[{index}]")
    ]


def _finalizer_errors(finalizer: str, field: str) -> Iterator[FieldError]:
    for text in label_key_errors(finalizer):
        yield field_errors.invalid(field, finalizer, text)
    yield from unqualified_finalizer_errors(finalizer, field)


# Event


def validate_event(event: Object, *, controller_field: str = "reportingComponent") -> list[FieldError]:
    """The rules of every event, and all rules of one that is written in the core group.

    ``controller_field`` is the name of the reporting controller in the version of the request.
    """
    if event["eventTime"] is None:
        return list(_old_event_errors(event))
    return list(_new_event_errors(event, controller_field))


def validate_new_event(event: Object) -> list[FieldError]:
    """The additional rules of an event that is created in ``events.k8s.io``."""
    return [*_series_errors(event), *_new_type_errors(event), *_deprecated_errors(event)]


def validate_event_update(event: Object, old: Object) -> list[FieldError]:
    """The additional rules of an event that is changed in ``events.k8s.io``: its series alone may change."""
    errors = list(_series_errors(event)) if event.get("series") != old.get("series") else []
    for name, field, shown in _IMMUTABLE:
        new = event.get(name)
        if new != old.get(name):
            errors.append(field_errors.invalid(field, shown(new), "field is immutable"))
    return errors


def _old_event_errors(event: Object) -> Iterator[FieldError]:
    """An event without ``eventTime`` is about an object in its own namespace; without one, it is in ``default``."""
    namespace, of_object = event["metadata"]["namespace"], event["involvedObject"].get("namespace", "")
    if of_object != namespace and (of_object or namespace != "default"):
        yield _another_namespace(of_object)


def _new_event_errors(event: Object, controller_field: str) -> Iterator[FieldError]:
    namespace, of_object = event["metadata"]["namespace"], event["involvedObject"].get("namespace", "")
    if not of_object and namespace not in ("default", "kube-system"):
        yield _another_namespace(of_object)
    controller = event["reportingComponent"]
    if not controller:
        yield field_errors.required(controller_field)
    for text in label_key_errors(controller):
        yield field_errors.invalid(controller_field, controller, text)
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field, "")
        if not value:
            yield field_errors.required(field)
        yield from _too_long(field, value, _SHORT)
    yield from _too_long("message", event.get("message", ""), _LONG)


def _another_namespace(namespace: str) -> FieldError:
    return field_errors.invalid("involvedObject.namespace", namespace, "does not match event.namespace")


def _too_long(field: str, value: str, limit: int) -> Iterator[FieldError]:
    if size(value) > limit:
        yield field_errors.invalid(field, "", f"can have at most {limit} characters")


def _series_errors(event: Object) -> Iterator[FieldError]:
    series = event.get("series")
    if series is None:
        return
    if series.get("count", 0) < _LEAST_SERIES:
        yield field_errors.invalid("series.count", "", f"should be at least {_LEAST_SERIES}")
    if series["lastObservedTime"] is None:
        yield field_errors.required("series.lastObservedTime")


def _new_type_errors(event: Object) -> Iterator[FieldError]:
    if event["eventTime"] is None:
        yield field_errors.required("eventTime")
    if (given := event.get("type", "")) not in _TYPES:
        yield field_errors.invalid("type", "", f"has invalid value: {given}")


def _deprecated_errors(event: Object) -> Iterator[FieldError]:
    for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(field):
            yield field_errors.invalid(field, "", "needs to be unset")


def _shown_text(value: str | None) -> str:
    return value or ""


def _shown_number(value: int | None) -> int:
    return value or 0


def _shown_time(value: str | None) -> str | None:
    return value


def _shown_source(value: Object) -> Object:
    return {"Component": value.get("component", ""), "Host": value.get("host", "")}


def _shown_reference(value: Object | None) -> Object | None:
    """A reference as kube-apiserver's internal type."""
    return None if value is None else {shown: value.get(name, "") for name, shown in _REFERENCE.items()}


_REFERENCE = {
    "kind": "Kind",
    "namespace": "Namespace",
    "name": "Name",
    "uid": "UID",
    "apiVersion": "APIVersion",
    "resourceVersion": "ResourceVersion",
    "fieldPath": "FieldPath",
}

_IMMUTABLE: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("involvedObject", "involvedObject", _shown_reference),
    ("reason", "reason", _shown_text),
    ("message", "message", _shown_text),
    ("source", "source", _shown_source),
    ("firstTimestamp", "firstTimestamp", _shown_time),
    ("lastTimestamp", "lastTimestamp", _shown_time),
    ("count", "count", _shown_number),
    ("reason", "reason", _shown_text),  # twice, as in kube-apiserver
    ("type", "type", _shown_text),
    ("eventTime", "eventTime", _shown_time),
    ("action", "action", _shown_text),
    ("related", "related", _shown_reference),
    ("reportingComponent", "reportingController", _shown_text),
    ("reportingInstance", "reportingInstance", _shown_text),
)
"""The fields that do not change, each with its name and its value in messages."""
