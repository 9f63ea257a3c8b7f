"""The way of a request is what the documentation says, and no filter is forgotten."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from clusterregistry.apiserver import filters
from clusterregistry.apiserver.endpoints.request import Handler, Request
from clusterregistry.apiserver.filters import chain
from clusterregistry.apiserver.http.response import Answer, Reply, resolve, text_response

DOCUMENTED = [
    "request_info",
    "standard_headers",
    "metrics",
    "compression",
    "recovery",
    "audit_failed_authn",
    "authentication",
    "audit",
    "impersonation",
    "in_flight",
    "authorization",
    "timeout",
]
"""Outermost first. Filters rely on this order."""


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

    for name, module in modules_with_a_filter().items():
        monkeypatch.setattr(module, "filter_for", stand_in(name))
    return met


def modules_with_a_filter() -> dict[str, ModuleType]:
    names = [module.name for module in pkgutil.iter_modules(filters.__path__)]
    modules = {name: importlib.import_module(f"{filters.__name__}.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "filter_for")}


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
        namespaced=frozenset(),
        group_rights={},
        request_metrics=nothing,
        reading=None,
        writing=None,
        request_timeout=1,
    )
    asyncio.run(_awaited(handler))
    assert met == [*DOCUMENTED, "routes"]


async def _awaited(handler: Handler) -> None:
    request: Any = None
    await resolve(handler(request))


def test_every_filter_is_in_the_chain() -> None:
    assert set(modules_with_a_filter()) == set(DOCUMENTED)


@pytest.mark.parametrize(
    ("outer", "inner", "because"),
    [
        ("request_info", "metrics", "requests are counted by what they ask for"),
        ("metrics", "recovery", "refused requests are counted too"),
        ("standard_headers", "recovery", "a failed request has its id and its warnings"),
        ("recovery", "authentication", "a 401 is a Status"),
        ("recovery", "audit_failed_authn", "a failed authentication is recorded as what it is, not as an answer"),
        ("audit_failed_authn", "authentication", "who is refused is recorded too"),
        ("authentication", "audit", "the audit policy asks who it is"),
        ("audit", "impersonation", "recorded is who asks, and as whom"),
        ("audit", "authorization", "what is forbidden is recorded"),
        ("authentication", "authorization", "who asks comes before whether they may"),
        ("impersonation", "in_flight", "seats are shared between those in whose name is asked"),
        ("in_flight", "authorization", "also those without rights are held up before they cause work"),
        ("authorization", "timeout", "nobody without rights makes the server work"),
    ],
)
def test_the_reasons_of_the_order(outer: str, inner: str, because: str) -> None:
    assert DOCUMENTED.index(outer) < DOCUMENTED.index(inner), because
