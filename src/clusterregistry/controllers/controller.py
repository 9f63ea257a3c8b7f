"""The status controller: observes the clusters of a registry, and writes what it found, while it is the leader.

Every replica follows the clusters of the registry, so that it is ready. The one that holds the Lease runs an observer
and a writer, both made for this term alone: what is known of clusters is in their status, where the next leader finds
it. A leader that cannot renew its Lease stops before another one can have it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Protocol

from clusterregistry.api.clusterregistry.agents import has_agent
from clusterregistry.client import errors
from clusterregistry.client.informer import Handler, Informer, InformerOptions
from clusterregistry.client.leader_election import LEASES, LeaderElectionConfig, LeaderElector, LeadershipLostError
from clusterregistry.client.rest import Client, Object, metadata
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.retry import ONCE, Backoff
from clusterregistry.controllers.cluster_client import ClusterClient, served_version
from clusterregistry.controllers.event_recorder import EventRecorder
from clusterregistry.controllers.exposition import Readings
from clusterregistry.controllers.health_server import Answer, Paths
from clusterregistry.controllers.observer.credentials import MemberAccess
from clusterregistry.controllers.observer.observation import Observation
from clusterregistry.controllers.observer.observer import Observer
from clusterregistry.controllers.observer.settings import ObserverSettings
from clusterregistry.controllers.status import StatusSettings
from clusterregistry.controllers.status_writer import StatusWriter, WriteCounts, WriterSettings
from clusterregistry.controllers.transitions import Told, told, transitions

_log = logging.getLogger(__name__)

CONTROLLER = "clusterregistry.k8s.io/status-controller"
"""The reporting controller of events."""

_WRITE_CONNECTIONS = 8
_LEASE_SECONDS = 5.0
_START_BACKOFF = Backoff(first=1.0, longest=15.0)


class ForgettingAccess(MemberAccess, Protocol):
    """Access that keeps credentials, and forgets those of clusters that are gone."""

    @property
    def problem(self) -> Exception | None:
        """Why the newest rules are not in use; None: they are."""
        ...

    def forget(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """One controller. ``identity`` is of this process: no other may have it."""

    identity: str
    election: LeaderElectionConfig | None
    """None: it leads without asking."""
    lease_namespace: str = "kube-system"
    observer: ObserverSettings = field(default_factory=ObserverSettings)
    status: StatusSettings = field(default_factory=StatusSettings)
    writer: WriterSettings = field(default_factory=WriterSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connections:
    """Clients of the registry: a flood of writes never delays the Lease."""

    watching: Client
    writing: Client
    leases: Client


@contextlib.asynccontextmanager
async def _connected(config: RestConfig) -> AsyncIterator[_Connections]:
    """Raises ConfigError for credentials that cannot be used."""
    async with (
        Client(config) as watching,
        Client(replace(config, max_connections=_WRITE_CONNECTIONS), retry=ONCE) as writing,
        Client(replace(config, timeout=_LEASE_SECONDS), retry=ONCE) as leases,
    ):
        yield _Connections(watching=watching, writing=writing, leases=leases)


@dataclass(slots=True)
class _Counts:
    """Over all terms of this process."""

    rounds: Counter[str] = field(default_factory=Counter)
    writes: WriteCounts = field(default_factory=WriteCounts)
    events: Counter[str] = field(default_factory=Counter)


class Controller:
    """Used on one loop. ``run`` may be called once."""

    def __init__(self, config: RestConfig, access: ForgettingAccess, settings: ControllerSettings) -> None:
        self._config, self._access, self._settings = config, access, settings
        self._informer: Informer | None = None
        self._elector: LeaderElector | None = None
        self._term: _Term | None = None
        self._counts = _Counts()
        self._render: Callable[[], bytes] | None = None
        self.problem = "the registry was not asked yet"
        """Why there are no clusters to observe; empty if there are."""

    async def run(self) -> None:
        """Observes while this is the leader, until it is cancelled. A registry that is away is waited for.

        Raises ConfigError for credentials that cannot be used.
        """
        async with _connected(self._config) as connections:
            version = await self._find_version(connections.watching)
            clusters = ClusterClient(connections.watching, version=version)
            options = InformerOptions(transform=clusters.interpret)
            informer = self._informer = Informer(clusters.resource, options)
            informer.add_handler(Handler(on_add=self._added, on_update=self._updated, on_delete=self._deleted))
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(informer.run())
                tasks.create_task(self._campaign(connections, clusters.using(connections.writing), informer))

    async def _find_version(self, client: Client) -> str:
        """The version of clusters to use, once the registry answers."""
        failures = 0
        while True:
            try:
                version = await served_version(client)
            except errors.ClientError as error:
                failures += 1
                self.problem = str(error)
                _log.warning("%s: %s; it is tried again%s", self._config.server, error, _remedy(error))
                await asyncio.sleep(_START_BACKOFF.pause(failures))
            else:
                self.problem = ""
                _log.info("clusters of %s are observed in version %s", self._config.server, version)
                return version

    # Leadership

    async def _campaign(self, connections: _Connections, clusters: ClusterClient, informer: Informer) -> None:
        """Leads whenever the Lease is held; a lost Lease begins it again, as a candidate."""
        await informer.wait_synced()
        election = self._settings.election
        if election is None:
            await self._lead(connections, clusters, informer, may_write=lambda: True)
            return
        leases = connections.leases.resource(LEASES, namespace=self._settings.lease_namespace)
        while True:
            elector = self._elector = LeaderElector(leases, election, on_new_leader=self._announce)
            lead = _leading(self._lead, connections, clusters, informer, elector)
            try:
                await elector.run(lead)
            except LeadershipLostError as error:
                _log.warning("%s: this controller observes no more, and waits for the lease again", error)
            else:
                return

    def _announce(self, leader: str) -> None:
        if leader != self._settings.identity:
            _log.info("%s is the leader; this controller is ready to take over", leader)

    async def _lead(
        self, connections: _Connections, clusters: ClusterClient, informer: Informer, *, may_write: Callable[[], bool]
    ) -> None:
        """Observes and writes until it is cancelled."""
        recorder = EventRecorder(connections.leases, controller=CONTROLLER, instance=self._settings.identity)
        recorder.results = self._counts.events
        term = _Term(
            clusters, access=self._access, settings=self._settings, informer=informer, recorder=recorder,
            counts=self._counts, may_write=may_write,
        )  # fmt: skip
        self._term = term
        try:
            await term.run()
        finally:
            self._term = None

    # Changes of clusters

    def _added(self, cluster: Object) -> None:
        if self._term is not None:
            self._term.put(cluster)

    def _updated(self, before: Object, cluster: Object) -> None:
        if metadata(before).get("uid") != metadata(cluster).get("uid"):
            self._forget(before)
        if self._term is not None:
            self._term.put(cluster)

    def _deleted(self, cluster: Object) -> None:
        self._forget(cluster)

    def _forget(self, cluster: Object) -> None:
        name = _name(cluster)
        self._access.forget(name)
        if self._term is not None:
            self._term.remove(name)

    # Health and metrics

    def paths(self) -> Paths:
        """What the health server answers."""
        alive = Answer(b"ok")
        return {
            "/livez": lambda: alive,
            "/healthz": lambda: alive,
            "/readyz": self._readiness,
            "/metrics": self._metrics,
        }

    def _readiness(self) -> Answer:
        """Ready are those that know the clusters, leader or not: one that is not could not take over."""
        informer = self._informer
        if informer is None or not informer.has_synced:
            why = self.problem or str((informer and informer.last_error) or "the clusters are being read")
            return Answer(f"not ready: {why}\n".encode("utf-8", "replace"), HTTPStatus.SERVICE_UNAVAILABLE)
        leader = self._elector.leader if self._elector is not None else self._settings.identity
        lines = [f"[+]clusters: {len(informer.store)}", f"[+]leader: {leader or 'none yet'}"]
        if (mistakes := self._access.problem) is not None:  # the log has each of them: any client may read this
            lines.append(f"[!]access: {str(mistakes).partition(chr(10))[0].rstrip(':')}; the former rules are in use")
        if (term := self._term) is not None and term.writer.problem:
            lines.append(f"[!]writes: {term.writer.problem}")
        if informer.last_error is not None:
            lines.append(f"[!]watch: {informer.last_error}")
        return Answer("\n".join([*lines, "readyz check passed", ""]).encode("utf-8", "replace"))

    def _metrics(self) -> Answer:
        from clusterregistry.controllers import exposition  # noqa: PLC0415 - see there

        if self._render is None:
            self._render = exposition.renderer_of(self._readings)
        return Answer(self._render(), content_type=exposition.CONTENT_TYPE)

    def _readings(self) -> Readings:
        term, counts = self._term, self._counts
        return Readings(
            clusters=self._informer.store if self._informer is not None else (),
            is_leader=term is not None,
            has_synced=self._informer is not None and self._informer.has_synced,
            has_access_problem=self._access.problem is not None,
            rounds=counts.rounds,
            running=term.observer.running if term is not None else 0,
            writes=counts.writes.results,
            write_seconds=counts.writes.seconds,
            waiting=term.writer.waiting if term is not None else 0,
            events=counts.events,
        )


def _leading(
    lead: Callable[..., Awaitable[None]],
    connections: _Connections,
    clusters: ClusterClient,
    informer: Informer,
    elector: LeaderElector,
) -> Callable[[], Awaitable[None]]:
    return lambda: lead(connections, clusters, informer, may_write=lambda: elector.is_leader)


class _Term:
    """The time for which this process leads: its observer, its writer, and what it has told."""

    def __init__(  # noqa: PLR0913 - all but one by keyword
        self,
        clusters: ClusterClient,
        *,
        access: MemberAccess,
        settings: ControllerSettings,
        informer: Informer,
        recorder: EventRecorder,
        counts: _Counts,
        may_write: Callable[[], bool],
    ) -> None:
        self._informer, self._recorder, self._counts = informer, recorder, counts
        self._told: dict[str, Told] = {}
        """Of each cluster, the status of which the newest event told. The first one is that of the former leader."""
        self.observer = Observer(access, settings=settings.observer, report=self._report)
        self.writer = StatusWriter(
            clusters,
            find=informer.store.get,
            status=settings.status,
            settings=settings.writer,
            may_write=may_write,
            written=self._tell,
        )
        self.writer.counts = counts.writes

    async def run(self) -> None:
        for cluster in self._informer.store.objects():
            self.put(cluster)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.observer.run())
                tasks.create_task(self.writer.run())
                tasks.create_task(self._recorder.run())
        finally:
            await self.observer.close()

    def put(self, cluster: Object) -> None:
        if has_agent(cluster):  # which writes the same status from inside
            self.remove(_name(cluster))
            return
        self._told.setdefault(_name(cluster), told(cluster.get("status") or {}))
        self.observer.put(cluster)

    def remove(self, name: str) -> None:
        self.observer.remove(name)
        self.writer.forget(name)
        self._told.pop(name, None)

    def _report(self, name: str, observation: Observation) -> None:
        self._counts.rounds[str(observation.failure.reason) if observation.failure else ""] += 1
        self.writer.note(name, observation)

    def _tell(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Events of what has changed since the last ones, also by a write whose answer was lost."""
        status = after.get("status") or {}
        known = self._told.get(_name(after)) or told(before.get("status") or {})
        for happening in transitions(known, status):
            self._recorder.record(after, happening)
        self._told[_name(after)] = told(status)


def _name(cluster: Mapping[str, Any]) -> str:
    return str(metadata(cluster).get("name"))


def _remedy(error: errors.ClientError) -> str:
    if isinstance(error, errors.TLSError):
        return ". What to do: give the kubeconfig the certificate authority of the registry"
    if isinstance(error, errors.ConnectError):
        return ". What to do: start the registry, or correct the server in the kubeconfig"
    if isinstance(error, errors.UnauthorizedError):
        return ". What to do: renew the credential in the kubeconfig"
    if isinstance(error, errors.ForbiddenError):
        return ". What to do: give this user the role system:clusterregistry:controller"
    return ""
