"""Runs the controllers of a server beside its requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.controllers.garbage_collector import GarbageCollector, WriterOf
from clusterregistry.apiserver.controllers.namespace_controller import NamespaceController
from clusterregistry.apiserver.controllers.namespace_lifecycle import NamespaceLifecycle
from clusterregistry.apiserver.controllers.retention import RetentionController
from clusterregistry.apiserver.controllers.work_queue import StoragePace
from clusterregistry.apiserver.registry.core.namespace import NAMESPACES, PERMANENT
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.tasks import cancel_and_wait

Work = Callable[[], Coroutine[Any, Any, None]]


class Controller(Protocol):
    """Brings what is stored into the state that its kind promises. It runs in every replica, and all may act."""

    async def run(self) -> None:
        """Works until it is cancelled. After an exception it is called again."""

    def close(self) -> None:
        """Ends its subscriptions. Idempotent."""


_START_DELAY = 0.5
"""Seconds until the controllers begin: a start does not wait until they have read everything."""

_AT_START = 10.0
"""Seconds that a start waits for the first namespaces to be written."""

_RESTART_DELAY = 5.0

_log = logging.getLogger(__name__)


@asynccontextmanager
async def run_server_controllers(stores: Sequence[Store], *, writer_of: WriterOf) -> AsyncIterator[None]:
    """Runs garbage collection, the lifecycle of namespaces and retention within the block.

    ``stores`` are those of all resources of a server. From here on the stores of namespaced resources admit objects
    by the lifecycle of namespaces, and the namespaces that always exist are there. A server also starts on a storage
    that cannot be written: they are then written as soon as possible. To be called before the stores serve requests.
    """
    async with AsyncExitStack() as stack:
        work: list[Work] = []
        pace = StoragePace(stores[0].storage)
        collector = GarbageCollector(stores, writer_of=writer_of, pace=pace)
        stack.callback(collector.close)
        work.append(collector.run)
        if namespaces := _namespaces_among(stores):
            inside = [store for store in stores if store.resource.namespaced]
            lifecycle = NamespaceLifecycle(namespaces)
            for store in inside:
                store.check_namespace = lifecycle.check_for(store.resource)
            controller = NamespaceController(namespaces, inside, writer_of=writer_of, permanent=PERMANENT, pace=pace)
            stack.callback(controller.close)
            await _ensure_permanent(controller)
            work.append(controller.run)
        for store in stores:
            if store.resource.retention is not None:
                retention = RetentionController(store)
                stack.callback(retention.close)
                work.append(retention.run)
        tasks = [asyncio.create_task(_keep_running(each)) for each in work]
        stack.push_async_callback(cancel_and_wait, tasks)
        yield


@asynccontextmanager
async def run_product_controllers(controllers: Sequence[Controller]) -> AsyncIterator[None]:
    """Runs the controllers that a product brings within the block, and closes them at its end."""
    async with AsyncExitStack() as stack:
        for controller in controllers:
            stack.callback(controller.close)
        tasks = [asyncio.create_task(_keep_running(each.run)) for each in controllers]
        stack.push_async_callback(cancel_and_wait, tasks)
        yield


def _namespaces_among(stores: Sequence[Store]) -> Store | None:
    wanted = ("", NAMESPACES)
    return next((store for store in stores if (store.resource.group, store.resource.plural) == wanted), None)


async def _ensure_permanent(controller: NamespaceController) -> None:
    try:
        async with asyncio.timeout(_AT_START):
            await controller.ensure_permanent()
    except (APIError, TimeoutError) as error:
        reason = error or "no answer in time"
        _log.warning("the namespaces that always exist cannot be written now; trying again later: %s", reason)


async def _keep_running(work: Work) -> None:
    await asyncio.sleep(_START_DELAY)
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 - what it did not do now, it finds when it begins again
            _log.exception("a controller failed; it begins again")
        await asyncio.sleep(_RESTART_DELAY)
