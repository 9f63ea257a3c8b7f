"""What a program brings to the library to be a server of its own: its name, its options and its kinds.

The library serves the native kinds (ClusterRole, ClusterRoleBinding, reviews) for every product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clusterregistry.apiserver.options.groups import Options
from clusterregistry.cli.options.field import OptionSet

if TYPE_CHECKING:
    from clusterregistry.apiserver.authn.bearer import TokenAuthenticator
    from clusterregistry.apiserver.authz.interface import Authorizer
    from clusterregistry.apiserver.controllers.garbage_collector import WriterOf
    from clusterregistry.apiserver.controllers.run import Controller
    from clusterregistry.apiserver.options import CompletedOptions
    from clusterregistry.apiserver.registry.rbac.bootstrap import GrantedRole
    from clusterregistry.apiserver.registry.resource import Resource
    from clusterregistry.apiserver.registry.store import Store
    from clusterregistry.apiserver.registry.strategy import Admission

FindCredential = Callable[[str], str]
"""Says what kind of credential a text holds; empty for none."""


def _find_nothing() -> FindCredential:
    return lambda _text: ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a product builds its controllers upon: the stores of the server, and how the server itself writes."""

    options: CompletedOptions
    stores: Mapping[str, Store]
    """By qualified name, such as ``widgets.example.com``: every resource, served or not."""
    writer_of: WriterOf
    """Makes the writer of a store and a subresource (empty: the object itself)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAuth:
    """What a product adds to the authentication, authorization and admission of a server that stands alone."""

    tokens: Sequence[TokenAuthenticator] = ()
    """Sources of bearer tokens. They are asked after the token file, and before other servers."""
    authorizers: Sequence[Authorizer] = ()
    """They are asked after ``system:masters``, and before all modes: what they deny, no mode allows."""
    admissions: Mapping[str, Mapping[str, Admission]] = field(default_factory=dict)
    """By qualified name and subresource, also for native resources: they come after the resource's own."""


def _no_own_auth(_opened: Opened) -> OwnAuth:
    return OwnAuth()


def _no_roles() -> Sequence[GrantedRole]:
    return ()


def _no_controllers(_opened: Opened) -> Sequence[Controller]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A program on the library. It is made at every start: what is slow to import belongs into the functions."""

    options: OptionSet[Options]
    """The options of the program, and its name, after which it names its files, variables and user agent."""
    title: str
    """The title of the OpenAPI document."""
    version: str
    summary: str
    """The first line of ``--help``: what the program is for."""
    example: str
    """A kubectl command that an administrator can try, such as ``get widgets``."""
    resources: Callable[[CompletedOptions], Sequence[Resource]]
    """Makes the resources of the product."""
    controllers: Callable[[Opened], Sequence[Controller]] = _no_controllers
    """Makes the controllers that run beside the requests, also behind a host cluster."""
    auth: Callable[[Opened], OwnAuth] = _no_own_auth
    """Makes the product's own users and rights. Not called behind a host cluster, which decides alone."""
    roles: Callable[[], Sequence[GrantedRole]] = _no_roles
    """Makes the default roles of the product's own programs, for a server that stands alone with RBAC."""
    credential_finder: Callable[[], FindCredential] = _find_nothing
    """Gives what finds credentials in texts: the audit log masks them."""

    @property
    def name(self) -> str:
        return self.options.program
