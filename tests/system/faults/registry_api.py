"""The check's terms in the registry's: intents as requests, answers as outcomes, watch events as changes.

An object keeps the token of its last whole write as its cloud provider, those of a patch and of an apply as labels,
and that of a write of its status as the version in there.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.apiserver.api.objects import APPLY_PATCH, CLUSTERS, MERGE_PATCH, cluster, path_of
from tests.system.faults.connections import Answer
from tests.system.faults.records import Action, Change, Intent, Kind, Outcome, Result, Selection, Value, Version

PATCHED, APPLIED = "patched", "applied"
MANAGER = "applier"
JSON = "application/json"

OK, CREATED, NOT_FOUND, CONFLICT, TOO_MANY, FIRST_OF_SERVER = 200, 201, 404, 409, 429, 500

CONDITIONAL = frozenset({Action.UPDATE, Action.PATCH, Action.STATUS, Action.DELETE})
"""What may be refused for the version that it is based on."""


class Request(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    content_type: str = ""


def request_of(intent: Intent, *, more: str = "") -> Request:
    """``more`` is what the page before said of a list."""
    expected = {} if intent.expected is None else {"resourceVersion": str(intent.expected)}
    path = path_of(intent.key)
    match intent.action:
        case Action.CREATE:
            return Request("POST", CLUSTERS, _encoded(cluster(intent.key, intent.token)), JSON)
        case Action.UPDATE:
            return Request("PUT", path, _encoded(cluster(intent.key, intent.token, **expected)), JSON)
        case Action.PATCH:
            patch = {"metadata": {"labels": {PATCHED: intent.token}, **expected}}
            return Request("PATCH", path, _encoded(patch), MERGE_PATCH)
        case Action.APPLY:
            applied = cluster(intent.key, None, labels={APPLIED: intent.token})
            return Request("PATCH", f"{path}?fieldManager={MANAGER}&force=true", _encoded(applied), APPLY_PATCH)
        case Action.STATUS:
            observed = {"metadata": expected, "status": {"version": {"kubernetes": intent.token}}}
            return Request("PATCH", f"{path}/status", _encoded(observed), MERGE_PATCH)
        case Action.DELETE:
            conditions = {**expected, **({"uid": intent.uid} if intent.uid else {})}
            options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": conditions}
            return Request("DELETE", path, _encoded(options), JSON)
        case Action.GET:
            return Request("GET", _with_query(path, expected))
        case Action.LIST:
            return Request("GET", _with_query(CLUSTERS, _list_query(intent, more=more)))


def outcome_of(intent: Intent, answer: Answer) -> Outcome:
    """What an answer says. One that makes no sense is ``UNEXPECTED``, and for the check to report."""
    try:
        body = json.loads(answer.body)
        if answer.status in (OK, CREATED):
            return _success(intent, body)
        result = _refusal(intent, answer.status, str(body.get("reason")))
    except (ValueError, KeyError, TypeError, AttributeError):
        result = Result.UNEXPECTED
    return Outcome(result=result, status=answer.status, text=_text(answer))


def watch_path(*, since: int, seconds: int, selection: Selection) -> str:
    query = {"watch": "true", "resourceVersion": since, "allowWatchBookmarks": "true", "timeoutSeconds": seconds}
    query.update({"labelSelector": str(selection)} if selection else {})
    return f"{CLUSTERS}?{urlencode(query)}"


def version_of(obj: dict[str, Any]) -> Version:
    metadata = obj["metadata"]
    labels = metadata.get("labels", {})
    value = Value(
        whole=obj.get("spec", {}).get("cloudProvider", {}).get("name", ""),
        patch=labels.get(PATCHED),
        applied=labels.get(APPLIED),
        status=obj.get("status", {}).get("version", {}).get("kubernetes"),
    )
    return Version(int(metadata["resourceVersion"]), metadata["uid"], value)


def change_of(event: dict[str, Any]) -> Change:
    revision, uid, value = version_of(event["object"])
    return Change(revision, Kind(event["type"]), event["object"]["metadata"]["name"], uid, value)


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
    if intent.action is Action.DELETE:
        return Outcome(result=Result.OK, uid=body["details"]["uid"])
    if intent.action is Action.LIST:
        items = {item["metadata"]["name"]: version_of(item) for item in body["items"]}
        revision, more = int(body["metadata"]["resourceVersion"]), body["metadata"].get("continue", "")
        return Outcome(result=Result.OK, revision=revision, items=items, more=more)
    version = version_of(body)
    return Outcome(result=Result.OK, revision=version.revision, uid=version.uid, version=version)


def _refusal(intent: Intent, status: int, reason: str) -> Result:
    if status >= FIRST_OF_SERVER:
        return Result.UNKNOWN
    if status == TOO_MANY:
        return Result.REFUSED
    if status == NOT_FOUND and intent.action not in (Action.CREATE, Action.APPLY, Action.LIST):
        return Result.ABSENT
    if status == CONFLICT and intent.action is Action.CREATE and reason == "AlreadyExists":
        return Result.EXISTS
    if status == CONFLICT and intent.action in CONDITIONAL:
        return Result.CONFLICT
    return Result.UNEXPECTED


def _text(answer: Answer) -> str:
    return f"{answer.status} {answer.body[:500].decode(errors='replace')}"


def _encoded(value: object) -> bytes:
    return json.dumps(value).encode()


def _with_query(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path
