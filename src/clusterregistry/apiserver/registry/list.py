"""Lists: selectors, the revision to read at, and pages of one snapshot.

A page's continue token names the snapshot's revision and the last key, in kube-apiserver's own form.
"""

from __future__ import annotations

import asyncio
import base64
import string
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter

import orjson

from clusterregistry.apimachinery.codecs import DecodeError, json_codec
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apimachinery.meta.field_selectors import NAME, FieldSelector, ReadField
from clusterregistry.apimachinery.meta.integers import parse_uint
from clusterregistry.apimachinery.meta.label_selectors import LabelSelector
from clusterregistry.apiserver.authz.view import View
from clusterregistry.apiserver.registry.errors import api_error
from clusterregistry.apiserver.registry.object_filter import EVERYTHING, ObjectFilter
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.errors import RevisionCompacted, StorageError
from clusterregistry.apiserver.storage.interface import KeyValue, Page
from clusterregistry.apiserver.storage.object_bytes import labels_of, name_of, namespace_of

EXACT = "Exact"
NOT_OLDER_THAN = "NotOlderThan"
_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 - the version of a continue token, no secret
_BASE64 = string.ascii_letters + string.digits + "-_"
_ANY_REVISION = -1
_SLICE = 64
"""Objects that are filtered between two looks at the clock: with the longest selector it takes some milliseconds."""

_WITHOUT_A_PAUSE = 0.005
"""Seconds of filtering after which other requests have their turn."""

_RARE = 8
"""The share of objects, as one in so many, up to which each is looked up: it takes as long as to pass by so many."""

_UNDISTURBED = 3
"""Attempts to compare objects some at a time, when rights change meanwhile, before it is done without a pause."""

_key_of = attrgetter("key")

_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


def read_name(kv: KeyValue) -> ReadField:
    """Reads the fields of an object of a kind that has no other field than its name."""
    return lambda field: name_of(kv) if field == NAME else ""


@dataclass(slots=True, kw_only=True)
class ListOptions:
    """The query of a list or watch."""

    labels: LabelSelector
    fields: FieldSelector
    namespace: str = ""
    """The namespace whose objects are selected; empty: all, or the resource is not namespaced."""
    reader: Callable[[KeyValue], ReadField] = read_name
    """Reads the fields of an object."""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    visible: ObjectFilter = EVERYTHING
    """The objects that exist for this client, before anything is selected."""

    @property
    def selects_all(self) -> bool:
        return self.labels.empty and self.fields.empty and not self.namespace

    def selects(self, kv: KeyValue) -> bool:
        return (
            (not self.namespace or namespace_of(kv) == self.namespace)
            and (self.fields.empty or self.fields.matches(self.reader(kv)))
            and (self.labels.empty or self.labels.matches(labels_of(kv)))
        )

    def prefix_in(self, store: Store) -> str:
        """The prefix of the keys of a store among which the options select."""
        return f"{store.prefix}{self.namespace}/" if self.namespace else store.prefix


@dataclass(frozen=True, slots=True)
class Listed:
    """A list, or one page of it. ``remaining`` is None where it is not known exactly."""

    items: Sequence[KeyValue]
    revision: int
    continue_token: str = ""
    remaining: int | None = None
    is_everything: bool = False
    """Whether it has all objects of its revision, for a client that may see all of them."""


async def list_objects(store: Store, options: ListOptions) -> Listed:
    """Raises 400 for a bad token or version, 410 for a compacted revision, 504 for one that does not come in time."""
    try:
        if options.continue_token:
            return await _continue(store, options)
        revision, limit = await _start(store, options)
        return await _page(store, options, revision=revision, limit=limit, after="")
    except StorageError as error:
        raise api_error(error) from error


async def wait_until_fresh(store: Store, revision: int) -> None:
    """Waits a moment for a revision that a client has seen at another replica. Raises 504."""
    try:
        await store.storage.wait_for(revision)
    except StorageError as error:
        raise api_error(error) from error


async def _start(store: Store, options: ListOptions) -> tuple[int, int]:
    """The revision to read at (0: now) and the limit that counts."""
    try:
        wanted = parse_revision(options.resource_version)
    except errors.APIError as error:
        raise errors.bad_request(f"invalid resource version: {error}") from None
    if not wanted and options.resource_version:
        # As in kube-apiserver: a list with resourceVersion=0 is all that the cache has, whatever the limit.
        return store.storage.revision, 0
    if not wanted:
        return 0, options.limit
    match = options.resource_version_match
    exact = match == EXACT or (not match and options.limit > 0)
    if not exact:
        await store.storage.wait_for(wanted)
        return store.storage.revision, options.limit
    if wanted > store.storage.revision and wanted > (current := await store.storage.current_revision()):
        # As kube-apiserver's storage: for an exact revision it neither waits nor asks to try again.
        raise errors.resource_version_too_large(wanted, current, retry_after=0)
    return wanted, options.limit


async def _continue(store: Store, options: ListOptions) -> Listed:
    if options.resource_version not in ("", "0"):
        raise errors.bad_request("specifying resource version is not allowed when using continue")
    revision, after = decode_token(
        options.continue_token, with_namespace=store.resource.namespaced and not options.namespace
    )
    try:
        limit = 0 if options.resource_version == "0" else options.limit
        return await _page(
            store, options, revision=max(revision, 0), limit=limit, after=options.prefix_in(store) + after
        )
    except RevisionCompacted:
        expired = errors.gone(_CONTINUE_TOO_OLD)
        expired.status["metadata"] = {"continue": encode_token(_ANY_REVISION, after)}
        raise expired from None


async def _page(store: Store, options: ListOptions, *, revision: int, limit: int, after: str) -> Listed:
    if options.labels.empty and options.fields.empty:
        is_whole = options.selects_all and options.visible.view() is None
        page = await _read(store, options, revision=revision, limit=limit, after=after)
        if not page.remaining:
            return Listed(page.items, page.revision, is_everything=is_whole and not after)
        token = encode_token(page.revision, page.items[-1].key.removeprefix(options.prefix_in(store)))
        return Listed(page.items, page.revision, token, page.remaining)
    if options.fields.name is None or (store.resource.namespaced and not options.namespace):
        return await _selected_page(store, options, revision=revision, limit=limit, after=after)
    # One name is a range of one key, as in kube-apiserver: there never is a second page.
    page = await _read(store, options, revision=revision, after=after, name=options.fields.name)
    return Listed(await selected(options, page.items), page.revision)


async def _read(  # noqa: PLR0913 - all but two by keyword
    store: Store, options: ListOptions, *, revision: int, after: str, limit: int = 0, name: str = ""
) -> Page:
    """The objects that the client may see, of one name or all."""
    prefix = options.prefix_in(store) + name
    if options.visible.view() is None:
        return await store.storage.list(prefix, revision=revision, after=after, limit=limit)
    return await _visible_page(store, options.visible, prefix=prefix, revision=revision, after=after, limit=limit)


async def _selected_page(store: Store, options: ListOptions, *, revision: int, limit: int, after: str) -> Listed:
    """The objects that the selectors match, found by the index where it can."""
    page = None
    if options.visible.view() is None:
        page = await store.index.page(
            options.labels, options.fields, prefix=options.prefix_in(store), revision=revision, after=after
        )
    is_exact = page is not None and options.labels.is_one_narrowing and options.fields.empty
    if page is None:
        page = await _read(store, options, revision=revision, after=after)
    found = page.items[: limit or None] if is_exact else await selected(options, page.items, limit=limit)
    if not limit or len(found) < limit:
        return Listed(found, page.revision)
    # As in kube-apiserver: there is a next page as soon as there are objects after this one, selected or not.
    last = found[-1].key
    following = await _read(store, options, revision=page.revision, after=last, limit=1)
    token = encode_token(page.revision, last.removeprefix(options.prefix_in(store))) if following.items else ""
    return Listed(found, page.revision, token)


async def selected(options: ListOptions, items: Sequence[KeyValue], *, limit: int = 0) -> list[KeyValue]:
    """The objects that the selectors match, up to a limit. Yields to the loop however long the selector is."""
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


async def _visible_page(  # noqa: PLR0913 - all but the first two by keyword
    store: Store, visible: ObjectFilter, *, prefix: str, revision: int, after: str, limit: int
) -> Page:
    """A page of the objects that the client may see. Raises StorageError.

    The rights are those after the page's revision: a watch from there on must have missed no change of rights.
    """
    page = await store.storage.list(prefix, revision=revision, after=after)
    await visible.caught_up(page.revision)
    view = visible.view()
    if view is not None and page.revision == store.storage.revision and not store.resource.namespaced:
        items: Sequence[KeyValue] = _present(store, view, page.items)
    else:
        items = await _shown(store, visible, page.items)
    cut = limit if 0 < limit < len(items) else len(items)
    return Page(items[:cut], page.revision, len(items) - cut)


def _present(store: Store, view: View, items: Sequence[KeyValue]) -> list[KeyValue]:
    """Those of all objects in a range that a view has, as of now: by their keys, without a look at each object.

    Few are looked up, so that the others take no time. Else no step but the loops of C is made for each object.
    """
    wanted = set(map(store.prefix.__add__, view.present_keys()))
    if len(wanted) * _RARE > len(items):
        return list(compress(items, map(wanted.__contains__, map(_key_of, items))))
    first, last = (items[0].key, items[-1].key) if items else ("", "")
    found = [store.storage.get_stale(key) for key in sorted(wanted) if first <= key <= last]
    return [kv for kv in found if kv is not None]


async def _shown(store: Store, visible: ObjectFilter, items: Sequence[KeyValue]) -> Sequence[KeyValue]:
    """Those of some objects that the client may see, compared some at a time, unless its rights change in between."""
    for _ in range(_UNDISTURBED):
        view = visible.view()
        found = await _shown_in(store, view, items)
        if visible.view() == view:
            return found
    view = visible.view()
    return [kv for kv in items if view is None or view.shows(store.key_in(kv), kv)]


async def _shown_in(store: Store, view: View | None, items: Sequence[KeyValue]) -> Sequence[KeyValue]:
    if view is None:
        return items
    found: list[KeyValue] = []
    begun = time.monotonic()
    for start in range(0, len(items), _SLICE):
        if time.monotonic() - begun > _WITHOUT_A_PAUSE:
            await asyncio.sleep(0)
            begun = time.monotonic()
        found += [kv for kv in items[start : start + _SLICE] if view.shows(store.key_in(kv), kv)]
    return found


def parse_revision(text: str) -> int:
    """A resource version from a query; "" and "0" are 0. Raises 400."""
    try:
        return parse_uint(text) if text else 0
    except ValueError as error:
        raise errors.bad_request(f"resourceVersion: Invalid value: {quoted(text)}: {error}") from None


def encode_token(revision: int, last: str) -> str:
    """The token for the page after the key ``last``."""
    token = {"v": _TOKEN_VERSION, "rv": revision, "start": last + "\0"}
    return base64.urlsafe_b64encode(orjson.dumps(token)).rstrip(b"=").decode()


def decode_token(text: str, *, with_namespace: bool = False) -> tuple[int, str]:
    """The revision and the last key of the page before, which may have a namespace. Raises 400."""
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
    if not isinstance(start, str) or not start or start.count("/") > with_namespace:
        raise _invalid_token(f"encoded start key empty or not a name (version {_TOKEN_VERSION})")
    return revision, start.removesuffix("\0")


def _invalid_token(detail: str) -> errors.APIError:
    return errors.bad_request(f"invalid continue token: continue key is not valid: {detail}")
