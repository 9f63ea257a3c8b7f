"""The request as filters and handlers see it: an HTTP request, its user, and what authorization decided."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.forbidden import forbidden
from clusterregistry.apiserver.authz.group_rights import GroupRights
from clusterregistry.apiserver.authz.interface import Attributes, Authorizer, Decision, decided
from clusterregistry.apiserver.endpoints.request_info import RequestInfo
from clusterregistry.apiserver.http.request import BODY_LIMIT, BodyTooLargeError, HttpRequest
from clusterregistry.apiserver.http.request_body import IncomingRequest
from clusterregistry.apiserver.http.response import Reply
from clusterregistry.apiserver.registry.object_filter import EVERYTHING, ObjectFilter

_NOT_PARSED_YET = RequestInfo(path="", verb="")


class InFlightSlot(Protocol):
    """The place of a request among those in flight. It is given up while the body is awaited."""

    async def receive(self, request: Request) -> bytes:
        """The whole body, by ``read_whole``. Raises 429."""


class Request(HttpRequest):
    """A request to the API server. Each attribute is set by the filter that is named after it."""

    # Class attributes are the defaults: to set each of them for every request costs as much as the request line.
    id = ""
    """The audit id."""
    info = _NOT_PARSED_YET
    user: User = None  # type: ignore[assignment]
    """None outside of the authentication filter."""
    impersonator: User | None = None
    """The authenticated user of a request that impersonates ``user``."""
    authorizer: Authorizer
    decision: Decision | None = None
    """The decision of authorization; None before that."""
    visible: ObjectFilter = EVERYTHING
    """The objects that the user may see, or delete in a request that deletes a collection."""
    group_rights: GroupRights | None = None
    """The rights that have let the request pass: they are decided on again with each object. None: other rights."""
    in_flight_slot: InFlightSlot | None = None
    received_at = 0.0
    """Seconds since 1970; only set with an audit log."""
    recorded_warnings: WarningRecorder | None = None
    """The warnings, None as long as there are none: few requests have any."""

    @property
    def warnings(self) -> WarningRecorder:
        if self.recorded_warnings is None:
            self.recorded_warnings = WarningRecorder()
        return self.recorded_warnings

    async def body(self) -> bytes:
        """The whole body. Raises 413 above BODY_LIMIT, 429 and ClientGoneError."""
        try:
            if self.in_flight_slot is not None and self.awaits_body:
                return await self.in_flight_slot.receive(self)
            return await self.read_whole()
        except BodyTooLargeError:
            raise errors.request_entity_too_large(f"limit is {BODY_LIMIT}") from None


class ServedRequest(Request, IncomingRequest):
    """A request that the HTTP server received."""


Handler = Callable[[Request], Reply]
"""Responds to a request.

A handler that knows its whole response returns it at once. Only a handler that has to wait returns an awaitable, and so
do the filters around it: a request that waits for nothing needs neither coroutines nor a task.
"""

Filter = Callable[[Handler], Handler]
"""Wraps the next handler with one that acts before it, after it, or instead of it."""


def attributes_of(request: Request) -> Attributes:
    """The authorization attributes of a request."""
    memo = request.info.memo
    known: Attributes | None = memo.get(attributes_of)
    if known is None or known.user is not request.user:
        # The same user repeats a request more often than another user makes it.
        known = memo[attributes_of] = attributes_with(request)
    return known


async def require(request: Request, verb: str, *, name: str | None = None) -> None:
    """Checks another verb or name than those of the request: a PUT or an apply may create. Raises 403."""
    attributes = attributes_with(request, verb, name=name)
    decision = await decided(request.authorizer, attributes)
    if not decision.allowed:
        raise forbidden(attributes, decision)


def attributes_with(request: Request, verb: str = "", *, name: str | None = None) -> Attributes:
    """The authorization attributes of a request, but for another verb or name."""
    info = request.info
    # By position: keywords cost a dictionary, and many requests have attributes of their own.
    return Attributes(
        request.user,
        verb or info.verb,
        info.is_resource,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.name if name is None else name,
        info.namespace,
        info.path,
    )


_TOTAL_LIMIT = 4 * 1024
_ITEM_LIMIT = 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class WarningRecorder:
    """Collects warnings, each once, and bounds the headers that they make, as kube-apiserver does.

    Above 4096 characters in all, each warning is cut to 256 and the ones that do not fit are left out.
    """

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[str, None] | None = None

    def add(self, text: str) -> None:
        if text:
            if self._texts is None:
                self._texts = {}
            self._texts[text] = None

    def checkpoint(self) -> Callable[[], None]:
        """Returns a function that removes all warnings added from now on; it can be called several times."""
        before = self._texts and dict(self._texts)

        def restore() -> None:
            self._texts = before and dict(before)

        return restore

    def headers(self) -> list[tuple[bytes, bytes]]:
        if not self._texts:
            return []
        texts = list(self._texts)
        if sum(map(len, texts)) > _TOTAL_LIMIT:
            texts = _cut(texts)
        return [(b"warning", _header(text)) for text in texts]


def _cut(texts: list[str]) -> list[str]:
    kept, written = [], 0
    for text in texts:
        if written >= _TOTAL_LIMIT:
            break
        kept.append(text[:_ITEM_LIMIT])
        written += len(kept[-1])
    return kept


def _header(text: str) -> bytes:
    quoted = _CONTROL.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode()
