"""Makes the default roles and bindings where they are missing, and repairs those that lack something.

Any number of servers may do so at once: who comes second finds the object and repairs it, which changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authz.rbac.policy import Binding, Policy
from clusterregistry.apiserver.authz.rbac.rules import rules_from_wire
from clusterregistry.apiserver.registry.rbac.default_objects import default_bindings, default_roles
from clusterregistry.apiserver.registry.rbac.repair import left_alone, repaired_binding, repaired_role
from clusterregistry.apiserver.registry.rbac.server_writer import Change, Keeper

Object = dict[str, Any]
Repaired = Callable[[Object, Object], Object]

MANAGER = "clusterregistry"

_log = logging.getLogger(__name__)

_ATTEMPTS = 100
"""Others would have to remove and make an object anew each time."""


async def ensure_defaults(*, roles: Keeper, bindings: Keeper) -> None:
    """Raises APIError when the storage cannot be written."""
    await _ensure_all(roles, default_roles(), repaired_role)
    await _remove_bindings_of_other_roles(bindings)
    await _ensure_all(bindings, default_bindings(), repaired_binding)


async def assume_defaults(policy: Policy, *, roles: Keeper, bindings: Keeper) -> None:
    """Has the policy know of the default objects that are missing, when they cannot be written."""
    there = await roles.seen()
    for role in default_roles():
        if role["metadata"]["name"] not in there:
            policy.set_role(role["metadata"]["name"], rules_from_wire(role["rules"]), revision=0)
    there = await bindings.seen()
    for binding in default_bindings():
        if binding["metadata"]["name"] not in there:
            policy.set_binding(binding["metadata"]["name"], Binding.from_wire(binding), revision=0)


async def _ensure_all(keeper: Keeper, wanted: Sequence[Object], repaired: Repaired) -> None:
    results = await asyncio.gather(
        *(_ensure(keeper, each, repaired=repaired) for each in wanted), return_exceptions=True
    )
    for result in results:
        if result is not None:
            raise result


async def _ensure(keeper: Keeper, wanted: Object, *, repaired: Repaired) -> None:
    """Repairs or creates one object, whatever others do to it meanwhile.

    One that is stored and cannot be read is left for a person to delete. The log has named it. So is one that cannot
    be repaired, since another program wrote what could not be written here.
    """
    name = wanted["metadata"]["name"]
    for _ in range(_ATTEMPTS):
        if keeper.store.prefix + name in keeper.store.corrupt:
            return
        with _expecting("NotFound"):
            await _repair(keeper, name, lambda present: repaired(present, wanted))
            return
        with _expecting("AlreadyExists"):
            await keeper.create({**wanted, "metadata": {**wanted["metadata"]}}, manager=MANAGER)
            return


async def _repair(keeper: Keeper, name: str, change: Change) -> None:
    try:
        await keeper.change(name, change, manager=MANAGER)
    except APIError as error:
        if error.reason != "Invalid":
            raise
        key = keeper.store.prefix + name
        _log.error("what is stored under %r cannot be repaired: %s. What to do: delete it, and start anew", key, error)


async def _remove_bindings_of_other_roles(bindings: Keeper) -> None:
    """The role of a binding cannot be changed: one of a default name and another role has to go first."""
    there = await bindings.seen()
    for wanted in default_bindings():
        name = wanted["metadata"]["name"]
        present = there.get(name)
        if present and not left_alone(present) and present["roleRef"] != wanted["roleRef"]:
            with _expecting("NotFound"):
                await bindings.delete(name)


@contextlib.contextmanager
def _expecting(reason: str) -> Iterator[None]:
    """Goes on behind the block when the one thing has happened that others may have caused."""
    try:
        yield
    except APIError as error:
        if error.reason != reason:
            raise
