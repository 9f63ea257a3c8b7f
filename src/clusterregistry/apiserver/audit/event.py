"""Renders events as lines of JSON, with kube-apiserver's fields in its order. Runs in the writing thread."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import orjson

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apiserver.audit.redaction import Masker
from clusterregistry.apiserver.audit.settings import REQUEST_RECEIVED, Level
from clusterregistry.apiserver.audit.trail import TOO_LARGE, Event, Trail, decoded, without_managed_fields
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.endpoints.source_addresses import source_addresses

_GO_KEEPS = "/$&+,:;=@~"
"""Characters that Go does not escape in a path, besides letters, digits and ``-_.~``."""

_STATUS_FIELDS = ("metadata", "status", "message", "reason", "details", "code")
_SECRET_RESOURCES = frozenset({("authentication.k8s.io", "tokenreviews")})
"""Kinds whose only content is a credential."""

_TRUNCATED = "audit.k8s.io/truncated"

_CACHED = 4096
_is_own_id = re.compile("[0-9a-f-]{36}").fullmatch

Fields = dict[str, Any]


class Renderer:
    """Renders an event as a line."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        # Most requests repeat the path, query and user agent of another one.
        self._path = bounded_cache(_CACHED)(self._masked_path)
        self._query = bounded_cache(_CACHED)(self._masked_query)
        self._user_agent = bounded_cache(_CACHED)(masker.text)

    def line(self, event: Event) -> bytes:
        """Never fails for any request: bodies that cannot be encoded are left out."""
        try:
            return _encoded(self._fields(event, with_bodies=True))
        except (TypeError, RecursionError):  # orjson's errors are TypeErrors
            return _encoded(self._fields(event, with_bodies=False))

    def _fields(self, event: Event, *, with_bodies: bool) -> Fields:
        trail, is_begun = event.trail, event.stage != REQUEST_RECEIVED
        fields: Fields = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": trail.recording.level.shown,
            "auditID": trail.id if _is_own_id(trail.id) else self._masker.text(trail.id),
            "stage": event.stage,
            "requestURI": self._uri(trail),
            "verb": trail.info.verb,
            "user": self._user(trail.user),
        }
        if is_begun and trail.impersonated is not None:
            fields["impersonatedUser"] = self._user(trail.impersonated)
        fields |= self._origin(trail)
        outcome = _Outcome(trail, self._masker, with_bodies=with_bodies) if is_begun else None
        if trail.info.is_resource:
            fields["objectRef"] = _object_ref(trail, outcome.sent if outcome else None)
        if outcome:
            fields |= outcome.fields()
        fields["requestReceivedTimestamp"] = _time(trail.received)
        fields["stageTimestamp"] = _time(event.at)
        if outcome and (annotations := outcome.annotations()):
            fields["annotations"] = annotations
        return fields

    def _user(self, user: User | None) -> Fields:
        if user is None:
            return {}
        found: Fields = {"username": user.name, "uid": user.uid, "groups": user.groups}
        if user.extra:  # it may come from headers
            found["extra"] = self._masker.json({key: list(values) for key, values in user.extra.items()})
        return {name: value for name, value in found.items() if value}

    def _uri(self, trail: Trail) -> str:
        path, query = self._path(trail.info.path), trail.query_string
        return f"{path}?{self._query(query)}" if query else path

    def _masked_path(self, path: str) -> str:
        return quote(self._masker.text(path), safe=_GO_KEEPS)

    def _masked_query(self, query: bytes) -> str:
        return self._masker.query(query.decode("utf-8", "replace"))

    def _origin(self, trail: Trail) -> Fields:
        addresses = source_addresses(forwarded_for=trail.forwarded_for, real_ip=trail.real_ip, peer=trail.address)
        fields: Fields = {"sourceIPs": addresses} if addresses else {}
        if agent := trail.user_agent:
            fields["userAgent"] = self._user_agent(agent)
        return fields


class _Outcome:
    """The outcome of a request, known from the first byte of the answer on."""

    def __init__(self, trail: Trail, masker: Masker, *, with_bodies: bool) -> None:
        self._trail, self._masker = trail, masker
        self._level = trail.recording.level
        self.sent = decoded(trail.body, trail.body_type) if trail.body and with_bodies else None
        self._answered = self._answer() if with_bodies else trail.status
        self._shows = with_bodies and (trail.info.group, trail.info.resource) not in _SECRET_RESOURCES

    def _answer(self) -> Any:
        trail = self._trail
        if trail.status is not None or not trail.answer:
            return trail.status
        return decoded(b"".join(trail.answer), trail.answer_type.decode())

    def fields(self) -> Fields:
        fields: Fields = {"responseStatus": self._status()}
        if self._shows and self._level >= Level.Request:
            fields |= self._shown("requestObject", self.sent)
        if self._shows and self._level >= Level.RequestResponse:
            fields |= self._shown("responseObject", self._answered)
        return fields

    def annotations(self) -> dict[str, str]:
        found = {}
        is_shown = self._level >= Level.Request
        if self._trail.truncated or (is_shown and TOO_LARGE in (self.sent, self._answered)):
            found[_TRUNCATED] = "true"
        if (decision := self._trail.decision) is not None:
            found["authorization.k8s.io/decision"] = "allow" if decision.allowed else "forbid"
            found["authorization.k8s.io/reason"] = self._masker.text(decision.reason)
        return found

    def _status(self) -> Fields:
        answered = self._answered
        status: Fields = {"metadata": {}}
        if isinstance(answered, dict) and answered.get("kind") == "Status":
            status |= {name: answered[name] for name in _STATUS_FIELDS if name in answered}
            status = self._masker.json(status)
        return status | {"code": self._trail.code}

    def _shown(self, name: str, value: Any) -> Fields:
        if value is None or value is TOO_LARGE:
            return {}
        if self._trail.recording.omits_managed_fields:
            value = without_managed_fields(value)
        return {name: self._masker.json(value)}


def _object_ref(trail: Trail, sent: Any) -> Fields:
    """The object of a request. As in kube-apiserver, fields that are not in the path are those of the sent object."""
    info = trail.info
    metadata = sent.get("metadata") if isinstance(sent, dict) and info.verb in ("create", "update") else None
    if not isinstance(metadata, dict):
        metadata = {}
    found = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name or metadata.get("name"),
        "uid": metadata.get("uid"),
        "apiGroup": info.group,
        "apiVersion": info.version,
        "resourceVersion": metadata.get("resourceVersion"),
        "subresource": info.subresource,
    }
    return {name: value for name, value in found.items() if value and isinstance(value, str)}


def _time(seconds: float) -> str:
    whole, micros = divmod(int(seconds * 1_000_000), 1_000_000)
    return f"{_second(whole)}.{micros:06}Z"


@lru_cache(maxsize=8)
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _encoded(fields: Fields) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
