"""All options of the server together, their index, and which of them a command takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from typing import Any

from clusterregistry.apiserver.options.audit import AuditOptions
from clusterregistry.apiserver.options.authentication import AuthenticationOptions
from clusterregistry.apiserver.options.authorization import AuthorizationOptions
from clusterregistry.apiserver.options.features import FeatureOptions
from clusterregistry.apiserver.options.front_proxy import FrontProxyOptions
from clusterregistry.apiserver.options.host_cluster import OURS, HostClusterOptions
from clusterregistry.apiserver.options.limits import LimitOptions
from clusterregistry.apiserver.options.oidc import OIDCOptions
from clusterregistry.apiserver.options.serving import ServingOptions
from clusterregistry.apiserver.options.storage import StorageOptions
from clusterregistry.apiserver.options.vocabulary import VOCABULARY
from clusterregistry.apiserver.options.webhooks import WebhookOptions
from clusterregistry.cli.options.field import Option, OptionSet
from clusterregistry.cli.options.general import GeneralOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options as given: each value parsed, none checked together with another; see ``completion``.

    The order is that of --help and of the reference: what a newcomer needs first comes first.
    """

    general: GeneralOptions = field(default_factory=GeneralOptions)
    storage: StorageOptions = field(default_factory=StorageOptions)
    serving: ServingOptions = field(default_factory=ServingOptions)
    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    front_proxy: FrontProxyOptions = field(default_factory=FrontProxyOptions)
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    limits: LimitOptions = field(default_factory=LimitOptions)
    oidc: OIDCOptions = field(default_factory=OIDCOptions)
    webhooks: WebhookOptions = field(default_factory=WebhookOptions)
    audit: AuditOptions = field(default_factory=AuditOptions)
    features: FeatureOptions = field(default_factory=FeatureOptions)
    host_cluster: HostClusterOptions = field(default_factory=HostClusterOptions)
    product: Any = None
    """The product's own group; None: it has none."""


def option_set(
    program: str, *, own: type[Any] | None = None, defaults: Mapping[str, Any] | None = None
) -> OptionSet[Options]:
    """Makes the options of a server program: those of every server, and the product's ``own`` group.

    ``defaults`` are values by field that differ from those of every server.
    """
    environment_prefix = program.upper().replace("-", "_") + "_"
    return OptionSet(
        shape=Options if own is None else _with_group(own),
        program=program,
        defaults=defaults or {},
        environment_prefix=environment_prefix,
        # Where tools/programs.py keeps its downloads; a developer may have it set while running a server.
        not_options=frozenset({f"{environment_prefix}CACHE"}),
        command_line_only=("help", "print-config"),
        vocabulary=VOCABULARY,
    )


def _with_group(own: type[Any]) -> type[Options]:
    product = ("product", own, field(default_factory=own))
    return make_dataclass("Options", [product], bases=(Options,), frozen=True, kw_only=True)


LEFT_TO_THE_HOST = ("authentication", "authorization", "oidc", "webhooks")
"""Groups of which aggregated mode takes only what ``host_cluster.OURS`` names."""


def by_group(known: OptionSet[Options], *, aggregated: bool) -> dict[str, list[Option]]:
    """Returns the options that a command takes, in the order of --help. Groups without any are left out.

    `standalone` knows users itself, `aggregated` leaves them to the host cluster.
    """

    def is_taken(group: str, option: Option) -> bool:
        if not aggregated:
            return group != "host_cluster"
        return group not in LEFT_TO_THE_HOST or option.field in OURS

    taken = {name: [each for each in options if is_taken(name, each)] for name, options in known.by_group.items()}
    return {name: options for name, options in taken.items() if options}
