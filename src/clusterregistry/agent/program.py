"""The agent: the observer over its own member, the writer of its status, and the renewal of its certificate.

It connects to the registry and to the member, and listens nowhere unless it is told to serve its health. While one of
them is away it tries again; what was observed meanwhile is written when the registry is back.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from clusterregistry.agent.identity import KubeconfigIdentity
from clusterregistry.agent.member import OwnMember
from clusterregistry.agent.renewal import Place, Renewal, Renewed
from clusterregistry.api.clusterregistry import GROUP
from clusterregistry.client.informer import Handler, Informer, InformerOptions
from clusterregistry.client.rest import Client, ListOptions
from clusterregistry.client.rest_config import RestConfig
from clusterregistry.client.transport import TransportParts
from clusterregistry.controllers.cluster_client import ClusterClient
from clusterregistry.controllers.event_recorder import EventRecorder
from clusterregistry.controllers.health_server import Answer, Paths
from clusterregistry.controllers.observer.observation import Observation
from clusterregistry.controllers.observer.observer import Observer
from clusterregistry.controllers.observer.settings import ObserverSettings
from clusterregistry.controllers.status import StatusSettings
from clusterregistry.controllers.status_writer import StatusWriter, WriterSettings
from clusterregistry.controllers.transitions import Told, told, transitions

USER_AGENT = "clusterregistry-agent"
REPORTER = f"{GROUP}/agent"
"""The reporting controller of events."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """What an agent does, and for which cluster."""

    cluster: str
    interval: float = 30.0
    """Seconds between two observations, and between two heartbeats."""
    certificate_seconds: int


class Agent:
    """Observes one cluster until it is cancelled. Used on one loop."""

    def __init__(
        self,
        settings: AgentSettings,
        *,
        registry: RestConfig,
        identity: KubeconfigIdentity,
        member: OwnMember,
        place: Place,
    ) -> None:
        """``registry`` is the access to the registry; its certificate is that of ``identity`` as it is now."""
        self._settings, self._server = settings, registry.server
        interval = settings.interval
        self._client = Client(registry, parts=TransportParts(credentials=identity))
        clusters = ClusterClient(self._client)
        self._informer = Informer(
            clusters.resource,
            InformerOptions(
                selection=ListOptions(field_selector=f"metadata.name={settings.cluster}"),
                transform=clusters.interpret,
                max_objects=1,
            ),
        )
        self._observer = Observer(
            member,
            settings=ObserverSettings(
                interval=interval,
                node_interval=2 * interval,
                deadline=min(5.0, interval),
                user_agent=USER_AGENT,
            ),
            report=self._report,
            endpoint=member.endpoint,
        )
        self._writer = StatusWriter(
            clusters,
            find=self._informer.store.get,
            status=StatusSettings(interval=interval, node_interval=2 * interval),
            settings=WriterSettings(heartbeat=interval),
            written=self._tell,
        )
        self._recorder = EventRecorder(self._client, controller=REPORTER, instance=socket.gethostname() or REPORTER)
        self._told: Told | None = None
        """The status of which the newest event told."""
        renewed = Renewed(
            cluster=settings.cluster,
            config=registry,
            identity=identity,
            place=place,
            seconds=settings.certificate_seconds,
        )
        self._renewal = Renewal(self._client, renewed)
        self._informer.add_handler(
            Handler(on_add=self._put, on_update=lambda _, after: self._put(after), on_delete=self._remove)
        )

    async def run(self) -> None:
        """Works until it is cancelled."""
        _log.info("the agent of cluster %s reports to %s", self._settings.cluster, self._server)
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in (self._informer, self._observer, self._writer, self._recorder, self._renewal):
                    tasks.create_task(work.run())
                await self._informer.wait_synced()
                if self._informer.store.get(self._settings.cluster) is None:
                    self._warn("there is no cluster %s in the registry")
        finally:
            await self._observer.close()
            await self._client.close()

    def paths(self) -> Paths:
        """What the health server answers, where there is one."""
        alive = Answer(b"ok")
        return {"/livez": lambda: alive, "/healthz": lambda: alive, "/readyz": self._readiness}

    def _readiness(self) -> Answer:
        """Ready is an agent that knows its cluster, and whose writes are taken."""
        problem = self._writer.problem or str(self._informer.last_error or "")
        if not self._informer.has_synced or problem:
            why = problem or "the registry was not reached yet"
            return Answer(f"not ready: {why}\n".encode("utf-8", "replace"), HTTPStatus.SERVICE_UNAVAILABLE)
        if self._informer.store.get(self._settings.cluster) is None:
            why = f"there is no cluster {self._settings.cluster} in the registry"
            return Answer(f"not ready: {why}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)
        return Answer(b"ok")

    def _put(self, cluster: Mapping[str, Any]) -> None:
        if self._observer.last(self._settings.cluster) is None:
            _log.info("cluster %s: observing", self._settings.cluster)
        self._observer.put(cluster)

    def _remove(self, _: Mapping[str, Any]) -> None:
        name = self._settings.cluster
        self._warn("cluster %s was deleted in the registry")
        self._observer.remove(name)
        self._writer.forget(name)
        self._told = None

    def _warn(self, what: str) -> None:
        name = self._settings.cluster
        _log.warning("%s: nothing is reported. What to do: stop this agent, or join again", what % name)

    def _report(self, name: str, observation: Observation) -> None:
        self._writer.note(name, observation)

    def _tell(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Events of what has changed since the last ones, also by a write whose answer was lost."""
        status = after.get("status") or {}
        for happening in transitions(self._told or told(before.get("status") or {}), status):
            self._recorder.record(after, happening)
        self._told = told(status)
