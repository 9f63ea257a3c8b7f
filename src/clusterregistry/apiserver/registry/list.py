"""Lists: selectors, pages on one snapshot, and which revision a client is owed.

A page's continue token names the snapshot's revision and the last key, in kube-apiserver's own form.
"""

from __future__ import annotations

import asyncio
import base64
import string
import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from clusterregistry.apimachinery.codecs import DecodeError, json_codec
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apimachinery.meta.field_selectors import FieldSelector
from clusterregistry.apimachinery.meta.integers import parse_uint
from clusterregistry.apimachinery.meta.label_selectors import LabelSelector
from clusterregistry.apiserver.registry.errors import api_error
from clusterregistry.apiserver.registry.object_filter import EVERYTHING, ObjectFilter
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.errors import RevisionCompacted, StorageError
from clusterregistry.apiserver.storage.interface import KeyValue, Page
from clusterregistry.apiserver.storage.object_bytes import labels_of, name_of

EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"
_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 - the version of a continue token, no secret
_BASE64 = string.ascii_letters + string.digits + "-_"
_ANY_REVISION = -1
_SLICE = 64
"""Objects that are looked at before we look at the clock: with the longest selector it takes some milliseconds."""

_WITHOUT_A_PAUSE = 0.005
"""Seconds after which others have their turn."""

_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(slots=True, kw_only=True)
class ListOptions:
    """What a list or watch is asked for."""

    labels: LabelSelector
    fields: FieldSelector
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    visible: ObjectFilter = EVERYTHING
    """Which objects exist for this client, before anything is selected."""

    @property
    def selects_all(self) -> bool:
        return self.labels.empty and self.fields.empty

    def selects(self, kv: KeyValue) -> bool:
        return self.fields.matches(name_of(kv)) and (self.labels.empty or self.labels.matches(labels_of(kv)))


@dataclass(frozen=True, slots=True)
class Listed:
    """A list, or one page of it. ``remaining`` is None where a client must not rely on it."""

    items: Sequence[KeyValue]
    revision: int
    continue_token: str = ""
    remaining: int | None = None
    is_everything: bool = False
    """Whether it is all that there is at its revision, for a client that may see all of it."""


async def list_objects(store: Store, options: ListOptions) -> Listed:
    """Raises 400 for a bad token or version, 410 for what is compacted, 504 for what is yet to come."""
    if options.continue_token:
        return await _continued(store, options)
    revision, limit = await _start(store, options)
    return await _page(store, options, revision=revision, limit=limit, after="")


async def _start(store: Store, options: ListOptions) -> tuple[int, int]:
    """The revision to read at (0: now) and the limit that counts."""
    try:
        wanted = parse_revision(options.resource_version)
    except errors.APIError as error:
        raise errors.bad_request(f"invalid resource version: {error}") from None
    if not wanted and options.resource_version:
        # As kube-apiserver does: with resourceVersion=0 the cache answers, and answers all of it.
        return store.storage.revision, 0
    if not wanted:
        return 0, options.limit
    match = options.resource_version_match
    exact = match == EXACT or (not match and options.limit > 0)
    if not exact:
        await wait_until_fresh(store, wanted)
        return store.storage.revision, options.limit
    if wanted > store.storage.revision and wanted > (current := await _current_revision(store)):
        # As kube-apiserver's storage does: it neither waits for that one revision nor asks to try again.
        raise errors.resource_version_too_large(wanted, current, retry_after=0)
    return wanted, options.limit


async def _current_revision(store: Store) -> int:
    """That of the storage, which may have come further than this server has heard of."""
    try:
        return await store.storage.current_revision()
    except StorageError as error:
        raise api_error(error) from error


async def wait_until_fresh(store: Store, revision: int) -> None:
    """Waits a moment for a revision that a client has seen elsewhere. Raises 504."""
    try:
        await store.storage.wait_for(revision)
    except StorageError as error:
        raise api_error(error) from error


async def _continued(store: Store, options: ListOptions) -> Listed:
    if options.resource_version not in ("", "0"):
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    revision, after = decode_token(options.continue_token)
    try:
        limit = 0 if options.resource_version == "0" else options.limit
        return await _page(store, options, revision=max(revision, 0), limit=limit, after=store.prefix + after)
    except RevisionCompacted:
        expired = errors.gone(_CONTINUE_TOO_OLD)
        expired.status["metadata"] = {"continue": encode_token(_ANY_REVISION, after)}
        raise expired from None


async def _page(store: Store, options: ListOptions, *, revision: int, limit: int, after: str) -> Listed:
    try:
        if options.selects_all:
            sees_all = options.visible.names() is None
            page = await _all(store, options, revision=revision, limit=limit, after=after)
            return _whole(store, page, is_everything=sees_all and not after and not page.remaining)
        if options.fields.name is None:
            return await _selected(store, options, revision=revision, limit=limit, after=after)
        # One name is a range of one key, as in kube-apiserver: there never is a second page.
        page = await _all(store, options, revision=revision, after=after, name=options.fields.name)
        return Listed(await selected(options, page.items), page.revision)
    except StorageError as error:
        if options.continue_token and isinstance(error, RevisionCompacted):
            raise
        raise api_error(error) from error


async def _all(  # noqa: PLR0913 - all but two by keyword
    store: Store, options: ListOptions, *, revision: int, after: str, limit: int = 0, name: str = ""
) -> Page:
    """What the client may see, of one name or all. Raises StorageError."""
    prefix = store.prefix + name
    if options.visible.names() is None:
        return await store.storage.list(prefix, revision=revision, after=after, limit=limit)
    page = await store.storage.list(prefix, revision=revision, after=after)
    return await visible_page(page, options.visible, limit=limit)


async def _selected(store: Store, options: ListOptions, *, revision: int, limit: int, after: str) -> Listed:
    """What selectors leave. Raises StorageError."""
    page = None
    if options.visible.names() is None:
        page = await store.labels.page(options.labels, revision=revision, after=after)
    is_exact = page is not None and options.labels.is_one_narrowing and options.fields.empty
    if page is None:
        page = await _all(store, options, revision=revision, after=after)
    found = page.items[: limit or None] if is_exact else await selected(options, page.items, limit=limit)
    if not limit or len(found) < limit:
        return Listed(found, page.revision)
    # As kube-apiserver does: there is a next page as soon as there are objects behind this one, selected or not.
    last = found[-1].key
    behind = await _all(store, options, revision=page.revision, after=last, limit=1)
    token = encode_token(page.revision, last.removeprefix(store.prefix)) if behind.items else ""
    return Listed(found, page.revision, token)


async def selected(options: ListOptions, items: Sequence[KeyValue], *, limit: int = 0) -> list[KeyValue]:
    """Those that are selected, up to a limit. Others have their turn meanwhile, however long the selector is."""
    found: list[KeyValue] = []
    begun = time.monotonic()
    for start in range(0, len(items), _SLICE):
        if time.monotonic() - begun > _WITHOUT_A_PAUSE:
            await asyncio.sleep(0)
            begun = time.monotonic()
        found += filter(options.selects, items[start : start + _SLICE])
        if 0 < limit <= len(found):
            return found[:limit]
    return found


async def visible_page(page: Page, visible: ObjectFilter, *, limit: int = 0) -> Page:
    """A page of all objects as if only those existed that the client may see. Raises StorageError.

    Rights are those of after the page's revision: a watch from there on must have missed no change of them.
    """
    await visible.caught_up(page.revision)
    names = visible.names()
    items = page.items if names is None else [kv for kv in page.items if name_of(kv) in names]
    cut = limit if 0 < limit < len(items) else len(items)
    return Page(items[:cut], page.revision, len(items) - cut)


def _whole(store: Store, page: Page, *, is_everything: bool) -> Listed:
    if not page.remaining:
        return Listed(page.items, page.revision, is_everything=is_everything)
    last = page.items[-1].key.removeprefix(store.prefix)
    return Listed(page.items, page.revision, encode_token(page.revision, last), page.remaining)


def parse_revision(text: str) -> int:
    """A resource version from a query; "" and "0" are 0. Raises 400."""
    try:
        return parse_uint(text) if text else 0
    except ValueError as error:
        raise errors.bad_request(f"resourceVersion: Invalid value: {quoted(text)}: {error}") from None


def encode_token(revision: int, last: str) -> str:
    """The token for the page behind the key ``last``."""
    token = {"v": _TOKEN_VERSION, "rv": revision, "start": last + "\0"}
    return base64.urlsafe_b64encode(orjson.dumps(token)).rstrip(b"=").decode()


def decode_token(text: str) -> tuple[int, str]:
    """The revision and the last key of the page before. Raises 400."""
    encoded = text.rstrip("=")
    legal = len(encoded) - len(encoded.lstrip(_BASE64))
    if legal < len(encoded) or legal % 4 == 1:
        raise _invalid_token(f"illegal base64 data at input byte {min(legal, len(encoded) - 1)}")
    try:
        decoded = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        token = json_codec.decode(decoded, strict=False).value
    except DecodeError as error:
        raise _invalid_token(str(error)) from None
    if not isinstance(token, dict) or token.get("v") != _TOKEN_VERSION:
        found = token.get("v", "") if isinstance(token, dict) else ""
        raise _invalid_token(f"server does not recognize this encoded version {found}")
    revision, start = token.get("rv", 0), token.get("start", "")
    if not isinstance(revision, int) or (revision <= 0 and revision != _ANY_REVISION):
        raise _invalid_token(f"incorrect encoded start resourceVersion (version {_TOKEN_VERSION})")
    if not isinstance(start, str) or not start or "/" in start:
        raise _invalid_token(f"encoded start key empty or not a name (version {_TOKEN_VERSION})")
    return revision, start.removesuffix("\0")


def _invalid_token(detail: str) -> errors.APIError:
    return errors.bad_request(f"invalid continue token: continue key is not valid: {detail}")
