"""Which resources this server serves: the one list. A new kind is a folder under ``registry`` and a line here.

The questions that it answers are listed here too: a new one is a file under ``reviews`` and a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clusterregistry.apiserver.authz.union import Union
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.registry.rbac.resources import cluster_role_binding_resource, cluster_role_resource
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.reviews.authentication import SelfSubjectReviews, TokenReviews, TokenSource
from clusterregistry.apiserver.reviews.authorization import (
    SelfSubjectAccessReviews,
    SelfSubjectRulesReviews,
    SubjectAccessReviews,
)
from clusterregistry.apiserver.reviews.interface import Review
from clusterregistry.registry.cluster import cluster_resource


def resources(options: CompletedOptions) -> Sequence[Resource]:
    """In aggregated mode the host cluster has the roles and bindings."""
    ours = (cluster_resource(options.features.secret_lint),)
    return ours if options.host else (*ours, cluster_role_binding_resource(), cluster_role_resource())


def reviews(*, authorizer: Union, tokens: Sequence[TokenSource], now: Callable[[], str]) -> Sequence[Review]:
    """The questions about users and what they may do; ``authorizer`` and ``tokens`` are those that requests meet."""
    return (
        SelfSubjectReviews(now),
        TokenReviews(tokens),
        SelfSubjectAccessReviews(authorizer),
        SelfSubjectRulesReviews(authorizer),
        SubjectAccessReviews(authorizer),
    )
