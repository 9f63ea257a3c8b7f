"""The composition root: from completed options to everything that answers requests.

Nothing else puts parts together. ``build`` makes everything but the socket, which is ``running``'s business.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver import auth, resource_storage
from clusterregistry.apiserver.audit.settings import Counts
from clusterregistry.apiserver.auth import AuthComponents
from clusterregistry.apiserver.authn import union as authenticators
from clusterregistry.apiserver.authn.token_file import Reloads, TokenFile
from clusterregistry.apiserver.authz.interface import Authorizer
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.client_ca import ClientAuthorities, client_authorities
from clusterregistry.apiserver.endpoints.request import Handler
from clusterregistry.apiserver.endpoints.request_scope import RequestScope, field_managers
from clusterregistry.apiserver.endpoints.review import ReviewScope, review_scope
from clusterregistry.apiserver.endpoints.watch import WatchSettings
from clusterregistry.apiserver.fair_queue import FairQueue
from clusterregistry.apiserver.filters import chain
from clusterregistry.apiserver.health import Check, Health, ping
from clusterregistry.apiserver.metrics import Measures, RequestMetrics
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.product import Product
from clusterregistry.apiserver.registry.broadcaster import Broadcaster
from clusterregistry.apiserver.registry.rbac import escalation
from clusterregistry.apiserver.registry.rbac.bootstrap import Defaults, ServerWriter
from clusterregistry.apiserver.registry.rbac.controller import run_controllers
from clusterregistry.apiserver.registry.resource import Definition
from clusterregistry.apiserver.registry.strategy import Admission
from clusterregistry.apiserver.resource_storage import ResourceStorage, now
from clusterregistry.apiserver.reviews.interface import Review
from clusterregistry.apiserver.routes import Routes
from clusterregistry.apiserver.storage.interface import Storage
from clusterregistry.apiserver.version_info import version_info

if TYPE_CHECKING:
    from clusterregistry.apiserver.audit.trail import Audit
    from clusterregistry.apiserver.discovery.endpoints import Discovery
    from clusterregistry.apiserver.hostcluster.config_watch import AuthConfigWatch


@dataclass(slots=True)
class Stopping:
    """Whether the server was told to stop: readyz then says no."""

    requested: bool = False

    def check(self) -> str:
        return "the server is stopping" if self.requested else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Everything that answers requests, ready to be put behind a socket."""

    handler: Handler
    policy: Policy
    """What RBAC decides from."""
    hubs: tuple[Broadcaster, ...]
    stopping: Stopping
    trust: ClientAuthorities
    following: AuthConfigWatch | None = None
    """What the host cluster says of certificates and front proxies, to be followed; None: the options say all of it."""
    token_file: TokenFile | None = None
    """Users with static tokens, to be followed; None: there is no such file."""

    def end_watches(self) -> None:
        for hub in self.hubs:
            hub.end_all()

    def abort_watches(self) -> None:
        for hub in self.hubs:
            hub.abort_all()


@contextlib.asynccontextmanager
async def build(options: CompletedOptions, product: Product) -> AsyncIterator[Server]:
    """A server over its storage, which is closed at the end. Raises StorageUnavailable and StartupProblem."""
    audit_counts = Counts()
    async with contextlib.AsyncExitStack() as stack:
        # First, so that it ends last and has everything in it.
        audit = await _audit_log(options, product, audit_counts, stack)
        served = await resource_storage.open_resources(options, product, stack)
        policy = Policy()
        if options.host is None:
            await stack.enter_async_context(_kept_up(policy, served, product))
            deciders = await auth.local_auth(options, policy, now=now, stack=stack)
        else:
            deciders = auth.host_auth(options.host, options, stack)
        yield _assemble(options, product, served, deciders, policy=policy, audit=audit, audit_counts=audit_counts)


async def _audit_log(
    options: CompletedOptions, product: Product, counts: Counts, stack: contextlib.AsyncExitStack
) -> Audit | None:
    if options.audit_settings is None:
        return None
    # Only here, as with all that most servers do without: a start is little more than imports.
    from clusterregistry.apiserver.audit import backend  # noqa: PLC0415

    return await stack.enter_async_context(
        backend.open_audit_log(options.audit_settings, counts, looks_secret=product.credential_finder())
    )


def _kept_up(
    policy: Policy, served: list[ResourceStorage], product: Product
) -> contextlib.AbstractAsyncContextManager[None]:
    """All that keeps the policy and the roles and bindings that it is made of."""

    def keeper(plural: str) -> ServerWriter:
        one = next(one for one in served if one.resource.plural == plural)
        return ServerWriter(
            store=one.store, field_manager=field_managers(one.resource, one.resource.versions[0], now=now)[""]
        )

    defaults = Defaults(manager=product.name, resources=[one.resource for one in served])
    roles, bindings = keeper(escalation.ROLES), keeper(escalation.BINDINGS)
    return run_controllers(policy, roles=roles, bindings=bindings, defaults=defaults)


def _assemble(  # noqa: PLR0913 - the parts of a server, half of them by keyword
    options: CompletedOptions,
    product: Product,
    served: list[ResourceStorage],
    deciders: AuthComponents,
    *,
    policy: Policy,
    audit: Audit | None,
    audit_counts: Counts,
) -> Server:
    authorizer, reviews = deciders.authorizer, deciders.reviews
    scopes = _scopes(served, _admissions(policy, authorizer, served[0].store.storage))
    review_scopes = _review_scopes(reviews)
    definitions = [*(one.resource for one in served), *(review.definition for review in reviews)]
    request_metrics = RequestMetrics([*scopes, *review_scopes])
    measures = Measures(
        request_metrics,
        program=product.name,
        audit=audit_counts,
        token_file=Reloads() if deciders.token_file is None else deciders.token_file.reloads,
        objects={one.resource.qualified_name: one.store.count for one in served},
        corrupt={one.resource.qualified_name: partial(len, one.store.corrupt) for one in served},
        watches=lambda: sum(one.hub.watchers for one in served),
    )
    stopping, trust = Stopping(), client_authorities(options)
    routes = Routes(
        scopes=scopes,
        reviews=review_scopes,
        discovery=partial(_discovery, options, product, definitions),
        health=Health(
            _checks(stopping, _storage_check(served), deciders.checks),
            remarks={STORED_OBJECTS: partial(_corrupt_keys, served)},
        ),
        measures=measures,
        version=version_info(product),
        watch_settings=_watch_settings(options, request_metrics),
    )
    handler = chain.build(
        routes,
        authenticator=authenticators.in_order(
            front_proxy=trust.front_proxy,
            clients=trust.clients,
            tokens=deciders.tokens,
            anonymous=options.authentication.anonymous_auth,
        ),
        proxy_headers=trust.proxy_headers,
        authorizer=authorizer,
        filtered_lists=options.authorization.authorization_filtered_lists,
        request_metrics=request_metrics,
        reading=_seats(options.limits.max_requests_inflight),
        writing=_seats(options.limits.max_mutating_requests_inflight),
        request_timeout=options.serving.request_timeout,
        audit_log=audit,
    )
    hubs = tuple(one.hub for one in served)
    return Server(
        handler=handler,
        policy=policy,
        hubs=hubs,
        stopping=stopping,
        trust=trust,
        following=deciders.following,
        token_file=deciders.token_file,
    )


def _seats(limit: int) -> FairQueue | None:
    return FairQueue(limit) if limit else None


def _admissions(policy: Policy, authorizer: Authorizer, storage: Storage) -> dict[str, Admission]:
    """What writing a resource needs besides being authorized, by the plural name of the resource."""
    current = storage.current_revision
    return {
        escalation.ROLES: escalation.RoleEscalation(policy, authorizer, current_revision=current),
        escalation.BINDINGS: escalation.BindingEscalation(policy, authorizer, current_revision=current),
    }


def _scopes(
    served: list[ResourceStorage], admissions: Mapping[str, Admission]
) -> dict[tuple[str, str, str], RequestScope]:
    return {
        (one.resource.group, version.name, one.resource.plural): RequestScope(
            resource=one.resource,
            version=version,
            structural=one.structural if version is one.resource.stored_as else Structural(version.schema),
            store=one.store,
            hub=one.hub,
            field_managers=field_managers(one.resource, version, now=now),
            admission=admissions.get(one.resource.plural),
        )
        for one in served
        for version in one.resource.versions
    }


def _review_scopes(reviews: Sequence[Review]) -> dict[tuple[str, str, str], ReviewScope]:
    return {
        (review.definition.group, version.name, review.definition.plural): review_scope(review, version, now=now)
        for review in reviews
        for version in review.definition.versions
    }


def _discovery(options: CompletedOptions, product: Product, definitions: Sequence[Definition]) -> Discovery:
    """Called when somebody asks for it."""
    from clusterregistry.apiserver.discovery.endpoints import Discovery  # noqa: PLC0415
    from clusterregistry.apiserver.discovery.operations import Served  # noqa: PLC0415 - a start does not wait for it

    return Discovery(
        Served(resources=definitions, enable_watch=options.features.enable_watch),
        server_address=options.server_url.removeprefix("https://"),
        title=product.title,
        version=product.version,
    )


def _watch_settings(options: CompletedOptions, request_metrics: RequestMetrics) -> WatchSettings | None:
    if not options.features.enable_watch:
        return None
    return WatchSettings(
        min_timeout=options.serving.min_request_timeout,
        on_terminated=request_metrics.watcher_terminated,
    )


def _storage_check(served: list[ResourceStorage]) -> Check:
    def check() -> str:
        return next((wrong for one in served if (wrong := one.store.problem())), "")

    return check


STORED_OBJECTS = "stored-objects"
"""The check of readyz that never fails: what cannot be read is no reason to send nobody here."""


def _corrupt_keys(served: list[ResourceStorage]) -> list[str]:
    """A line for each key that is set aside."""
    return [f"{key}: {found.reason}" for one in served for key, found in one.store.corrupt.items()]


def _checks(stopping: Stopping, storage: Check, others: Mapping[str, Check]) -> Mapping[str, Mapping[str, Check]]:
    live: dict[str, Callable[[], str]] = {"ping": ping}
    return {
        "livez": live,
        "healthz": {**live, "storage": storage},
        "readyz": {**live, "storage": storage, STORED_OBJECTS: ping, **others, "shutdown": stopping.check},
    }
