"""Ends a request that takes too long with 504. Watches have their own time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from clusterregistry.apis.meta import errors
from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer
from clusterregistry.serving.interface import Filter, Handler

_QUICK = frozenset({"get", "list", "watch"})
"""Verbs that answer from memory (a watch begins at once): a timer for each would cost more than it gives."""


def filter_for(seconds: float) -> Filter:
    def wrap(inner: Handler) -> Handler:
        async def limited(request: Request) -> Answer:
            try:
                async with asyncio.timeout(seconds):
                    return await inner(request)
            except TimeoutError:
                message = f"request did not complete within the allotted timeout of {seconds:g} s"
                raise errors.timeout(message) from None

        def handle(request: Request) -> Awaitable[Answer]:
            return inner(request) if request.info.verb in _QUICK else limited(request)

        return handle

    return wrap
