"""The filter chain: all filters in their order, outermost first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import reduce
from typing import TYPE_CHECKING

from clusterregistry.apiserver.authn.interface import Authenticator
from clusterregistry.apiserver.authn.request_header import ProxyHeaders
from clusterregistry.apiserver.authz.group_rights import GroupRights
from clusterregistry.apiserver.authz.interface import Authorizer
from clusterregistry.apiserver.endpoints.request import Filter, Handler
from clusterregistry.apiserver.fair_queue import FairQueue
from clusterregistry.apiserver.filters import (
    audit,
    audit_failed_authn,
    authentication,
    authorization,
    compression,
    impersonation,
    in_flight,
    metrics,
    recovery,
    request_info,
    standard_headers,
    timeout,
)
from clusterregistry.apiserver.filters.metrics import RequestMetrics

if TYPE_CHECKING:
    from clusterregistry.apiserver.audit.trail import Audit


def build(  # noqa: PLR0913 - the parts that filters need, all by keyword
    routes: Handler,
    *,
    authenticator: Authenticator,
    authorizer: Authorizer,
    filtered_lists: bool,
    namespaced: AbstractSet[tuple[str, str]],
    group_rights: Mapping[tuple[str, str], GroupRights],
    request_metrics: RequestMetrics,
    reading: FairQueue | None,
    writing: FairQueue | None,
    request_timeout: float,
    proxy_headers: Callable[[], ProxyHeaders] = authentication.usual_headers,
    audit_log: Audit | None = None,
) -> Handler:
    """Wraps the routes in all filters. A request passes the filters from top to bottom."""
    filters: list[Filter] = [
        request_info.filter_for(),
        standard_headers.filter_for(),
        metrics.filter_for(request_metrics),
        compression.filter_for(),
        recovery.filter_for(),
        audit_failed_authn.filter_for(audit_log),
        authentication.filter_for(authenticator, proxy_headers),
        audit.filter_for(audit_log),
        impersonation.filter_for(authorizer),
        in_flight.filter_for(reading=reading, writing=writing, metrics=request_metrics),
        authorization.filter_for(
            authorizer, filtered_lists=filtered_lists, namespaced=namespaced, group_rights=group_rights
        ),
        timeout.filter_for(request_timeout),
    ]
    return reduce(lambda inner, outer: outer(inner), reversed(filters), routes)
