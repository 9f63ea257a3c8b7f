"""The options of verbs, from the query or the body: ListOptions, WriteOptions, DeleteOptions and the field manager."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.meta import errors, field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.integers import parse_int
from clusterregistry.apimachinery.meta.json_types import json_type
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apimachinery.meta.object_meta_validation import FIELD_MANAGER_LIMIT, validate_field_manager
from clusterregistry.apimachinery.meta.selectors import SelectorError
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.endpoints.request_info import parse_bool
from clusterregistry.apiserver.http.request import Query
from clusterregistry.apiserver.registry.deletion import DeleteOptions, Preconditions
from clusterregistry.apiserver.registry.list import EXACT, NOT_OLDER_THAN, ListOptions
from clusterregistry.apiserver.registry.selectable_fields import NAME_ALONE, SelectableFields

_META_GROUP = "meta.k8s.io"

POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a create, update or patch. ``force`` is for applies alone."""

    dry_run: bool = False
    field_validation: str = "Warn"
    field_manager: str = ""
    force: bool = False


def invalid_options(kind: str, wrong: Sequence[FieldError]) -> errors.APIError:
    return errors.invalid(group=_META_GROUP, kind=kind, name="", errors=wrong)


def list_options(query: Query, *, watch: bool, fields: SelectableFields = NAME_ALONE) -> ListOptions:
    """``fields`` are those that the resource can be selected by. Raises 400 and 422."""
    initial = query.first("sendInitialEvents")
    try:
        options = ListOptions(
            labels=parse_label_selector(query.first("labelSelector")),
            fields=fields.parse(query.first("fieldSelector")),
            reader=fields.reader,
            limit=max(_integer(query, "limit") or 0, 0),
            continue_token=query.first("continue"),
            resource_version=query.first("resourceVersion"),
            resource_version_match=query.first("resourceVersionMatch"),
            timeout_seconds=_integer(query, "timeoutSeconds"),
            allow_watch_bookmarks="allowWatchBookmarks" in query and parse_bool(query.first("allowWatchBookmarks")),
            send_initial_events=parse_bool(initial) if "sendInitialEvents" in query else None,
        )
    except SelectorError as error:
        raise errors.bad_request(str(error)) from None
    wrong = _wrong_for_watch(options) if watch else _wrong_for_list(options)
    if wrong:
        raise invalid_options("ListOptions", wrong)
    return options


def _integer(query: Query, name: str) -> int | None:
    """Raises 400."""
    if name not in query:
        return None
    try:
        return parse_int(query.first(name))
    except ValueError as error:
        raise errors.bad_request(str(error)) from None


def _wrong_for_list(options: ListOptions) -> list[FieldError]:
    wrong, match = [], options.resource_version_match
    field = "resourceVersionMatch"
    if match:
        if not options.resource_version:
            wrong.append(
                field_errors.forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if options.continue_token:
            wrong.append(field_errors.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER_THAN):
            wrong.append(field_errors.not_supported(field, match, [EXACT, NOT_OLDER_THAN, ""]))
        if match == EXACT and options.resource_version == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            wrong.append(field_errors.forbidden(field, detail))
    if options.send_initial_events is not None:
        wrong.append(field_errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return wrong


def _wrong_for_watch(options: ListOptions) -> list[FieldError]:
    wrong, match = [], options.resource_version_match
    field = "resourceVersionMatch"
    if options.send_initial_events is not None and match != NOT_OLDER_THAN:
        detail = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER_THAN}"
        wrong.append(field_errors.forbidden(field, detail))
    if match:
        if options.send_initial_events is None:
            detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            wrong.append(field_errors.forbidden(field, detail))
        if match != NOT_OLDER_THAN:
            wrong.append(field_errors.not_supported(field, match, [NOT_OLDER_THAN]))
    if options.continue_token:
        wrong.append(field_errors.forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    return wrong


_DEFAULT_WRITE = WriteOptions()


def write_options(query: Query, kind: str) -> WriteOptions:
    """``kind`` names the options in an error: CreateOptions, UpdateOptions or PatchOptions. Raises 422."""
    return _write_options(query, kind, [])


def patch_options(query: Query, *, apply: bool) -> WriteOptions:
    """The options of a patch. An apply needs a field manager and may be forced. Raises 422."""
    wrong: list[FieldError] = []
    if apply and not query.first("fieldManager"):
        wrong.append(field_errors.required("fieldManager", "is required for apply patch"))
    if not apply and "force" in query:
        wrong.append(field_errors.forbidden("force", "may not be specified for non-apply patch"))
    return _write_options(query, "PatchOptions", wrong)


def _write_options(query: Query, kind: str, wrong: list[FieldError]) -> WriteOptions:
    dry_run, validation = query.all("dryRun"), query.first("fieldValidation")
    manager = query.first("fieldManager")
    if not (dry_run or validation or manager or wrong):
        return _DEFAULT_WRITE
    wrong = wrong + validate_field_manager(manager, "fieldManager") + _wrong_dry_run(dry_run)
    if validation not in ("", "Ignore", "Warn", "Strict"):
        wrong.append(field_errors.not_supported("fieldValidation", validation, ["", "Ignore", "Strict", "Warn"]))
    if wrong:
        raise invalid_options(kind, wrong)
    return WriteOptions(
        dry_run=bool(dry_run),
        field_validation=validation or "Warn",
        field_manager=manager,
        force="force" in query and parse_bool(query.first("force")),
    )


def _wrong_dry_run(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [field_errors.not_supported("dryRun", list(values), ["All"])]


_DEFAULT_DELETE = DeleteOptions()


def delete_options_from_query(query: Query) -> DeleteOptions:
    """Raises 400 and 422."""
    if not query:
        return _DEFAULT_DELETE
    values: dict[str, Any] = {"dryRun": list(query.all("dryRun"))}
    if "gracePeriodSeconds" in query:
        values["gracePeriodSeconds"] = _integer(query, "gracePeriodSeconds")
    if "propagationPolicy" in query:
        values["propagationPolicy"] = query.first("propagationPolicy")
    if "orphanDependents" in query:
        values["orphanDependents"] = parse_bool(query.first("orphanDependents"))
    return delete_options(values)


_DELETE_TYPES = {
    "kind": (str, "string"),
    "apiVersion": (str, "string"),
    "gracePeriodSeconds": (int, "int64"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
    "orphanDependents": (bool, "bool"),
    "dryRun": (list, "[]string"),
    "preconditions": (dict, "v1.Preconditions"),
}


def delete_options(values: dict[str, Any]) -> DeleteOptions:
    """Checks the wire object. Raises 400 for a wrong type and 422 for a wrong value."""
    for name, (expected, go_type) in _DELETE_TYPES.items():
        value = values.get(name)
        if value is not None and (type(value) is not expected):
            raise _cannot_unmarshal(value, f"DeleteOptions.{name}", go_type)
    dry_run = values.get("dryRun") or []
    for value in dry_run:
        if not isinstance(value, str):
            raise _cannot_unmarshal(value, "DeleteOptions.dryRun", "string")
    policy, orphan = values.get("propagationPolicy"), values.get("orphanDependents")
    wrong = _wrong_policy(policy, orphan) + _wrong_dry_run(dry_run)
    if wrong:
        raise invalid_options("DeleteOptions", wrong)
    return DeleteOptions(
        dry_run=bool(dry_run),
        propagation_policy=policy,
        orphan_dependents=orphan,
        preconditions=_preconditions(values.get("preconditions") or {}),
    )


def _wrong_policy(policy: str | None, orphan: bool | None) -> list[FieldError]:  # noqa: FBT001 - a tri-state
    if policy is None:
        return []
    if orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        return [field_errors.invalid("propagationPolicy", policy, detail)]
    if policy not in POLICIES:
        return [field_errors.not_supported("propagationPolicy", policy, [*POLICIES, "nil"])]
    return []


def _preconditions(values: dict[str, Any]) -> Preconditions:
    for name in ("uid", "resourceVersion"):
        value = values.get(name)
        if value is not None and not isinstance(value, str):
            raise _cannot_unmarshal(value, f"Preconditions.preconditions.{name}", "string")
    return Preconditions(uid=values.get("uid"), resource_version=values.get("resourceVersion"))


def _cannot_unmarshal(value: Any, field: str, go_type: str) -> errors.APIError:
    found = json_type(value)
    return errors.bad_request(f"json: cannot unmarshal {found} into Go struct field {field} of type {go_type}")


_UNDECODED = re.compile("[\udc80-\udcff]")


def manager_name(request: Request, options: WriteOptions) -> str:
    """The ``fieldManager`` of the query, or else the program in the User-Agent; empty without both."""
    return options.field_manager or _program(request.header("user-agent"))


@bounded_cache(1024)
def _program(user_agent: str) -> str:
    """The text before the first slash, without unprintable characters, as in kube-apiserver."""
    # Headers are latin-1 here. Go reads UTF-8, and each invalid byte as U+FFFD.
    name = _UNDECODED.sub("\N{REPLACEMENT CHARACTER}", user_agent.encode("latin-1").decode(errors="surrogateescape"))
    name = name.partition("/")[0]
    kept = size = 0
    printable = [character for character in name if character.isprintable()]
    for character in printable:
        size += len(character.encode())
        if size > FIELD_MANAGER_LIMIT:
            break
        kept += 1
    return "".join(printable[:kept])
