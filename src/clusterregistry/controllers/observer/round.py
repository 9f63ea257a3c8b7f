"""One round of probes over one cluster: endpoint, credential, connection, then each probe that is due."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clusterregistry.client.errors import ConfigError
from clusterregistry.controllers.observer.credentials import AccessError, MemberAccess, MemberCredential
from clusterregistry.controllers.observer.endpoint import Endpoint, EndpointError, choose_endpoint
from clusterregistry.controllers.observer.failure import CutError, ProbeError, RoundError, probe_error
from clusterregistry.controllers.observer.member import Member, RoundClient, SharedParts
from clusterregistry.controllers.observer.observation import Failure, Observation, Reason, Section
from clusterregistry.controllers.observer.probe import Probe
from clusterregistry.controllers.observer.settings import ObserverSettings

_FIELDS = frozenset(each.name for each in dataclasses.fields(Observation))
_NEVER: Section[Any] = Section()
_USELESS = frozenset({Reason.BAD_RESPONSE, Reason.TIMED_OUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundParts:
    """What the rounds of all clusters have in common."""

    access: MemberAccess
    settings: ObserverSettings
    probes: Sequence[Probe[Any]]
    clock: Callable[[], float]
    """Unix time."""
    endpoint: Callable[[Mapping[str, Any]], Endpoint] | None = None
    """The endpoint of a cluster, for an observer that reaches clusters in another way than their specs say.

    Raises EndpointError."""
    shared: SharedParts = field(default_factory=SharedParts)


class Subject:
    """A cluster that is observed: its member client, and what is known about it. One round at a time."""

    __slots__ = ("cluster", "connection", "last", "member", "parts", "probed_at", "tried_at")

    def __init__(self, cluster: Mapping[str, Any], parts: RoundParts) -> None:
        self.cluster, self.parts = cluster, parts
        self.member: Member | None = None
        self.last = Observation(at=0.0)
        self.probed_at: dict[str, float] = {}
        """When each probe was read, by the loop's clock; after a failure, earlier than that."""
        self.tried_at: dict[str, float] = {}
        self.connection = 0
        """The number of the connection that was read by the probes that look at each."""

    async def member_at(self, endpoint: Endpoint) -> Member:
        """The member client for an endpoint: another endpoint has a client and connections of its own."""
        if self.member is None or self.member.endpoint != endpoint:
            await self.disconnect()
            self.connection = 0
            self.member = Member(endpoint, settings=self.parts.settings, shared=self.parts.shared)
        return self.member

    async def disconnect(self) -> None:
        """Ends the connection, if there is one."""
        if self.member is not None:
            await self.member.disconnect()


class Round:
    """Asks a cluster once, and builds the observation."""

    def __init__(self, subject: Subject, *, everything: bool = False) -> None:
        """``everything``: all probes are read, whatever their intervals."""
        self._subject, self._parts, self._everything = subject, subject.parts, everything
        self._observation = replace(subject.last, failure=None)
        self._is_broken = False
        self.retry_after = 0.0
        """Seconds that the cluster asked to be left alone."""

    @property
    def is_useless(self) -> bool:
        """Whether the cluster should be asked less often: it did not answer, or with nonsense."""
        health = self._observation.health.failure
        return self._observation.failure is not None or (health is not None and health.reason in _USELESS)

    async def run(self) -> Observation:
        """The observation after the round. The subject has it too; a round that is cancelled leaves the former one."""
        try:
            await self._ask()
        except ProbeError as error:
            self._is_broken = True
            self._set(failure=error.failure)
        except asyncio.CancelledError:
            await self._subject.disconnect()
            raise
        if self._is_broken:
            await self._subject.disconnect()
        now = self._parts.clock()
        self._subject.last = self._set(at=now, asked_at=now)
        return self._subject.last

    async def _ask(self) -> None:
        """Raises ProbeError if nothing was learned."""
        endpoint = self._endpoint()
        self._set(endpoint=endpoint.url)
        credential = await self._credential()
        try:
            member = await self._subject.member_at(endpoint)
        except ConfigError as error:
            raise probe_error(error, credential=credential.credential) from None
        deadline = asyncio.get_running_loop().time() + self._parts.settings.deadline
        try:
            await self._probe(member, credential, deadline=deadline)
        except RoundError as error:
            another = await self._other_credential(credential) if _is_refused(error) else None
            if another is None:
                raise
            await self._probe(member, another, deadline=deadline)

    def _endpoint(self) -> Endpoint:
        try:
            if self._parts.endpoint is not None:
                return self._parts.endpoint(self._subject.cluster)
            return choose_endpoint(self._subject.cluster, addresses=self._parts.settings.addresses)
        except EndpointError as error:
            raise RoundError(error.failure) from None

    async def _credential(self) -> MemberCredential:
        limit = self._parts.settings.credential_deadline
        try:
            async with asyncio.timeout(limit):
                return await self._parts.access.credential(self._subject.cluster)
        except AccessError as error:
            self._set(credential=None)
            raise RoundError(error.failure) from None
        except TimeoutError:
            message = f"there is no credential within {limit:g} s"
            raise RoundError(Failure(reason=Reason.CREDENTIAL_MISSING, message=message)) from None

    async def _other_credential(self, refused: MemberCredential) -> MemberCredential | None:
        """Another credential than the one that the cluster refused, if there is one by now."""
        self._parts.access.reject(self._subject.cluster, refused)
        another = await self._credential()
        return another if another.credential != refused.credential else None

    async def _probe(self, member: Member, credential: MemberCredential, *, deadline: float) -> None:
        self._set(credential=credential.info)
        await member.use(credential.credential)
        client = RoundClient(member, credential.credential, deadline=deadline)
        try:
            await self._probe_all(member, client)
        finally:
            if member.serving is not None:
                self._set(serving=member.serving)

    async def _probe_all(self, member: Member, client: RoundClient) -> None:
        unanswered: Failure | None = None
        has_answered = False
        for number, probe in enumerate(self._in_order()):
            if number and not self._is_due(probe, member):
                continue
            try:
                self._succeed(probe, await probe.read(client))
                has_answered = True
            except RoundError as error:
                if not has_answered or _is_refused(error):
                    raise
                self._fail(probe, error)
                return
            except ProbeError as error:
                self._fail(probe, error)
                has_answered = has_answered or not isinstance(error, CutError)
                unanswered = unanswered or error.failure
        self._subject.connection = member.connections
        if unanswered is not None and not has_answered:
            raise RoundError(unanswered)

    def _in_order(self) -> list[Probe[Any]]:
        """The first one opens the connection. Of the others those come first that wait longest, for slow clusters."""
        first, *others = self._parts.probes
        return [first, *sorted(others, key=lambda probe: self._subject.tried_at.get(probe.name, 0.0))]

    def _is_due(self, probe: Probe[Any], member: Member) -> bool:
        if self._everything or not probe.interval:
            return True
        if probe.on_connect and member.connections != self._subject.connection:
            return True
        read = self._subject.probed_at.get(probe.name)
        # Rounds start at times of their own: the nearest one counts.
        return read is None or _now() - read >= probe.interval - self._parts.settings.interval / 2

    def _succeed(self, probe: Probe[Any], value: Any) -> None:
        self._subject.tried_at[probe.name] = self._subject.probed_at[probe.name] = _now()
        self._put(probe, Section(value=value, at=self._parts.clock()))

    def _fail(self, probe: Probe[Any], error: ProbeError) -> None:
        """Keeps the last value with its time. What is read seldom is read again sooner."""
        before = self._section(probe)
        self._subject.tried_at[probe.name] = _now()
        self._subject.probed_at[probe.name] = _now() - max(probe.interval - self._parts.settings.node_interval, 0.0)
        self._put(probe, replace(before, failure=error.failure))
        self.retry_after = max(self.retry_after, error.retry_after)
        self._is_broken = self._is_broken or error.failure.reason in _USELESS

    def _section(self, probe: Probe[Any]) -> Section[Any]:
        if probe.name in _FIELDS:
            section: Section[Any] = getattr(self._observation, probe.name)
            return section
        return self._observation.more.get(probe.name, _NEVER)

    def _put(self, probe: Probe[Any], section: Section[Any]) -> None:
        if probe.name in _FIELDS:
            self._set(**{probe.name: section})
        else:
            self._set(more={**self._observation.more, probe.name: section})

    def _set(self, **changes: Any) -> Observation:
        self._observation = replace(self._observation, **changes)
        return self._observation


def _is_refused(error: ProbeError) -> bool:
    return error.failure.reason is Reason.UNAUTHORIZED


def _now() -> float:
    return asyncio.get_running_loop().time()
