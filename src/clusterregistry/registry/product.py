"""The cluster registry as a product on the library. A new kind is a line in ``_resources``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clusterregistry import __version__
from clusterregistry.api.clusterregistry import GROUP, v1beta1
from clusterregistry.apiserver.options.groups import option_set
from clusterregistry.apiserver.options.runtime_config import is_served
from clusterregistry.apiserver.product import FindCredential, Opened, OwnAuth, Product
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import DURATION, choice

if TYPE_CHECKING:
    from clusterregistry.apiserver.controllers.run import Controller
    from clusterregistry.apiserver.options import CompletedOptions
    from clusterregistry.apiserver.registry.rbac.bootstrap import GrantedRole
    from clusterregistry.apiserver.registry.resource import Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions:
    """Contents of the registry."""

    secret_lint: Literal["warn", "reject", "off"] = option(
        "warn",
        kind=choice("warn", "reject", "off"),
        help="What to do with an object that seems to hold credentials (private keys, tokens, passwords): answer with "
        "a warning, reject it, or nothing. The registry is a list that many read: it holds pointers to credentials, "
        "never credentials.",
        example="--secret-lint=reject",
    )
    cluster_status_interval: float = option(
        30.0,
        kind=DURATION,
        help="The interval at which controllers and agents renew the status of a cluster. One that was not renewed for "
        "three intervals gets status.state Stale. 0 leaves every status as it was written.",
        example="--cluster-status-interval=1m",
    )


def _resources(options: CompletedOptions) -> Sequence[Resource]:
    from clusterregistry.registry.cluster import cluster_resource  # noqa: PLC0415 - keeps --help fast
    from clusterregistry.registry.clusterset import cluster_set_resource  # noqa: PLC0415 - as above

    own: RegistryOptions = options.product
    given = options.features.runtime_config
    has_v1beta1 = is_served(given, group=GROUP, version=v1beta1.VERSION, plural="clusters")
    kinds = (cluster_resource(own.secret_lint, has_v1beta1=has_v1beta1), cluster_set_resource())
    if options.host:  # which authenticates and signs
        return kinds
    from clusterregistry.registry.bootstraptoken import bootstrap_token_resource  # noqa: PLC0415 - as above

    return *kinds, bootstrap_token_resource()


def _controllers(opened: Opened) -> Sequence[Controller]:
    from clusterregistry.registry.cluster.staleness import StalenessController  # noqa: PLC0415 - as above
    from clusterregistry.registry.clusterset.member_counter import MemberCounter  # noqa: PLC0415 - as above

    own: RegistryOptions = opened.options.product
    clusters, sets = opened.stores[f"clusters.{GROUP}"], opened.stores[f"clustersets.{GROUP}"]
    controllers: list[Controller] = []
    if own.cluster_status_interval:
        writer = opened.writer_of(clusters, "status")
        controllers.append(StalenessController(writer, interval=own.cluster_status_interval))
    if clusters.groups is not None:
        controllers.append(MemberCounter(opened.writer_of(sets, "status"), clusters.groups))
    if opened.options.host is None:
        from clusterregistry.registry.agents import parts  # noqa: PLC0415 - as above

        controllers += parts.controllers(opened)
    return controllers


def _auth(opened: Opened) -> OwnAuth:
    from clusterregistry.registry.agents import parts  # noqa: PLC0415 - as above

    return parts.own_auth(opened)


def _roles() -> Sequence[GrantedRole]:
    from clusterregistry.registry.program_roles import CONTROLLER  # noqa: PLC0415 - as above

    return (CONTROLLER,)


def _credential_finder() -> FindCredential:
    from clusterregistry.api.clusterregistry.credential_patterns import find_credential  # noqa: PLC0415

    return find_credential


PRODUCT = Product(
    options=option_set(
        "clusterregistry", own=RegistryOptions, defaults={"etcd_prefix": "/registry/clusterregistry.k8s.io"}
    ),
    title="Cluster registry",
    version=__version__,
    summary="clusterregistry keeps a list of clusters behind a Kubernetes-style API: use it with kubectl and any "
    "Kubernetes client.",
    example="get clusters",
    resources=_resources,
    controllers=_controllers,
    auth=_auth,
    roles=_roles,
    credential_finder=_credential_finder,
)
