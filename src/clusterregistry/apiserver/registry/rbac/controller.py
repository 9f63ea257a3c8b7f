"""Starting all that keeps roles and bindings: what is needed before the first request, and what goes on after it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.registry.rbac.aggregation import Aggregating
from clusterregistry.apiserver.registry.rbac.bootstrap import assume_defaults, ensure_defaults
from clusterregistry.apiserver.registry.rbac.policy_informer import feed
from clusterregistry.apiserver.registry.rbac.server_writer import Keeper
from clusterregistry.apiserver.storage.errors import StorageError

_AT_START = 10.0
"""Seconds that a start waits for the default roles to be written."""
_BETWEEN_ATTEMPTS = 5.0

_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def kept_up(policy: Policy, *, roles: Keeper, bindings: Keeper) -> AsyncIterator[None]:
    """A policy that knows all roles and bindings, the default ones included, within the block.

    A storage that cannot be written now keeps nobody from starting: the default roles count all the same, and are
    written as soon as that is possible. Raises StorageError when it cannot even be read.
    """
    end_feeding = await feed(policy, roles=roles.store, bindings=bindings.store)
    aggregating = Aggregating(roles)
    written = await _written_at_start(aggregating, roles=roles, bindings=bindings)
    if not written or roles.store.corrupt or bindings.store.corrupt:
        await assume_defaults(policy, roles=roles, bindings=bindings)
    upkeep = asyncio.create_task(_keep_up(aggregating, roles=roles, bindings=bindings, written=written))
    try:
        yield
    finally:
        upkeep.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await upkeep
        aggregating.close()
        end_feeding()


async def _written_at_start(aggregating: Aggregating, *, roles: Keeper, bindings: Keeper) -> bool:
    try:
        async with asyncio.timeout(_AT_START):
            await ensure_defaults(roles=roles, bindings=bindings)
            await aggregating.settle()
    except (APIError, StorageError, TimeoutError) as error:
        _log.warning("the default roles cannot be written now; trying again later: %s", error or "no answer in time")
        return False
    return True


async def _keep_up(aggregating: Aggregating, *, roles: Keeper, bindings: Keeper, written: bool) -> None:
    while not written:
        await asyncio.sleep(_BETWEEN_ATTEMPTS)
        with contextlib.suppress(APIError, StorageError):
            await ensure_defaults(roles=roles, bindings=bindings)
            written = True
            _log.info("the default roles are written")
    await aggregating.run()
