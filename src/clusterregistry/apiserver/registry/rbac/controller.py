"""Starting all that keeps roles and bindings: what is needed before the first request, and what goes on after it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from clusterregistry.api.rbac.v1.validation import aggregation_errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apimachinery.meta.label_selector_objects import label_selector
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.registry.rbac.bootstrap import Defaults, ServerWriter, assume_defaults, ensure_defaults
from clusterregistry.apiserver.registry.rbac.policy_informer import run_policy_informer
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import Event

Object = dict[str, Any]

MANAGER = "clusterrole-aggregation-controller"
"""As kube-apiserver's controller calls itself in the managed fields."""

_PATIENCE = 5.0
"""Seconds between two attempts when the storage cannot be written."""

_PASSES = 50
"""How often all roles are looked through in a row; each pass settles what is made of the roles of the one before."""

_OF_ONE_ROLE = ("NotFound", "Invalid", "RequestEntityTooLarge", "StorageReadError")
"""Reasons that are those of a role, and not of the storage."""

_REMEDY = "What to do: correct the role, or one that it is made of, or delete it"

_log = logging.getLogger(__name__)


class AggregationController:
    """The controller. It listens from when it is made until ``close``."""

    def __init__(self, roles: ServerWriter) -> None:
        self._roles = roles
        self._changed = asyncio.Event()
        self._refused: dict[str, str] = {}
        """Why roles cannot be brought up to date, by name."""
        self._subscription = roles.store.storage.subscribe(
            roles.store.prefix, self._take, interrupted=self._changed.set
        )

    def close(self) -> None:
        self._subscription.close()

    async def run(self) -> None:
        """Settles after every change of any role, for ever."""
        while True:
            try:
                self._changed.clear()
                await self.settle()
                await self._changed.wait()
            except (APIError, StorageError) as error:
                _log.warning("the rules of aggregated roles cannot be brought up to date: %s", error)
                await asyncio.sleep(_PATIENCE)

    async def settle(self) -> None:
        """Writes the rules of all roles that are made of others, until nothing differs any more.

        A role may be made of one that is made of others. Raises APIError and StorageError.
        """
        refused_before, self._refused = self._refused, {}
        for _ in range(_PASSES):
            differing = [name for name in self._differing(await self._roles.seen()) if name not in self._refused]
            for name in differing:
                await self._bring_up_to_date(name)
            if not differing:
                break
        for name, reason in self._refused.items():
            if refused_before.get(name) != reason:
                key = self._roles.store.prefix + name
                _log.error("the rules of what is stored under %r are left as they are: %s. %s", key, reason, _REMEDY)

    async def _bring_up_to_date(self, name: str) -> None:
        roles = await self._roles.seen()

        def collected(role: Object) -> Object:
            return {**role, "rules": collected_rules(role, roles)} if "aggregationRule" in role else role

        try:
            await self._roles.change(name, collected, manager=MANAGER)
        except APIError as error:
            if error.reason not in _OF_ONE_ROLE:
                raise
            if error.reason != "NotFound":
                self._refused[name] = str(error)

    def _differing(self, roles: Mapping[str, Object]) -> list[str]:
        """The roles whose rules are not those of the roles that they are made of.

        In whatever order: two roles that are made of each other could go on swapping them.
        """
        return [
            name
            for name, role in roles.items()
            if "aggregationRule" in role
            and self._is_understood(name, role)
            and not _same(role["rules"] or (), collected_rules(role, roles) or ())
        ]

    def _is_understood(self, name: str, role: Object) -> bool:
        wrong = next(aggregation_errors(role["aggregationRule"]), None)
        if wrong:
            self._refused[name] = str(wrong)
        return not wrong

    def _take(self, _events: Sequence[Event]) -> None:
        self._changed.set()


def collected_rules(role: Object, roles: Mapping[str, Object]) -> list[Object] | None:
    """The rules of all other roles that the selectors match, each once, in the order of the roles' names."""
    selectors = [label_selector(each) for each in role["aggregationRule"]["clusterRoleSelectors"]]
    rules: list[Object] = []
    for name in sorted(roles):
        other = roles[name]
        labels = other["metadata"].get("labels")
        if name != role["metadata"]["name"] and any(selector.matches(labels) for selector in selectors):
            rules += [rule for rule in other["rules"] or () if rule not in rules]
    return rules or None


def _same(rules: Iterable[Object], others: Iterable[Object]) -> bool:
    mine, theirs = list(rules), list(others)
    return len(mine) == len(theirs) and all(rule in theirs for rule in mine)


_AT_START = 10.0
"""Seconds that a start waits for the default roles to be written."""
_BETWEEN_ATTEMPTS = 5.0


@contextlib.asynccontextmanager
async def run_controllers(
    policy: Policy, *, roles: ServerWriter, bindings: ServerWriter, defaults: Defaults
) -> AsyncIterator[None]:
    """A policy that knows all roles and bindings, the default ones included, within the block.

    A storage that cannot be written now keeps nobody from starting: the default roles count all the same, and are
    written as soon as that is possible. Raises StorageError when it cannot even be read.
    """
    end_feeding = await run_policy_informer(policy, roles=roles.store, bindings=bindings.store, defaults=defaults)
    aggregating = AggregationController(roles)
    written = await _written_at_start(aggregating, roles=roles, bindings=bindings, defaults=defaults)
    if not written or roles.store.corrupt or bindings.store.corrupt:
        await assume_defaults(policy, roles=roles, bindings=bindings, defaults=defaults)
    upkeep = asyncio.create_task(
        _keep_up(aggregating, roles=roles, bindings=bindings, defaults=defaults, written=written)
    )
    try:
        yield
    finally:
        upkeep.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await upkeep
        aggregating.close()
        end_feeding()


async def _written_at_start(
    aggregating: AggregationController, *, roles: ServerWriter, bindings: ServerWriter, defaults: Defaults
) -> bool:
    try:
        async with asyncio.timeout(_AT_START):
            await ensure_defaults(roles=roles, bindings=bindings, defaults=defaults)
            await aggregating.settle()
    except (APIError, StorageError, TimeoutError) as error:
        _log.warning("the default roles cannot be written now; trying again later: %s", error or "no answer in time")
        return False
    return True


async def _keep_up(
    aggregating: AggregationController,
    *,
    roles: ServerWriter,
    bindings: ServerWriter,
    defaults: Defaults,
    written: bool,
) -> None:
    while not written:
        await asyncio.sleep(_BETWEEN_ATTEMPTS)
        with contextlib.suppress(APIError, StorageError):
            await ensure_defaults(roles=roles, bindings=bindings, defaults=defaults)
            written = True
            _log.info("the default roles are written")
    await aggregating.run()
