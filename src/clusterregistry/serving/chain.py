"""The way of every request: the filters, outermost first."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

from clusterregistry.authn.interface import Authenticator
from clusterregistry.authn.request_headers import ProxyHeaders
from clusterregistry.authz.interface import Authorizer
from clusterregistry.serving.fairness import Seats
from clusterregistry.serving.filters import (
    auditing,
    authentication,
    authorization,
    compression,
    failed_authentication,
    impersonation,
    in_flight,
    instrumentation,
    recovery,
    request_info,
    standard_headers,
    time_limit,
)
from clusterregistry.serving.interface import Filter, Handler
from clusterregistry.serving.metrics import RequestMetrics

if TYPE_CHECKING:
    from clusterregistry.audit.trails import Audit


def build(  # noqa: PLR0913 - the parts that filters need, all by keyword
    routes: Handler,
    *,
    authenticator: Authenticator,
    authorizer: Authorizer,
    filtered_lists: bool,
    metrics: RequestMetrics,
    reading: Seats | None,
    writing: Seats | None,
    request_timeout: float,
    proxy_headers: Callable[[], ProxyHeaders] = authentication.usual_headers,
    audit: Audit | None = None,
) -> Handler:
    """The whole chain around the routes. Read it from top to bottom as a request travels."""
    filters: list[Filter] = [
        request_info.filter_for(),
        standard_headers.filter_for(),
        instrumentation.filter_for(metrics),
        compression.filter_for(),
        recovery.filter_for(),
        failed_authentication.filter_for(audit),
        authentication.filter_for(authenticator, proxy_headers),
        auditing.filter_for(audit),
        impersonation.filter_for(authorizer),
        in_flight.filter_for(reading=reading, writing=writing, metrics=metrics),
        authorization.filter_for(authorizer, filtered_lists=filtered_lists),
        time_limit.filter_for(request_timeout),
    ]
    return reduce(lambda inner, outer: outer(inner), reversed(filters), routes)
