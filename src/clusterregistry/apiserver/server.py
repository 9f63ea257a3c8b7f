"""The composition root: builds everything that answers requests from completed options and a product.

Nothing else puts parts together. The socket, TLS and the end of the process are ``lifecycle``'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from clusterregistry.api.rbac import GROUP as RBAC_GROUP
from clusterregistry.apimachinery.schema.structural import Structural
from clusterregistry.apiserver.audit.settings import Counts
from clusterregistry.apiserver.auth import AuthComponents, build_auth
from clusterregistry.apiserver.authn import union as authenticators
from clusterregistry.apiserver.authn.token_file import Reloads, TokenFile
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.client_ca import ClientAuthorities, client_authorities
from clusterregistry.apiserver.controllers.run import run_product_controllers, run_server_controllers
from clusterregistry.apiserver.controllers.work_queue import StoragePace
from clusterregistry.apiserver.endpoints.request import Handler
from clusterregistry.apiserver.endpoints.request_scope import RequestScope, field_managers
from clusterregistry.apiserver.endpoints.review import ReviewScope, review_scope
from clusterregistry.apiserver.endpoints.watch import WatchSettings
from clusterregistry.apiserver.fair_queue import FairQueue
from clusterregistry.apiserver.filters import chain
from clusterregistry.apiserver.filters.metrics import Measures, RequestMetrics
from clusterregistry.apiserver.health import Check, Health, Remark, ping
from clusterregistry.apiserver.options import CompletedOptions
from clusterregistry.apiserver.product import Opened, OwnAuth, Product
from clusterregistry.apiserver.registry.broadcaster import Broadcaster
from clusterregistry.apiserver.registry.certificates import resource as signing_requests
from clusterregistry.apiserver.registry.certificates.admission import admissions as certificate_admissions
from clusterregistry.apiserver.registry.certificates.signer import OwnAuthority, run_signer
from clusterregistry.apiserver.registry.rbac import escalation
from clusterregistry.apiserver.registry.rbac.bootstrap import Defaults, ServerWriter
from clusterregistry.apiserver.registry.rbac.controller import run_controllers
from clusterregistry.apiserver.registry.resource import Definition, Resource
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.registry.strategy import Admission, AdmissionChain
from clusterregistry.apiserver.resource_storage import ResourceStorage, now, open_resources
from clusterregistry.apiserver.reviews.interface import Review
from clusterregistry.apiserver.routes import Routes
from clusterregistry.apiserver.version_info import version_info
from clusterregistry.cli.console import with_program

if TYPE_CHECKING:
    from clusterregistry.apiserver.audit.trail import Audit
    from clusterregistry.apiserver.discovery.endpoints import Discovery
    from clusterregistry.apiserver.hostcluster.config_watch import AuthConfigWatch

STORED_OBJECTS = "stored-objects"
"""The check of readyz that never fails: the server serves the objects that it can read."""

UNIQUE_FIELDS = "unique-fields"
"""Another one: objects with the same value in a unique field are served, such as those of an earlier release."""


@dataclass(slots=True)
class Stopping:
    """Whether the server has begun to stop: readyz then fails."""

    requested: bool = False

    def check(self) -> str:
        return "the server is stopping" if self.requested else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Everything that answers requests, ready to be put behind a socket."""

    handler: Handler
    policy: Policy
    """The roles and bindings that RBAC decides from."""
    broadcasters: tuple[Broadcaster, ...]
    stopping: Stopping
    trust: ClientAuthorities
    config_watch: AuthConfigWatch | None = None
    """Watches the host cluster's configuration of certificates and front proxies; None: the options have all of it."""
    token_file: TokenFile | None = None
    """Users with static tokens, to be reloaded; None: there is no file."""

    def end_watches(self) -> None:
        for broadcaster in self.broadcasters:
            broadcaster.end_all()

    def abort_watches(self) -> None:
        for broadcaster in self.broadcasters:
            broadcaster.abort_all()


@contextlib.asynccontextmanager
async def build(options: CompletedOptions, product: Product) -> AsyncIterator[Server]:
    """Builds a server over its storage, and closes both at the end. Raises StorageUnavailable and OperatorError."""
    audit_counts = Counts()
    async with contextlib.AsyncExitStack() as stack:
        # First, so that it is closed last and records every request.
        audit = await _open_audit_log(options, product, audit_counts, stack)
        served = await open_resources(options, product, stack)
        policy = Policy()
        if options.host is None:
            await stack.enter_async_context(_run_rbac_controllers(policy, served, product))
            await stack.enter_async_context(_run_controllers(served))
            await stack.enter_async_context(_run_signer(options, served))
        opened = Opened(
            options=options, stores={one.resource.qualified_name: one.store for one in served}, writer_of=_writer_of
        )
        await stack.enter_async_context(run_product_controllers(product.controllers(opened)))
        own = OwnAuth() if options.host else product.auth(opened)
        auth = await build_auth(options, policy, [one.store for one in served], own=own, now=now, stack=stack)
        parts = _Parts(
            options=options,
            product=product,
            served=served,
            auth=auth,
            own_auth=own,
            policy=policy,
            audit=audit,
            audit_counts=audit_counts,
        )
        yield parts.assemble()


async def _open_audit_log(
    options: CompletedOptions, product: Product, counts: Counts, stack: contextlib.AsyncExitStack
) -> Audit | None:
    if options.audit_settings is None:
        return None
    # Late, as everything that most servers do without: a start is little more than imports.
    from clusterregistry.apiserver.audit import backend  # noqa: PLC0415

    return await stack.enter_async_context(
        backend.open_audit_log(options.audit_settings, counts, looks_secret=product.credential_finder())
    )


def _run_rbac_controllers(
    policy: Policy, served: list[ResourceStorage], product: Product
) -> contextlib.AbstractAsyncContextManager[None]:
    """Keeps the policy in step with the stored roles and bindings, and the default ones in place."""

    def writer(plural: str) -> ServerWriter:
        one = next(one for one in served if one.resource.plural == plural)
        field_manager = field_managers(one.resource, one.resource.stored_as, now=now)[""]
        return ServerWriter(store=one.store, field_manager=field_manager)

    resources = [one.resource for one in served]
    defaults = Defaults(manager=product.name, resources=resources, granted=product.roles())
    return run_controllers(policy, {plural: writer(plural) for plural in escalation.RESOURCES}, defaults=defaults)


def _run_controllers(served: list[ResourceStorage]) -> contextlib.AbstractAsyncContextManager[None]:
    """Collects garbage, keeps the lifecycle of namespaces, and removes what has expired."""
    return run_server_controllers([one.store for one in served], writer_of=_writer_of)


def _writer_of(store: Store, subresource: str) -> ServerWriter:
    field_manager = field_managers(store.resource, store.resource.stored_as, now=now)[subresource]
    return ServerWriter(store=store, field_manager=field_manager, subresource=subresource)


def _run_signer(
    options: CompletedOptions, served: list[ResourceStorage]
) -> contextlib.AbstractAsyncContextManager[None]:
    """Signs approved requests for client certificates with the server's own authority, if clients may have those."""
    store = next(one.store for one in served if one.resource.qualified_name == signing_requests.QUALIFIED_NAME)
    field_manager = field_managers(store.resource, store.resource.stored_as, now=now)["status"]
    layout = options.layout
    return run_signer(
        ServerWriter(store=store, field_manager=field_manager, subresource="status"),
        OwnAuthority(layout.ca_certificate, layout.ca_key) if options.generate_admin else None,
        pause=StoragePace(store.storage).when_overtaken,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """The parts of a server that were opened and have to be closed; ``assemble`` builds the rest upon them."""

    options: CompletedOptions
    product: Product
    served: list[ResourceStorage]
    auth: AuthComponents
    own_auth: OwnAuth
    policy: Policy
    audit: Audit | None
    audit_counts: Counts

    def assemble(self) -> Server:
        options, auth = self.options, self.auth
        scopes, review_scopes = self._scopes(), _review_scopes(auth.reviews)
        request_metrics = RequestMetrics(
            {
                name: (*scope.resource.subresources, *scope.resource.views)
                for name, scope in (scopes | review_scopes).items()
            }
        )
        stopping, trust = Stopping(), client_authorities(options)
        routes = Routes(
            scopes=scopes,
            reviews=review_scopes,
            discovery=self._discovery,
            health=Health(self._checks(stopping), remarks=self._remarks()),
            measures=self._measures(request_metrics),
            version=version_info(self.product),
            watch_settings=self._watch_settings(request_metrics),
            profiling=self.options.features.profiling,
        )
        handler = chain.build(
            routes,
            authenticator=authenticators.in_order(
                front_proxy=trust.front_proxy,
                clients=trust.clients,
                tokens=auth.tokens,
                anonymous=options.authentication.anonymous_auth,
            ),
            proxy_headers=trust.proxy_headers,
            authorizer=auth.authorizer,
            filtered_lists=options.authorization.authorization_filtered_lists,
            namespaced={(group, plural) for (group, _, plural), scope in scopes.items() if scope.resource.namespaced},
            group_rights=auth.group_rights,
            request_metrics=request_metrics,
            reading=_fair_queue(options.limits.max_requests_inflight),
            writing=_fair_queue(options.limits.max_mutating_requests_inflight),
            request_timeout=options.serving.request_timeout,
            audit_log=self.audit,
        )
        return Server(
            handler=handler,
            policy=self.policy,
            broadcasters=tuple(one.broadcaster for one in self.served),
            stopping=stopping,
            trust=trust,
            config_watch=auth.config_watch,
            token_file=auth.token_file,
        )

    def _scopes(self) -> dict[tuple[str, str, str], RequestScope]:
        admissions = self._admissions()
        return {
            (one.resource.group_of(version), version.name, one.resource.plural): RequestScope(
                resource=one.resource,
                version=version,
                structural=one.structural if version is one.resource.stored_as else Structural(version.schema),
                store=one.store.in_version(version),
                broadcaster=one.broadcaster,
                field_managers=field_managers(one.resource, version, now=now),
                admissions=_in_turn(
                    _declared_admissions(one.resource) | admissions.get(one.resource.qualified_name, {}),
                    self.own_auth.admissions.get(one.resource.qualified_name, {}),
                ),
                group_rights=self.auth.group_rights.get((one.resource.group_of(version), one.resource.plural)),
            )
            for one in self.served
            for version in one.resource.versions
        }

    def _admissions(self) -> dict[str, dict[str, Admission]]:
        """What writing a native resource needs besides being authorized: by its qualified name and by subresource."""
        current, authorizer = self.served[0].store.storage.current_revision, self.auth.authorizer
        roles: dict[str, dict[str, Admission]] = {
            f"{plural}.{RBAC_GROUP}": {
                "": admission(self.policy, authorizer, resource=plural, current_revision=current)
            }
            for plural, admission in escalation.ADMISSIONS.items()
        }
        return roles | {signing_requests.QUALIFIED_NAME: certificate_admissions(authorizer)}

    def _discovery(self) -> Discovery:
        """Called with the first request for discovery."""
        from clusterregistry.apiserver.discovery.endpoints import Discovery  # noqa: PLC0415
        from clusterregistry.apiserver.discovery.operations import Served  # noqa: PLC0415 - a start does not wait for it

        reviews: list[Definition] = [review.definition for review in self.auth.reviews]
        return Discovery(
            Served(
                resources=[*(one.resource for one in self.served if one.resource.versions), *reviews],
                enable_watch=self.options.features.enable_watch,
            ),
            server_address=self.options.server_url.removeprefix("https://"),
            title=self.product.title,
            version=self.product.version,
        )

    def _measures(self, request_metrics: RequestMetrics) -> Measures:
        served, token_file = self.served, self.auth.token_file
        return Measures(
            request_metrics,
            program=self.product.name,
            audit=self.audit_counts,
            token_file=Reloads() if token_file is None else token_file.reloads,
            objects={one.resource.qualified_name: one.store.count for one in served},
            corrupt={one.resource.qualified_name: partial(len, one.store.corrupt) for one in served},
            watches=lambda: sum(one.broadcaster.watchers for one in served),
        )

    def _watch_settings(self, request_metrics: RequestMetrics) -> WatchSettings | None:
        if not self.options.features.enable_watch:
            return None
        return WatchSettings(
            min_timeout=self.options.serving.min_request_timeout,
            on_terminated=request_metrics.watcher_terminated,
        )

    def _checks(self, stopping: Stopping) -> Mapping[str, Mapping[str, Check]]:
        live: dict[str, Check] = {"ping": ping}
        storage = {"storage": self._storage_problem}
        return {
            "livez": live,
            "healthz": live | storage,
            "readyz": {
                **live,
                **storage,
                STORED_OBJECTS: ping,
                UNIQUE_FIELDS: ping,
                **self.auth.checks,
                "shutdown": stopping.check,
            },
        }

    def _remarks(self) -> Mapping[str, Remark]:
        return {
            STORED_OBJECTS: Remark(self._corrupt_keys, "set aside"),
            UNIQUE_FIELDS: Remark(self._duplicate_values, "not unique"),
        }

    def _storage_problem(self) -> str:
        found = next((wrong for one in self.served if (wrong := one.store.problem())), "")
        return with_program(found, self.product.name) if found else ""

    def _corrupt_keys(self) -> list[str]:
        """A line for each key whose object cannot be read."""
        return [f"{key}: {found.reason}" for one in self.served for key, found in one.store.corrupt.items()]

    def _duplicate_values(self) -> list[str]:
        """A line for each value of a unique field that several objects have."""
        return [f"{one.resource.qualified_name}: {each}" for one in self.served for each in one.store.unique.duplicates]


def _declared_admissions(resource: Resource) -> dict[str, Admission]:
    """The admissions that a resource declares itself, by subresource."""
    declared = {"": resource.admission} | {name: each.admission for name, each in resource.subresources.items()}
    return {name: admission for name, admission in declared.items() if admission is not None}


def _in_turn(first: Mapping[str, Admission], then: Mapping[str, Admission]) -> dict[str, Admission]:
    """Both admissions of each subresource."""
    both = {name: AdmissionChain(first[name], then[name]) for name in first.keys() & then.keys()}
    return {**first, **then, **both}


def _review_scopes(reviews: Sequence[Review]) -> dict[tuple[str, str, str], ReviewScope]:
    return {
        (review.definition.group, version.name, review.definition.plural): review_scope(review, version, now=now)
        for review in reviews
        for version in review.definition.versions
    }


def _fair_queue(limit: int) -> FairQueue | None:
    return FairQueue(limit) if limit else None
