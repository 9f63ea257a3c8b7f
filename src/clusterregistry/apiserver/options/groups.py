"""All options together, and the index by which the readers find them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clusterregistry.apiserver.options.audit import AuditOptions
from clusterregistry.apiserver.options.authentication import AuthenticationOptions
from clusterregistry.apiserver.options.authorization import AuthorizationOptions
from clusterregistry.apiserver.options.features import FeatureOptions
from clusterregistry.apiserver.options.front_proxy import FrontProxyOptions
from clusterregistry.apiserver.options.host_cluster import HostClusterOptions
from clusterregistry.apiserver.options.limits import LimitOptions
from clusterregistry.apiserver.options.oidc import OIDCOptions
from clusterregistry.apiserver.options.serving import ServingOptions
from clusterregistry.apiserver.options.storage import StorageOptions
from clusterregistry.apiserver.options.webhooks import WebhookOptions
from clusterregistry.cli.options.field import Option, options_of
from clusterregistry.cli.options.general import GeneralOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options as given: each value parsed, none looked at together with another. See ``completing``."""

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


# The order of --help and of the reference: what a newcomer needs first comes first.
GROUPS: dict[str, type[Any]] = {
    "general": GeneralOptions,
    "storage": StorageOptions,
    "serving": ServingOptions,
    "authentication": AuthenticationOptions,
    "front_proxy": FrontProxyOptions,
    "authorization": AuthorizationOptions,
    "limits": LimitOptions,
    "oidc": OIDCOptions,
    "webhooks": WebhookOptions,
    "audit": AuditOptions,
    "features": FeatureOptions,
    "host_cluster": HostClusterOptions,
}

BY_GROUP: dict[str, list[Option]] = {name: options_of(group) for name, group in GROUPS.items()}
BY_FLAG: dict[str, Option] = {each.flag: each for group in BY_GROUP.values() for each in group}


def title(name: str) -> str:
    """A group's heading, from the first line of its docstring."""
    return (GROUPS[name].__doc__ or name).splitlines()[0].rstrip(".")
