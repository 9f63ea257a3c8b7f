"""All options together: their values (``Options``), and what a program knows of them (``OptionSet``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
    product: Any = None
    """The product's own group, None when it has none."""
    host_cluster: HostClusterOptions = field(default_factory=HostClusterOptions)


# The order of --help and of the reference: what a newcomer needs first comes first.
_GROUPS: dict[str, type[Any]] = {
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


_PROGRAM = "PROGRAM"
"""Stands for the name of the program in the help, the defaults and the examples of options."""


class OptionSet:
    """The options of one program: those of every server, and the product's own group.

    ``own`` is a dataclass of options, ``defaults`` are values by field that differ from those of every server.
    """

    def __init__(
        self, program: str, *, own: type[Any] | None = None, defaults: Mapping[str, Any] | None = None
    ) -> None:
        self.program = program
        self.environment_prefix = program.upper().replace("-", "_") + "_"
        self.defaults = dict(defaults or {})
        self._groups = {name: group for name, group in {**_GROUPS, "product": own}.items() if group is not None}
        self.by_group = {
            name: [self._named(each) for each in options_of(group)] for name, group in self._groups.items()
        }
        self.by_flag = {each.flag: each for group in self.by_group.values() for each in group}

    def _named(self, option: Option) -> Option:
        details = option.details
        return replace(
            option,
            variable=self.variable_of(option.flag),
            default=self.defaults.get(option.field, option.default),
            details=replace(
                details,
                help=self.names_program(details.help),
                default_shown=self.names_program(details.default_shown),
                example=self.names_program(details.example),
            ),
        )

    def names_program(self, text: str) -> str:
        """``text`` with the name of the program in the place of ``PROGRAM``."""
        return text.replace(_PROGRAM, self.program)

    def variable_of(self, flag: str) -> str:
        """The environment variable of a flag."""
        return self.environment_prefix + flag.upper().replace("-", "_")

    def title(self, name: str) -> str:
        """A group's heading, from the first line of its docstring."""
        return self.names_program((self._groups[name].__doc__ or name).splitlines()[0].rstrip("."))

    def options(self, values: Mapping[str, Any]) -> Options:
        """The groups with these values, by field; all others have their defaults."""
        given = {**self.defaults, **values}
        return Options(
            **{
                name: self._groups[name](**{each.field: given[each.field] for each in members if each.field in given})
                for name, members in self.by_group.items()
            }
        )
