"""What is noted of one request while it is served: references only, for rendering is the writing thread's work."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from clusterregistry.apimachinery.codecs import DecodeError, json_codec, yaml_codec
from clusterregistry.apiserver.audit.event_queue import EventQueue
from clusterregistry.apiserver.audit.policy import NOTHING, Policy, Recording
from clusterregistry.apiserver.audit.settings import REQUEST_RECEIVED, Counts, Level, Stage
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.http.response import Answer, Response

LARGEST = 1024 * 1024
LARGEST_YAML = 64 * 1024
"""Bytes above which a body is left out: one event must not hold up all others. YAML takes long to read."""

LARGEST_NAMING_BODY = 64 * 1024
"""Below the level Request a body is only looked at for the name of what it creates: not if it is larger."""

_NAMING_VERBS = frozenset({"create", "update"})
_LARGEST_STATUS = 4096
_STATUS_VERBS = frozenset({"delete", "deletecollection"})
"""Verbs whose answer may be a Status that is worth telling, and how large that is at most."""

_OVERHEAD = 1024
"""Bytes that an event takes beside its bodies, roughly."""


class Trail:
    """One request that is recorded. Everything after ``decision`` is known only once it is answered."""

    __slots__ = (
        "address",
        "answer",
        "answer_type",
        "body",
        "body_type",
        "code",
        "decision",
        "forwarded_for",
        "id",
        "impersonated",
        "info",
        "query_string",
        "real_ip",
        "received",
        "recording",
        "status",
        "truncated",
        "user",
        "user_agent",
    )

    def __init__(self, request: Request, recording: Recording) -> None:
        self.recording = recording
        self.id = request.id
        self.info = request.info
        self.query_string = request.query_string
        self.user: User | None = request.user
        self.user_agent = request.header("user-agent")
        self.forwarded_for = request.header("x-forwarded-for")
        self.real_ip = request.header("x-real-ip")
        self.address = request.client_address
        self.received = request.received_at
        self.decision: Any = None
        self.impersonated: User | None = None
        self.code = 0
        self.status: dict[str, Any] | None = None
        self.body: bytes | None = None
        self.body_type = ""
        self.truncated = False
        """Whether a body is missing because of its size."""
        self.answer: Sequence[bytes] = ()
        self.answer_type = b""
        if recording.level >= Level.Request or request.info.verb in _NAMING_VERBS:
            self.body_type = request.header("content-type")
            request.body_observer = self._keep_body

    def _keep_body(self, body: bytes) -> None:
        is_shown = self.recording.level >= Level.Request
        if len(body) <= (LARGEST if is_shown else LARGEST_NAMING_BODY):
            self.body = body
        else:
            self.truncated = is_shown

    def failed(self, request: Request, status: dict[str, Any]) -> None:
        """Answered with an error."""
        self._note_way(request)
        self.status = status
        self.code = int(status["code"])

    def answered(self, request: Request, answer: Answer) -> None:
        self._note_way(request)
        self.code = answer.status
        if not isinstance(answer, Response) or not self._wants(answer):
            return
        if answer.length <= LARGEST:
            self.answer, self.answer_type = tuple(answer.body), answer.content_type
        else:  # what waits to be written must not hold much of the memory
            self.truncated = True

    def _note_way(self, request: Request) -> None:
        """What the filters between us and the handler have found out."""
        self.decision = request.decision
        if request.user is not self.user:
            self.impersonated = request.user

    def _wants(self, answer: Response) -> bool:
        if self.recording.level is Level.RequestResponse:
            return True
        return self.info.verb in _STATUS_VERBS and answer.length <= _LARGEST_STATUS

    @property
    def size(self) -> int:
        """Bytes that wait with it, roughly."""
        size = _OVERHEAD + len(self.info.path) + len(self.query_string) + len(self.user_agent)
        return size + (len(self.body) if self.body else 0) + sum(map(len, self.answer))


class Event:
    """A trail at one of its stages."""

    __slots__ = ("at", "stage", "trail")

    def __init__(self, trail: Trail, stage: Stage, at: float) -> None:
        self.trail, self.stage, self.at = trail, stage, at


class Audit:
    """Begins trails as the policy says, and queues their events. Never waits, never raises."""

    def __init__(
        self, policy: Policy, queue: EventQueue[Event], counts: Counts, *, now: Callable[[], float] = time.time
    ) -> None:
        self._policy, self._queue, self._counts, self.now = policy, queue, counts, now

    def trail(self, request: Request) -> Trail | None:
        """The trail of a request that is to be recorded."""
        recording = self._policy.recording(request.user, request.info)
        self._counts.levels[recording.level] += 1
        return Trail(request, recording) if recording.level is not NOTHING.level else None

    def record(self, trail: Trail, stage: Stage) -> None:
        if stage in trail.recording.omitted_stages:
            return
        at = trail.received if stage is REQUEST_RECEIVED else self.now()
        self._counts.events += 1
        self._queue.put(Event(trail, stage, at), trail.size)


# Bodies, decoded in the writing thread


class _TooLarge:
    """A body that is left out for its size alone."""


TOO_LARGE: Final = _TooLarge()
_PROTOBUF = "application/vnd.kubernetes.protobuf"


def decoded(body: bytes, content_type: str) -> Any:
    """The value of a body in JSON, YAML or protobuf; TOO_LARGE, or None for any other, and for what is none of them."""
    media_type = content_type.partition(";")[0].strip().lower()
    if not body or not media_type.endswith(("json", "yaml", _PROTOBUF)):
        return None
    if len(body) > (LARGEST_YAML if media_type.endswith("yaml") and body[:1] != b"{" else LARGEST):
        return TOO_LARGE
    try:
        if media_type == _PROTOBUF:
            return _protobuf(body)
        if media_type.endswith("yaml"):
            return yaml_codec.decode(body, strict=False).value
        return _json(body)
    except DecodeError:
        return None


def _protobuf(body: bytes) -> Any:
    from clusterregistry.apimachinery.codecs import protobuf_codec  # noqa: PLC0415 - who answered has imported it by now

    return protobuf_codec.decode(body).value


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json_codec.decode(body, strict=False).value


def without_managed_fields(value: Any) -> Any:
    """The object, or the list of them, without ``metadata.managedFields``."""
    if not isinstance(value, dict):
        return value
    value = _unmanaged(value)
    if isinstance(items := value.get("items"), list):
        value["items"] = [_unmanaged(item) if isinstance(item, dict) else item for item in items]
    return value


def _unmanaged(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return dict(obj)
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
