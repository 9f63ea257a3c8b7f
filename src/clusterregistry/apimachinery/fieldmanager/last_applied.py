"""Migration from ``kubectl apply`` to server-side apply, through the annotation of the last applied configuration.

As in kube-apiserver, for the manager ``kubectl`` alone: that of ``kubectl apply --server-side``.
"""

from __future__ import annotations

from typing import Any

import orjson

from clusterregistry.apimachinery.codecs import json_codec
from clusterregistry.apimachinery.fieldmanager.compare import compare
from clusterregistry.apimachinery.fieldmanager.field_set import Fields, difference
from clusterregistry.apimachinery.fieldmanager.to_field_set import to_field_set
from clusterregistry.apimachinery.fieldmanager.validate import problems_text
from clusterregistry.apimachinery.meta.object_meta_validation import validate_annotations
from clusterregistry.apimachinery.schema import schemas

MANAGER = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

Object = dict[str, Any]


def allowed_conflicts(schema: schemas.Object, live: Object) -> Fields:
    """The fields that ``kubectl apply`` set and that are unchanged since: no conflicts for ``kubectl``."""
    last = _last_applied(live)
    if last is None or any(last.get(name) != live.get(name) for name in ("apiVersion", "kind")):
        return {}
    if problems_text(schema, last):
        return {}
    changes = compare(schema, last, live)
    return difference(difference(to_field_set(schema, last), changes.gained), changes.removed)


def _last_applied(live: Object) -> Object | None:
    try:
        value = orjson.loads(_annotations(live).get(ANNOTATION, ""))
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _annotations(obj: Object) -> dict[str, str]:
    return obj.get("metadata", {}).get("annotations") or {}


def update_annotation(obj: Object, configuration: Object) -> None:
    """Writes the configuration to the annotation, if ``obj`` has the annotation. Changes ``obj``."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return
    kept = {**annotations, ANNOTATION: _encoded(configuration)}
    if validate_annotations(kept):
        del kept[ANNOTATION]
    obj["metadata"] = {**obj["metadata"], "annotations": kept}


def _encoded(configuration: Object) -> str:
    """The configuration without the annotation itself, as Go's encoder writes it."""
    if metadata := configuration.get("metadata"):
        others = {name: value for name, value in metadata.items() if name != "annotations"}
        if (annotations := metadata.get("annotations")) is not None:
            others["annotations"] = {key: value for key, value in annotations.items() if key != ANNOTATION}
        configuration = {**configuration, "metadata": others}
    return json_codec.encode_as_go(configuration).decode() + "\n"
