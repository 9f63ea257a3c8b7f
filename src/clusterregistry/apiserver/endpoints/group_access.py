"""Decides on the very object that a request reads or writes, where rights by groups count.

The filter has let a request pass for the object as it was; what is answered, replaced or deleted may be another state
of it. ``registry.store`` calls what is here in each attempt of a write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apiserver.authz.forbidden import forbidden, forbidden_message
from clusterregistry.apiserver.authz.group_rights import CREATE, JOIN, GroupRights, ObjectGroups
from clusterregistry.apiserver.authz.interface import Attributes, Decision, Verdict, decided
from clusterregistry.apiserver.endpoints.request import Request, attributes_of, attributes_with, require
from clusterregistry.apiserver.endpoints.request_scope import RequestScope
from clusterregistry.apiserver.registry.object_filter import EVERYTHING
from clusterregistry.apiserver.registry.store import CheckStored, Stored
from clusterregistry.apiserver.registry.strategy import Admit, Object
from clusterregistry.apiserver.storage.errors import CorruptObject
from clusterregistry.apiserver.storage.interface import KeyValue

_NO_GROUPS: frozenset[str] = frozenset()


async def check(request: Request, stored: Stored) -> None:
    """Decides on an object, or on the lack of one, if group rights have let the request pass. Raises 403 and 503.

    The decision of the request, which the audit log has, is the last one.
    """
    rights = request.group_rights
    if rights is None:
        return
    attributes = attributes_of(request)
    found = rights.decide_on_stored(attributes, stored_groups(rights, request.info.key, stored))
    request.decision = found if isinstance(found, Decision) else await found
    if not request.decision.allowed:
        raise forbidden(attributes, request.decision)


def stored_groups(rights: GroupRights, key: str, stored: Stored) -> ObjectGroups:
    """The groups of what is stored under a key. An object that cannot be read is in none."""
    if stored is None:
        return ObjectGroups(rights.membership.naming(key), exists=False)
    return ObjectGroups(_NO_GROUPS if isinstance(stored, CorruptObject) else rights.membership.groups_of_object(stored))


def check_for(request: Request) -> CheckStored | None:
    """The check of what is stored for each attempt of a write; None: it needs none."""
    return None if request.group_rights is None else partial(check, request)


def visible_to(scope: RequestScope, request: Request) -> Callable[[KeyValue], bool] | None:
    """Whether the user may see an object now; None: every object."""
    visible = request.visible
    if visible is EVERYTHING:
        return None

    def is_visible(kv: KeyValue) -> bool:
        view = visible.view()
        return view is None or view.shows(scope.store.key_in(kv), kv)

    return is_visible


BeforeCreate = Callable[[], Awaitable[None]]


def for_write(scope: RequestScope, request: Request) -> tuple[Admit | None, BeforeCreate]:
    """What the store calls before it writes an object, and before an update creates one."""
    admit, rights = scope.admit_for(request.user, request.info), scope.group_rights
    if rights is None or (request.group_rights is None and _needs_no_groups(rights, request)):
        return admit, partial(require, request, CREATE)
    access = WriteAccess(rights, request, admit)
    return access.admit, access.before_create


def _needs_no_groups(rights: GroupRights, request: Request) -> bool:
    """Whether a write that other rights allow moves nothing between groups: a POST, or any where there are none."""
    return request.info.verb == CREATE or not rights.membership.names


class WriteAccess:
    """The checks of one request that creates or updates an object of a resource with groups.

    An attempt calls ``admit`` with the object that it is about to store, and before it creates one in an update,
    ``before_create``.
    """

    def __init__(self, rights: GroupRights, request: Request, admit: Admit | None) -> None:
        """``admit`` is the admission that the kind declares."""
        self._rights, self._request, self._admit = rights, request, admit
        self._passed = request.decision
        """That of the filter. An attempt that is refused may be followed by one that is not."""
        self._new_groups = _NO_GROUPS
        """Of the object that the last attempt is about to create."""

    async def admit(self, obj: Object, old: Object | None) -> None:
        """Raises 403 and 503, and what the declared admission raises."""
        if self._request.group_rights is None:
            self._request.decision = self._passed
        if self._admit is not None:
            await self._admit(obj, old)
        if old is None:
            await self._admit_new(obj)
        elif _labels(obj) != _labels(old):
            await self._admit_move(obj, old)

    async def _admit_new(self, obj: Object) -> None:
        self._new_groups = self._groups_of(obj)
        if self._request.group_rights is not None:
            await self._require(attributes_of(self._request), refused=None)

    async def before_create(self) -> None:
        """An update that creates needs that right as well: to all objects, to this name, or on one of its groups."""
        attributes = attributes_with(self._request, CREATE)
        decision = await decided(self._request.authorizer, attributes)
        if decision.verdict is Verdict.DENY:
            self._request.decision = decision
            raise forbidden(attributes, decision)
        if not decision.allowed:
            await self._require(attributes, refused=decision)

    async def _require(self, attributes: Attributes, *, refused: Decision | None) -> None:
        """Decides on the groups of the new object. ``refused`` has the reason of the other rights."""
        found = self._rights.decide(attributes, self._new_groups)
        decision = found if isinstance(found, Decision) else await found
        self._request.decision = decision
        if not decision.allowed:
            raise forbidden(attributes, decision if decision.undecided else refused or decision)

    async def _admit_move(self, obj: Object, old: Object) -> None:
        """A user who may not do the same to all objects needs the verb ``join`` on the groups entered and left."""
        before, after = self._groups_of(old), self._groups_of(obj)
        if before == after:
            return
        request, rights = self._request, self._rights
        if (await decided(request.authorizer, attributes_with(request, name=""))).allowed:
            return
        attributes = attributes_of(request)
        refused = await rights.first_refused(attributes, before ^ after, verb=JOIN)
        if refused is not None:
            request.decision = refused[1]
            raise _may_not_join(rights, attributes, refused, entered=after)

    def _groups_of(self, obj: Object) -> frozenset[str]:
        return self._rights.membership.groups_of(obj["metadata"].get("name", ""), _labels(obj))


def _may_not_join(
    rights: GroupRights, attributes: Attributes, refused: tuple[str, Decision], *, entered: frozenset[str]
) -> errors.APIError:
    group, decision = refused
    asked = rights.group_attributes(attributes, group, verb=JOIN)
    if decision.undecided:
        return forbidden(asked, decision)
    moved = "enter" if group in entered else "leave"
    reason = f"{quoted(attributes.name)} would {moved} {rights.described(group)}"
    detail = forbidden_message(asked, f"{reason}: {decision.reason}" if decision.reason else reason)
    return errors.forbidden(group=attributes.group, resource=attributes.resource, name=attributes.name, detail=detail)


def _labels(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}
