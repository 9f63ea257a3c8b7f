"""Runs what keeps roles and bindings: the policy informer, the bootstrap and the aggregation of ClusterRoles."""

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
from clusterregistry.apiserver.registry.rbac import escalation
from clusterregistry.apiserver.registry.rbac.bootstrap import Bootstrap, Defaults, ServerWriter
from clusterregistry.apiserver.registry.rbac.policy_informer import run_policy_informer
from clusterregistry.apiserver.storage.errors import StorageError
from clusterregistry.apiserver.storage.interface import Event

Object = dict[str, Any]

MANAGER = "clusterrole-aggregation-controller"
"""The field manager of kube-apiserver's controller."""

_AT_START = 10.0
"""Seconds that a start waits for the default roles to be written."""

_RETRY_INTERVAL = 5.0
"""Seconds between two attempts when the storage cannot be written."""

_PASSES = 50
"""How often all roles are read in a row; each pass settles what is made of the roles of the one before."""

_REASONS_OF_ONE_ROLE = ("NotFound", "Invalid", "RequestEntityTooLarge", "StorageReadError")
"""Reasons of errors that concern one role, and not the storage."""

_REMEDY = "What to do: correct the role, or one that it is made of, or delete it"

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def run_controllers(
    policy: Policy, writers: Mapping[str, ServerWriter], *, defaults: Defaults
) -> AsyncIterator[None]:
    """Keeps the policy up to date within the block, the default roles and bindings included.

    ``writers`` are those of roles and bindings by their plurals: ``escalation.RESOURCES``.

    A server also starts on a storage that cannot be written: the default roles count all the same, and are written as
    soon as possible. Raises StorageError if the storage cannot be read.
    """
    stores = {plural: writer.store for plural, writer in writers.items()}
    end_informer = await run_policy_informer(policy, stores, defaults=defaults)
    roles, bindings = writers[escalation.CLUSTER_ROLES], writers[escalation.CLUSTER_ROLE_BINDINGS]
    bootstrap = Bootstrap(roles=roles, bindings=bindings, defaults=defaults)
    aggregation = AggregationController(roles)
    written = await _written_at_start(bootstrap, aggregation)
    if not written or roles.store.corrupt or bindings.store.corrupt:
        await bootstrap.assume(policy)
    task = asyncio.create_task(_run(bootstrap, aggregation, written=written))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        aggregation.close()
        end_informer()


async def _written_at_start(bootstrap: Bootstrap, aggregation: AggregationController) -> bool:
    try:
        async with asyncio.timeout(_AT_START):
            await bootstrap.write()
            await aggregation.settle()
    except (APIError, StorageError, TimeoutError) as error:
        _log.warning("the default roles cannot be written now; trying again later: %s", error or "no answer in time")
        return False
    return True


async def _run(bootstrap: Bootstrap, aggregation: AggregationController, *, written: bool) -> None:
    while not written:
        await asyncio.sleep(_RETRY_INTERVAL)
        with contextlib.suppress(APIError, StorageError):
            await bootstrap.write()
            written = True
            _log.info("the default roles are written")
    await aggregation.run()


class AggregationController:
    """Writes the rules of roles that aggregate others. It subscribes to changes of roles until ``close``."""

    def __init__(self, roles: ServerWriter) -> None:
        self._roles = roles
        self._changed = asyncio.Event()
        self._refused: dict[str, str] = {}
        """The reasons why roles cannot be updated, by name."""
        self._subscription = roles.store.storage.subscribe(
            roles.store.prefix, self._receive, interrupted=self._changed.set
        )

    def close(self) -> None:
        self._subscription.close()

    async def run(self) -> None:
        """Settles after every change of a role, until it is cancelled."""
        while True:
            try:
                self._changed.clear()
                await self.settle()
                await self._changed.wait()
            except (APIError, StorageError) as error:
                _log.warning("the rules of aggregated roles cannot be updated: %s", error)
                await asyncio.sleep(_RETRY_INTERVAL)

    async def settle(self) -> None:
        """Writes the rules of all roles that aggregate others, until no rules differ.

        A role may aggregate one that aggregates others. Raises APIError and StorageError.
        """
        refused_before, self._refused = self._refused, {}
        for _ in range(_PASSES):
            differing = [name for name in self._differing(await self._roles.seen()) if name not in self._refused]
            for name in differing:
                await self._update(name)
            if not differing:
                break
        for name, reason in self._refused.items():
            if refused_before.get(name) != reason:
                key = self._roles.store.prefix + name
                _log.error("the rules of the role under %r are not updated: %s. %s", key, reason, _REMEDY)

    async def _update(self, name: str) -> None:
        roles = await self._roles.seen()

        def collected(role: Object) -> Object:
            return {**role, "rules": collected_rules(role, roles)} if "aggregationRule" in role else role

        try:
            await self._roles.change(name, collected, manager=MANAGER)
        except APIError as error:
            if error.reason not in _REASONS_OF_ONE_ROLE:
                raise
            if error.reason != "NotFound":
                self._refused[name] = str(error)

    def _differing(self, roles: Mapping[str, Object]) -> list[str]:
        """The roles whose rules are not those of the roles that they aggregate.

        The order of rules does not count: two roles that aggregate each other could swap them for ever.
        """
        return [
            name
            for name, role in roles.items()
            if "aggregationRule" in role
            and self._has_valid_rule(name, role)
            and not _same(role["rules"] or (), collected_rules(role, roles) or ())
        ]

    def _has_valid_rule(self, name: str, role: Object) -> bool:
        wrong = next(aggregation_errors(role["aggregationRule"]), None)
        if wrong:
            self._refused[name] = str(wrong)
        return not wrong

    def _receive(self, _events: Sequence[Event]) -> None:
        self._changed.set()


def collected_rules(role: Object, roles: Mapping[str, Object]) -> list[Object] | None:
    """The rules of all other roles that the selectors match, without duplicates, in the order of the roles' names."""
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
