"""The check's terms in the registry's: intents as requests, answers as outcomes, watch events as changes.

An object keeps the tokens of a patch and of an apply as labels. Where it keeps that of its last whole write, and that
of a write of its status, depends on its resource.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.apiserver.api.objects import APPLY_PATCH, MERGE_PATCH
from tests.system.faults.connections import Answer
from tests.system.faults.records import Action, Change, Intent, Kind, Outcome, Result, Selection, namespace_of
from tests.system.faults.resources import (
    APPLIED,
    PATCHED,
    collection_path,
    object_path,
    put,
    resource_of,
    resource_of_collection,
    resource_of_kind,
)

MANAGER = "applier"
JSON = "application/json"

OK, CREATED, FORBIDDEN, NOT_FOUND, CONFLICT, TOO_MANY, FIRST_OF_SERVER = 200, 201, 403, 404, 409, 429, 500

CONDITIONAL = frozenset({Action.UPDATE, Action.PATCH, Action.STATUS, Action.DELETE})
"""What may be refused for the version that it is based on."""
CREATING = frozenset({Action.CREATE, Action.APPLY})
"""What makes an object that is not there, whatever its resource."""


class Request(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    content_type: str = ""


def request_of(intent: Intent, *, more: str = "") -> Request:
    """``more`` is what the page before said of a list."""
    if intent.action is Action.LIST:
        return Request("GET", _with_query(collection_path(intent.collection), _list_query(intent, more=more)))
    expected = {} if intent.expected is None else {"resourceVersion": str(intent.expected)}
    path, resource = object_path(intent.key), resource_of(intent.key)
    match intent.action:
        case Action.CREATE:
            return Request("POST", path.rpartition("/")[0], _encoded(resource.make(intent.key, intent.token)), JSON)
        case Action.UPDATE:
            return Request("PUT", path, _encoded(resource.make(intent.key, intent.token, **expected)), JSON)
        case Action.PATCH:
            patch = {"metadata": {"labels": {PATCHED: intent.token}, **expected}}
            return Request("PATCH", path, _encoded(patch), MERGE_PATCH)
        case Action.APPLY:
            applied = resource.make(intent.key, None, labels={APPLIED: intent.token})
            return Request("PATCH", f"{path}?fieldManager={MANAGER}&force=true", _encoded(applied), APPLY_PATCH)
        case Action.STATUS:
            observed = put({"metadata": expected}, resource.status, intent.token)
            return Request("PATCH", f"{path}/status", _encoded(observed), MERGE_PATCH)
        case Action.DELETE:
            conditions = {**expected, **({"uid": intent.uid} if intent.uid else {})}
            options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": conditions}
            return Request("DELETE", path, _encoded(options), JSON)
        case Action.GET:
            return Request("GET", _with_query(path, expected))


def outcome_of(intent: Intent, answer: Answer) -> Outcome:
    """What an answer says. One that makes no sense is ``UNEXPECTED``, and for the check to report."""
    try:
        body = json.loads(answer.body)
        if answer.status in (OK, CREATED):
            return _success(intent, body)
        result = _refusal(intent, answer.status, body)
    except (ValueError, KeyError, TypeError, AttributeError):
        result = Result.UNEXPECTED
    return Outcome(result=result, status=answer.status, text=_text(answer))


def watch_path(*, since: int, seconds: int, selection: Selection, collection: str) -> str:
    query = {"watch": "true", "resourceVersion": since, "allowWatchBookmarks": "true", "timeoutSeconds": seconds}
    query.update({"labelSelector": str(selection)} if selection else {})
    return f"{collection_path(collection)}?{urlencode(query)}"


def change_of(event: dict[str, Any]) -> Change:
    resource = resource_of_kind(event["object"]["kind"])
    revision, uid, value = resource.version_of(event["object"])
    return Change(revision, Kind(event["type"]), resource.key_of(event["object"]), uid, value)


def joined(pages: Outcome, page: Outcome) -> Outcome:
    """A list as far as it goes with its next page."""
    if page.result is not Result.OK:
        return page
    before, items = pages.items or {}, page.items or {}
    if page.revision != pages.revision or before.keys() & items.keys():
        text = f"a page of revision {page.revision} with {[*items]} came after {[*before]} of {pages.revision}"
        return Outcome(result=Result.UNEXPECTED, text=text)
    return replace(page, items={**before, **items})


def _list_query(intent: Intent, *, more: str) -> dict[str, str]:
    """The revision is for the first page; what more there is says it for the others."""
    query = {"labelSelector": str(intent.selection)} if intent.selection else {}
    query.update({"limit": str(intent.limit)} if intent.limit else {})
    if more:
        return {**query, "continue": more}
    return query if intent.expected is None else {**query, "resourceVersion": str(intent.expected)}


def _success(intent: Intent, body: dict[str, Any]) -> Outcome:
    if intent.action is Action.LIST:
        resource = resource_of_collection(intent.collection)
        items = {resource.key_of(item): resource.version_of(item) for item in body["items"]}
        revision, more = int(body["metadata"]["resourceVersion"]), body["metadata"].get("continue", "")
        return Outcome(result=Result.OK, revision=revision, items=items, more=more)
    if intent.action is Action.DELETE and body["kind"] == "Status":
        return Outcome(result=Result.OK, uid=body["details"]["uid"])
    resource = resource_of(intent.key)
    if (shown := resource.key_of(body)) != intent.key:
        raise ValueError(f"an answer about {shown}")
    version = resource.version_of(body)
    return Outcome(result=Result.OK, revision=version.revision, uid=version.uid, version=version)


def _refusal(intent: Intent, status: int, body: dict[str, Any]) -> Result:
    if status >= FIRST_OF_SERVER:
        return Result.UNKNOWN
    if status == TOO_MANY:
        return Result.REFUSED
    creates = intent.action in CREATING or intent.creates_by_update
    if namespace_of(intent.key) and creates and status in (FORBIDDEN, NOT_FOUND):
        return _closed_door(intent, status, body)
    if status == NOT_FOUND and intent.action not in (*CREATING, Action.LIST):
        return Result.ABSENT
    if status == CONFLICT and intent.action is Action.CREATE and body.get("reason") == "AlreadyExists":
        return Result.EXISTS
    if status == CONFLICT and intent.action in CONDITIONAL:
        return Result.CONFLICT
    return Result.UNEXPECTED


def _closed_door(intent: Intent, status: int, body: dict[str, Any]) -> Result:
    """A refusal for the state of the namespace, which it must name."""
    details, namespace = body["details"], namespace_of(intent.key).rpartition("/")[2]
    if status == NOT_FOUND:
        return Result.HOMELESS if (details["kind"], details["name"]) == ("namespaces", namespace) else Result.UNEXPECTED
    return Result.SHUT_OUT if details["causes"][0]["reason"] == "NamespaceTerminating" else Result.UNEXPECTED


def _text(answer: Answer) -> str:
    return f"{answer.status} {answer.body[:500].decode(errors='replace')}"


def _encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def _with_query(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path
