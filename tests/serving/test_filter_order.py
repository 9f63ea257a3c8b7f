"""The way of a request is what the documentation says, and no filter is forgotten."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest

from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer, Reply, text_response
from clusterregistry.serving import chain, filters
from clusterregistry.serving.interface import Handler, answered

DOCUMENTED = [
    "request_info",
    "standard_headers",
    "instrumentation",
    "compression",
    "recovery",
    "failed_authentication",
    "authentication",
    "auditing",
    "impersonation",
    "in_flight",
    "authorization",
    "time_limit",
]
"""Outermost first. Whoever changes this changes what the filters may rely on."""


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the filters, in the order in which a request will meet them."""
    met: list[str] = []

    def stand_in(name: str) -> Callable[..., Callable[[Handler], Handler]]:
        def filter_for(*_: Any, **__: Any) -> Callable[[Handler], Handler]:
            def wrap(inner: Handler) -> Handler:
                def handle(request: Request) -> Reply:
                    met.append(name)
                    return inner(request)

                return handle

            return wrap

        return filter_for

    for module in pkgutil.iter_modules(filters.__path__):
        loaded = importlib.import_module(f"{filters.__name__}.{module.name}")
        monkeypatch.setattr(loaded, "filter_for", stand_in(module.name))
    return met


def test_filters_come_in_the_documented_order(monkeypatch: pytest.MonkeyPatch) -> None:
    met = recorded(monkeypatch)

    async def routes(_: Request) -> Answer:
        met.append("routes")
        return text_response("here")

    nothing: Any = None
    handler = chain.build(
        routes,
        authenticator=nothing,
        authorizer=nothing,
        filtered_lists=True,
        metrics=nothing,
        reading=None,
        writing=None,
        request_timeout=1,
    )
    asyncio.run(_awaited(handler))
    assert met == [*DOCUMENTED, "routes"]


async def _awaited(handler: Handler) -> None:
    request: Any = None
    await answered(handler(request))


def test_every_filter_is_in_the_chain() -> None:
    assert {module.name for module in pkgutil.iter_modules(filters.__path__)} == set(DOCUMENTED)


@pytest.mark.parametrize(
    ("outer", "inner", "because"),
    [
        ("request_info", "instrumentation", "requests are counted by what they ask for"),
        ("instrumentation", "recovery", "refused requests are counted too"),
        ("standard_headers", "recovery", "a failed request has its id and its warnings"),
        ("recovery", "authentication", "a 401 is a Status"),
        ("recovery", "failed_authentication", "a failed authentication is recorded as what it is, not as an answer"),
        ("failed_authentication", "authentication", "who is refused is recorded too"),
        ("authentication", "auditing", "the audit policy asks who it is"),
        ("auditing", "impersonation", "recorded is who asks, and as whom"),
        ("auditing", "authorization", "what is forbidden is recorded"),
        ("authentication", "authorization", "who asks comes before whether they may"),
        ("impersonation", "in_flight", "seats are shared between those in whose name is asked"),
        ("in_flight", "authorization", "also those without rights are held up before they cause work"),
        ("authorization", "time_limit", "nobody without rights makes the server work"),
    ],
)
def test_what_the_order_is_for(outer: str, inner: str, because: str) -> None:
    assert DOCUMENTED.index(outer) < DOCUMENTED.index(inner), because
