"""Validates object metadata, with the messages of ``k8s.io/apimachinery/pkg/api/validation``.

All functions take metadata as ``object_meta.decode`` leaves it.
"""

from __future__ import annotations

from typing import NamedTuple

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import SUBDOMAINS, NameRule, label_key_errors, label_value_errors, size
from clusterregistry.apimachinery.meta.object_meta import Metadata

ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all annotation keys and values together."""

_LONGEST_CHARACTER = 4
"""Bytes, in UTF-8."""

FIELD_MANAGER_LIMIT = 128
"""Bytes of the name of a field manager."""

_SUBRESOURCE_LIMIT = 256

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_STANDARD_FINALIZERS = frozenset((ORPHAN, FOREGROUND, "kubernetes"))
_SERVER_SET = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


class Changed(NamedTuple):
    """The errors of changed metadata: of the whole, and of the change. Both lists share most errors."""

    whole: list[FieldError]
    change: list[FieldError]


def validate_create(metadata: Metadata, names: NameRule = SUBDOMAINS, *, namespaced: bool = False) -> list[FieldError]:
    """Validates the metadata of a new object, after its name was generated."""
    common = _validate_common(metadata, {})
    return _validate_names(metadata, names) + _validate_rest(metadata, common=common, namespaced=namespaced)


def validate_update(
    metadata: Metadata, old: Metadata, names: NameRule = SUBDOMAINS, *, namespaced: bool = False
) -> Changed:
    """Validates changed metadata.

    The store compares resource version and generation. The names of finalizers are not errors of the change: as in
    kube-apiserver, an update only warns of them.
    """
    common = _validate_common(metadata, old)
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += _validate_no_new_finalizers(metadata, old)
    for key in _SERVER_SET:
        if metadata.get(key) != old.get(key):
            errors.append(field_errors.invalid(f"metadata.{key}", _shown_value(metadata, key), "field is immutable"))
    is_named_anew = metadata.get("name") != old.get("name") or metadata.get("generateName") != old.get("generateName")
    whole = _validate_names(metadata, names) if is_named_anew else []
    return Changed(whole + _validate_rest(metadata, common=common, namespaced=namespaced), errors + common)


def _validate_rest(metadata: Metadata, *, common: list[FieldError], namespaced: bool) -> list[FieldError]:
    """Validates everything but the names. The namespace of a namespaced object is that of the request, which exists."""
    errors: list[FieldError] = []
    if not namespaced and metadata.get("namespace"):
        errors.append(field_errors.forbidden("metadata.namespace", "not allowed on this type"))
    if (generation := metadata.get("generation", 0)) < 0:
        detail = "must be greater than or equal to 0"
        errors.append(field_errors.invalid("metadata.generation", generation, detail))
    errors += common
    if finalizers := metadata.get("finalizers"):
        errors += validate_finalizers(finalizers)
    return errors


def finalizer_warnings(metadata: Metadata, old: Metadata | None = None) -> list[str]:
    """A warning for each new finalizer without a domain: its name may clash with another one."""
    finalizers = metadata.get("finalizers")
    if not finalizers:
        return []
    added = set(finalizers).difference((old or {}).get("finalizers", ()))
    return [
        f"metadata.finalizers: {field_errors.shown(finalizer)}: {message}"
        for finalizer in sorted(added)
        for message in (*label_key_errors(finalizer), *_unqualified(finalizer))
    ]


def validate_finalizers(finalizers: list[str] | tuple[str, ...]) -> list[FieldError]:
    field = "metadata.finalizers"
    errors = [
        field_errors.invalid(field, finalizer, message)
        for finalizer in finalizers
        for message in label_key_errors(finalizer)
    ]
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        detail = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        errors.append(field_errors.invalid(field, list(finalizers), detail))
    return errors


def validate_qualified_finalizers(metadata: Metadata) -> list[FieldError]:
    """The additional rule of native kinds: a finalizer has a domain, or one of the standard names."""
    return [
        error
        for index, finalizer in enumerate(metadata.get("finalizers", ()))
        for error in unqualified_finalizer_errors(finalizer, f"metadata.finalizers[{index}]")
    ]


def unqualified_finalizer_errors(finalizer: str, field: str) -> list[FieldError]:
    """The error of a finalizer that has neither a domain nor one of the standard names."""
    if "/" in finalizer or finalizer in _STANDARD_FINALIZERS:
        return []
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [field_errors.invalid(field, finalizer, detail)]


def _validate_names(metadata: Metadata, names: NameRule) -> list[FieldError]:
    errors: list[FieldError] = []
    if prefix := metadata.get("generateName"):
        errors += [field_errors.invalid("metadata.generateName", prefix, text) for text in names.prefix(prefix)]
    name = metadata.get("name")
    if not name:
        errors.append(field_errors.required("metadata.name", "name or generateName is required"))
    else:
        errors += [field_errors.invalid("metadata.name", name, text) for text in names.name(name)]
    return errors


def _validate_common(metadata: Metadata, known: Metadata) -> list[FieldError]:
    """The checks of create and update. Unchanged labels, annotations and managed fields are known to be valid."""
    errors: list[FieldError] = []
    if metadata.get("clusterName"):
        detail = "may not be set; objects are named by metadata.name"
        errors.append(field_errors.forbidden("metadata.clusterName", detail))
    if (labels := metadata.get("labels")) and labels != known.get("labels"):
        errors += validate_labels(labels, known=known.get("labels"))
    if (annotations := metadata.get("annotations")) and annotations != known.get("annotations"):
        errors += validate_annotations(annotations)
    if references := metadata.get("ownerReferences"):
        errors += _validate_owner_references(references)
    # By identity: an unchanged entry is the same object, and a client could make a comparison of values slow.
    known_entries = set(map(id, known.get("managedFields", ())))
    for index, entry in enumerate(metadata.get("managedFields", ())):
        if id(entry) not in known_entries:
            errors += _validate_managed_fields_entry(entry, f"metadata.managedFields[{index}]")
    return errors


def _validate_managed_fields_entry(entry: Metadata, field: str) -> list[FieldError]:
    """Checks the names in an entry, which ``fieldmanager`` does not check."""
    manager = entry.get("manager", "")
    errors = [] if _is_field_manager(manager) else validate_field_manager(manager, f"{field}.manager")
    if len(entry.get("subresource", "")) > _SUBRESOURCE_LIMIT:
        errors.append(field_errors.too_long(f"{field}.subresource", _SUBRESOURCE_LIMIT))
    return errors


def validate_field_manager(manager: str, field: str) -> list[FieldError]:
    """Checks that the name of a field manager is short and printable."""
    if size(manager) > FIELD_MANAGER_LIMIT:
        return [field_errors.too_long(field, FIELD_MANAGER_LIMIT)]
    if manager.isprintable():
        return []
    index, character = next((index, each) for index, each in enumerate(manager) if not each.isprintable())
    return [field_errors.invalid(field, manager, f"invalid character U+{ord(character):04X} (at position {index})")]


@bounded_cache(1024)
def _is_field_manager(manager: str) -> bool:
    return not validate_field_manager(manager, "")


def validate_labels(
    labels: dict[str, str], field: str = "metadata.labels", *, known: dict[str, str] | None = None
) -> list[FieldError]:
    """``known`` are labels that were validated before."""
    errors: list[FieldError] = []
    if not any(map(label_key_errors, labels)) and not any(map(label_value_errors, labels.values())):
        return errors
    for key, value in labels.items():
        if known and known.get(key) == value:
            continue
        if wrong := label_key_errors(key):
            errors += [field_errors.invalid(field, key, message) for message in wrong]
        if wrong := label_value_errors(value):
            errors += [field_errors.invalid(field, value, message) for message in wrong]
    return errors


def validate_annotations(annotations: dict[str, str], field: str = "metadata.annotations") -> list[FieldError]:
    errors: list[FieldError] = []
    characters = sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if characters * _LONGEST_CHARACTER <= ANNOTATIONS_LIMIT and not any(
        map(label_key_errors, map(str.lower, annotations))
    ):
        return errors
    total = 0
    for key, value in annotations.items():
        total += size(key) + size(value)
        # Annotation keys may have capitals even in the prefix.
        if wrong := label_key_errors(key.lower()):
            errors += [field_errors.invalid(field, key, message) for message in wrong]
    if total > ANNOTATIONS_LIMIT:
        errors.append(field_errors.too_long(field, ANNOTATIONS_LIMIT))
    return errors


def _validate_owner_references(references: list[Metadata]) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = ""
    for reference in references:
        errors += _validate_owner_reference(reference)
        if not reference.get("controller"):
            continue
        owner = f"{reference['kind']}/{reference['name']}"
        if controller:
            detail = (
                'Only one reference can have Controller set to true. Found "true" in references for '
                f"{controller} and {owner}"
            )
            errors.append(field_errors.invalid("metadata.ownerReferences", references, detail))
        controller = controller or owner
    return errors


def _validate_owner_reference(reference: Metadata) -> list[FieldError]:
    field = "metadata.ownerReferences"  # without an index, as kube-apiserver v1.36 answers
    errors: list[FieldError] = []
    if not _version(reference["apiVersion"]):
        detail = "version must not be empty"
        errors.append(field_errors.invalid(f"{field}.apiVersion", reference["apiVersion"], detail))
    errors += [
        field_errors.invalid(f"{field}.{key}", reference[key], "must not be empty")
        for key in ("kind", "name", "uid")
        if not reference[key]
    ]
    if reference["apiVersion"] == "v1" and reference["kind"] == "Event":
        detail = "/v1, Kind=Event is disallowed from being an owner"
        errors.append(field_errors.invalid(field, reference, detail))
    return errors


def _version(api_version: str) -> str:
    """The version of ``[GROUP/]VERSION``, empty if it is malformed."""
    return "" if api_version.count("/") > 1 else api_version.rpartition("/")[2]


def _validate_no_new_finalizers(metadata: Metadata, old: Metadata) -> list[FieldError]:
    added = sorted(set(metadata.get("finalizers", ())).difference(old.get("finalizers", ())))
    if not added:
        return []
    listed = ", ".join(map(field_errors.shown, added))
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [field_errors.forbidden("metadata.finalizers", detail)]


def _unqualified(finalizer: str) -> tuple[str, ...]:
    if "/" in finalizer or finalizer in _STANDARD_FINALIZERS:
        return ()
    path = " including a path (/)" if "." in finalizer else ""
    return (
        f"prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers",
    )


def _shown_value(metadata: Metadata, key: str) -> object:
    """An absent string is empty and an absent pointer null, as Go shows them."""
    return metadata.get(key, "" if key in ("name", "namespace", "uid") else None)
