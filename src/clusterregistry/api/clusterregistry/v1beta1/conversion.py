"""Converts a Cluster between v1alpha1, in which it is stored, and v1beta1, and loses nothing.

| v1alpha1                                         | v1beta1                              |
| ------------------------------------------------ | ------------------------------------ |
| ``authInfo.providers[].type: {"name": "x"}``     | ``type: "x"`` (``{}``: ``""``)       |
| annotation ``clusterregistry.k8s.io/location``   | ``spec.location``                    |
| annotation ``.../observed-generations``, by type | ``conditions[].observedGeneration``  |
| ``conditions[].lastHeartbeatTime``               | kept, but not shown                  |

An annotation of another form is any user's annotation: it stays one in both versions. All functions take any JSON
value and change no argument, but for those that say so. Values of a wrong type stay where they are, for validation to
find.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import orjson

from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.api.clusterregistry.v1alpha1 import VERSION as V1ALPHA1
from clusterregistry.api.clusterregistry.v1beta1 import VERSION as V1BETA1
from clusterregistry.api.clusterregistry.v1beta1.types import LOCATION, STORED_CLUSTER
from clusterregistry.api.clusterregistry.v1beta1.validation import type_of, validate_location
from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.schema.structural import Structural

Object = dict[str, Any]

LOCATION_KEY = f"{GROUP}/location"
GENERATIONS_KEY = f"{GROUP}/observed-generations"
HEARTBEATS_KEY = f"{GROUP}/last-heartbeat-times"
KEYS = frozenset((LOCATION_KEY, GENERATIONS_KEY, HEARTBEATS_KEY))
"""The annotation of objects that are stored in v1beta1."""

_LONGEST = 256 * 1024
"""Bytes of all annotations of an object, as in Kubernetes. No longer text is parsed."""

_HIGHEST = 2**63 - 1
_TEXTS = ("provider", "region", "zone")
_ABSENT: Any = object()


# v1alpha1 to v1beta1


def from_v1alpha1(cluster: Object) -> Object:
    """The cluster in v1beta1, as it is served."""
    return _converted(cluster, whole=False)


def from_v1alpha1_whole(cluster: Object) -> Object:
    """The cluster in v1beta1, with what v1beta1 cannot express in an annotation."""
    return _converted(cluster, whole=True)


def _converted(cluster: Object, *, whole: bool) -> Object:
    beta = {**cluster, "apiVersion": f"{GROUP}/{V1BETA1}"}
    annotations = annotations_of(cluster)
    location = _location_in(annotations)
    generations = _generations_in(annotations)
    _set_spec(beta, _typed_providers(cluster.get("spec"), _type_as_text))
    if location is not None:
        beta["spec"] = {"location": location, **(_dict(beta.get("spec")))}
    heartbeats = _set_conditions(beta, generations or {})
    changes: dict[str, str | None] = {}
    if location is not None:
        changes[LOCATION_KEY] = None
    if generations is not None:
        changes[GENERATIONS_KEY] = None
    if whole and heartbeats:
        changes[HEARTBEATS_KEY] = _text(heartbeats)
    _annotate(beta, changes)
    return beta


def _set_conditions(beta: Object, generations: dict[str, int]) -> dict[str, str]:
    """Sets the conditions in the form of v1beta1, in a new status. Returns the times of heartbeats by type."""
    heartbeats: dict[str, str] = {}

    def convert(condition: Object) -> Object:
        of_type, converted = type_of(condition), condition
        if type(condition.get("lastHeartbeatTime")) is str:
            converted = {name: value for name, value in condition.items() if name != "lastHeartbeatTime"}
            heartbeats.setdefault(of_type, condition["lastHeartbeatTime"])
        if of_type in generations and "observedGeneration" not in condition:
            converted = {**converted, "observedGeneration": generations[of_type]}
        return converted

    _map_conditions(beta, convert)
    return heartbeats


# v1beta1 to v1alpha1


def to_v1alpha1(cluster: Object) -> Object:
    """The cluster in v1alpha1."""
    alpha = {**cluster, "apiVersion": f"{GROUP}/{V1ALPHA1}"}
    annotations, changes = annotations_of(cluster), dict[str, str | None]()
    for key, read in _READERS.items():
        if read(annotations) is not None:  # only a conversion may set it
            changes[key] = None
    spec = _typed_providers(cluster.get("spec"), _type_as_struct)
    if type(spec) is dict and (text := _location_text(spec.get("location"))):
        spec = {name: value for name, value in spec.items() if name != "location"}
        changes[LOCATION_KEY] = text
    _set_spec(alpha, spec)
    if generations := _take_generations(alpha, _heartbeats_in(annotations) or {}):
        changes[GENERATIONS_KEY] = _text(generations)
    _annotate(alpha, changes)
    return alpha


def _take_generations(alpha: Object, heartbeats: dict[str, str]) -> dict[str, int]:
    """Sets the conditions in the form of v1alpha1, in a new status. Returns the observed generations by type."""
    generations: dict[str, int] = {}

    def convert(condition: Object) -> Object:
        of_type, converted = type_of(condition), condition
        generation: Any = condition.get("observedGeneration")
        if _is_generation(generation) and generations.setdefault(of_type, generation) == generation:
            converted = {name: value for name, value in condition.items() if name != "observedGeneration"}
        if of_type in heartbeats and "lastHeartbeatTime" not in condition:
            converted = {**converted, "lastHeartbeatTime": heartbeats[of_type]}
        return converted

    _map_conditions(alpha, convert)
    return generations


# Writes: what a client of one version does not know of stays as it is stored


def inherit_annotations(cluster: Object, old: Object) -> None:
    """Adds the annotations of a stored cluster that a v1alpha1 cluster in its place does not have, in place.

    Clients of v1alpha1 that do not know of a location do not remove it by a PUT. A patch does.
    """
    before = old["metadata"].get("annotations")
    if not before or (LOCATION_KEY not in before and GENERATIONS_KEY not in before):
        return
    now = annotations_of(cluster)
    kept = {key: before[key] for key in (LOCATION_KEY, GENERATIONS_KEY) if key in before and key not in now}
    if kept:
        _annotate(cluster, dict(kept))


def keep_unseen(cluster: Object, old: Object) -> None:
    """Takes over from the stored cluster, in place, what v1beta1 does not show. Both are in v1alpha1.

    These are the times of heartbeats, and other forms of the same values.
    """
    _keep_spec(cluster, old)
    heartbeats = {
        type_of(each): each["lastHeartbeatTime"] for each in conditions_of(old) if "lastHeartbeatTime" in each
    }
    if heartbeats:
        _map_conditions(
            cluster,
            lambda condition: (
                {**condition, "lastHeartbeatTime": heartbeats[type_of(condition)]}
                if type_of(condition) in heartbeats and "lastHeartbeatTime" not in condition
                else condition
            ),
        )
    before, now = annotations_of(old), annotations_of(cluster)
    same = {
        key: before[key]
        for key, read in _READERS.items()
        if key in before and before[key] != now.get(key, before[key]) and read(before) == read(now)
    }
    if same:
        _annotate(cluster, dict(same))


def _keep_spec(cluster: Object, old: Object) -> None:
    if cluster.get("spec") == {} and "spec" not in old and LOCATION_KEY in annotations_of(cluster):
        del cluster["spec"]  # in v1beta1 it was there for the location alone
    before, now = _providers(old.get("spec")), _providers(cluster.get("spec"))
    kept = [
        {**provider, "type": stored["type"]}
        if "type" in stored
        and provider.get("type", _ABSENT) != stored["type"]
        and _type_as_text(provider.get("type", _ABSENT)) == _type_as_text(stored["type"])
        else provider
        for provider, stored in zip(now, before, strict=False)
    ]
    if any(kept_one is not provider for kept_one, provider in zip(kept, now, strict=False)):
        spec = cluster["spec"]
        auth_info = {**spec["authInfo"], "providers": [*kept, *now[len(kept) :]]}
        cluster["spec"] = {**spec, "authInfo": auth_info}


def set_observed_generations(cluster: Object, text: str | None) -> None:
    """Sets or removes the annotation of observed generations, in place: it belongs to the status."""
    annotations = annotations_of(cluster)
    if annotations.get(GENERATIONS_KEY) != text and (text is not None or _generations_in(annotations) is not None):
        _annotate(cluster, {GENERATIONS_KEY: text})


# Validation


def annotation_errors(annotations: Object, before: Object) -> list[FieldError]:
    """The errors in annotations of a v1alpha1 cluster that stand for fields of v1beta1; unchanged ones are valid."""
    errors = []
    if (text := annotations.get(LOCATION_KEY)) is not None and text != before.get(LOCATION_KEY):
        errors += _location_errors(text, annotations)
    if (text := annotations.get(GENERATIONS_KEY)) is not None and text != before.get(GENERATIONS_KEY):
        detail = "must be a JSON object of generations by types of conditions"
        errors += [_wrong(GENERATIONS_KEY, text, detail)] if _generations_in(annotations) is None else []
    return errors


def _location_errors(text: Any, annotations: Object) -> list[FieldError]:
    path = _path(LOCATION_KEY)
    if (location := _location_in(annotations)) is None:
        return [_wrong(LOCATION_KEY, text, f"must be a JSON object with {', '.join(LOCATION.fields)} at most")]
    found = _structural().validate({"spec": {"location": location}}) + validate_location(location)
    return [FieldError(path + each.field.removeprefix("spec.location"), each.reason, each.message) for each in found]


@cache
def _structural() -> Structural:
    return Structural(STORED_CLUSTER)


def _wrong(key: str, text: Any, detail: str) -> FieldError:
    return field_errors.invalid(_path(key), text, detail)


def _path(key: str) -> str:
    return f"metadata.annotations[{key}]"


# Parts of a cluster


def annotations_of(cluster: Object) -> Object:
    # Without _dict, whose calls would be most of the cost: every write comes here.
    metadata = cluster.get("metadata")
    annotations = metadata.get("annotations") if type(metadata) is dict else None
    return annotations if type(annotations) is dict else {}


def conditions_of(cluster: Object) -> list[Object]:
    conditions = _dict(cluster.get("status")).get("conditions")
    return [each for each in conditions if type(each) is dict] if type(conditions) is list else []


def _annotate(cluster: Object, changes: dict[str, str | None]) -> None:
    """Sets or removes annotations, in new metadata."""
    if not changes:
        return
    metadata = {**_dict(cluster.get("metadata"))}
    annotations = {**_dict(metadata.get("annotations"))}
    for key, text in changes.items():
        if text is None:
            annotations.pop(key, None)
        else:
            annotations[key] = text
    if annotations:
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)
    cluster["metadata"] = metadata


def _set_spec(cluster: Object, spec: Any) -> None:
    if "spec" in cluster:
        cluster["spec"] = spec


def _providers(spec: Any) -> list[Object]:
    providers = _dict(_dict(spec).get("authInfo")).get("providers")
    return [_dict(each) for each in providers] if type(providers) is list else []


def _typed_providers(spec: Any, convert: Callable[[Any], Any]) -> Any:
    """The spec with the types of providers converted."""
    auth_info = _dict(_dict(spec).get("authInfo"))
    providers = auth_info.get("providers")
    if type(providers) is not list or not any(type(each) is dict and "type" in each for each in providers):
        return spec
    converted = [
        {**each, "type": convert(each["type"])} if type(each) is dict and "type" in each else each for each in providers
    ]
    return {**spec, "authInfo": {**auth_info, "providers": converted}}


def _type_as_text(value: Any) -> Any:
    """``{"name": "x"}`` as ``x``, and ``{}`` as the empty text."""
    if type(value) is not dict:
        return value
    return value.get("name", "") if len(value) == ("name" in value) else value


def _type_as_struct(value: Any) -> Any:
    return {"name": value} if value != "" else {}


def _map_conditions(cluster: Object, convert: Callable[[Object], Object]) -> None:
    """Converts each condition, in a new status; the status stays the same object if all conditions do."""
    status = cluster.get("status")
    conditions = status.get("conditions") if type(status) is dict else None
    if type(conditions) is not list:
        return
    converted = [convert(each) if type(each) is dict else each for each in conditions]
    if any(new is not old for new, old in zip(converted, conditions, strict=True)):
        cluster["status"] = {**_dict(status), "conditions": converted}


def _is_generation(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _HIGHEST


def _dict(value: Any) -> Object:
    return value if type(value) is dict else {}


# Annotations


def _text(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _location_text(location: Any) -> str:
    """The annotation of a location; empty for a value that is none, which stays where it is."""
    if not _is_location(location):
        return ""
    try:
        return _text(location)
    except TypeError:  # a number beyond 64 bits, or half of a surrogate pair
        return ""


def _is_location(value: Any) -> bool:
    if type(value) is not dict or not value.keys() <= LOCATION.fields.keys():
        return False
    return all(type(each) is str or (type(each) in (int, float) and name not in _TEXTS) for name, each in value.items())


@bounded_cache(1024)
def _parsed(text: str) -> Any:
    """The JSON value of an annotation; None for any other text. Cached, if short: a fleet has few locations."""
    try:
        return orjson.loads(text) if len(text) <= _LONGEST else None
    except ValueError:
        return None


def _parsed_in(annotations: Object, key: str) -> Any:
    text = annotations.get(key)
    return _parsed(text) if type(text) is str else None


def _location_in(annotations: Object) -> Object | None:
    found = _parsed_in(annotations, LOCATION_KEY)
    return dict(found) if _is_location(found) else None


def _generations_in(annotations: Object) -> dict[str, int] | None:
    found = _parsed_in(annotations, GENERATIONS_KEY)
    return found if type(found) is dict and all(map(_is_generation, found.values())) else None


def _heartbeats_in(annotations: Object) -> dict[str, str] | None:
    found = _parsed_in(annotations, HEARTBEATS_KEY)
    return found if type(found) is dict and all(type(each) is str for each in found.values()) else None


_READERS: dict[str, Callable[[Object], Object | None]] = {
    LOCATION_KEY: _location_in,
    GENERATIONS_KEY: _generations_in,
    HEARTBEATS_KEY: _heartbeats_in,
}
