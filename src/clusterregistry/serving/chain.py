"""The way of every request: the filters, outermost first."""

from __future__ import annotations

from functools import reduce

from clusterregistry.authn.interface import Authenticator
from clusterregistry.authz.interface import Authorizer
from clusterregistry.serving.filters import (
    authentication,
    authorization,
    compression,
    impersonation,
    instrumentation,
    recovery,
    request_info,
    standard_headers,
    time_limit,
)
from clusterregistry.serving.interface import Filter, Handler
from clusterregistry.serving.metrics import RequestMetrics


def build(
    routes: Handler,
    *,
    authenticator: Authenticator,
    authorizer: Authorizer,
    metrics: RequestMetrics,
    request_timeout: float,
) -> Handler:
    """The whole chain around the routes. Read it from top to bottom as a request travels."""
    filters: list[Filter] = [
        request_info.filter_for(),
        standard_headers.filter_for(),
        instrumentation.filter_for(metrics),
        compression.filter_for(),
        recovery.filter_for(),
        authentication.filter_for(authenticator),
        impersonation.filter_for(),
        authorization.filter_for(authorizer),
        time_limit.filter_for(request_timeout),
    ]
    return reduce(lambda inner, outer: outer(inner), reversed(filters), routes)
