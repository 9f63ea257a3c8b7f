"""Calls to an etcd of several members: on one of them, and on the next when that one fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.etcd import errors
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError
from clusterregistry.apiserver.storage.etcd.lineage import Lineage
from clusterregistry.apiserver.storage.etcd.member import Member, tls_context
from clusterregistry.apiserver.storage.etcd.session import Session
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings

T = TypeVar("T")

ATTEMPT_SECONDS = 2.0
"""How long one member may take to answer before another one is asked."""

PATIENCE_SECONDS = 5.0
"""How long to begin anew with other members: longer than etcd takes to choose a new leader."""

_PAUSE_SECONDS = 0.1

_TELLING = ("range", "txn")
"""Calls whose answers tell the revision of the whole etcd, and not only that of a member."""

_log = logging.getLogger(__name__)


class Endpoints:
    """The members of an etcd, one of which is in use."""

    def __init__(self, settings: EtcdSettings, lineage: Lineage | None = None) -> None:
        """Connects to nobody yet. Raises StorageUnavailable for a file that is of no use."""
        self.lineage = lineage or Lineage()
        tls = tls_context(settings)
        self.session = Session(settings)
        self._shown = settings.shown
        self._members = [Member(endpoint, tls) for endpoint in settings.endpoints]
        self._at = 0
        self._steady: Member | None = None
        """The one in use, if it has answered since anything went wrong."""
        self._state = _State(settings.shown)
        self._under_way = 0
        self._idle = asyncio.Event()
        self._closed = False

    @property
    def member(self) -> Member:
        """The one in use."""
        return self._members[self._at]

    def call(
        self, name: str, request: Any, *, again: bool = True, seconds: float = ATTEMPT_SECONDS
    ) -> Coroutine[Any, Any, Any]:
        """The answer to a request, as ``persist`` gets it. One member may take ``seconds`` for it."""

        async def attempt(member: Member) -> Any:
            metadata = await self.session.metadata(member)
            known = self.lineage.revision
            answer = await member.call(name, request, metadata=metadata, seconds=seconds)
            if name in _TELLING:
                self.lineage.check(answer.header, known=known)
            return answer

        return self.persist(attempt, again=again)

    async def persist(self, attempt: Callable[[Member], Awaitable[T]], *, again: bool = True) -> T:
        """Does something with a member, and with another one when that fails with RpcError.

        Without ``again`` it is repeated only if it cannot have had an effect. Raises what ``failures.translated`` makes
        of the last error.
        """
        self._under_way += 1
        deadline, may_sign_in = asyncio.get_running_loop().time() + PATIENCE_SECONDS, True
        try:
            while not self._closed:
                member, token = self.member, self.session.token
                try:
                    done = await attempt(member)
                except RpcError as error:
                    if may_sign_in and errors.needs_new_token(error) and self.session.forget(token):
                        may_sign_in = False
                        continue
                    self.leave(member, error)
                    if asyncio.get_running_loop().time() > deadline or not _is_repeatable(error, again=again):
                        unsure = not again and errors.leaves_unsure(error)
                        raise errors.translated(error, self._shown, unsure=unsure) from error
                else:
                    self.stay(member)
                    return done
                await asyncio.sleep(_PAUSE_SECONDS)
            raise StorageUnavailable(self.closed_message)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    def leave(self, member: Member, error: RpcError) -> None:
        """Uses another member from now on, if this one is in use and the error may be its own."""
        if member is self.member and errors.is_passing(error):
            self._steady = None
            self._at = (self._at + 1) % len(self._members)
            self._state.failed(error, members=len(self._members))

    def stay(self, member: Member) -> None:
        """Takes note that a member has answered, of which there is nothing to tell as long as it goes on doing so."""
        if member is not self._steady and member is self.member:
            self._steady = member
            self._state.answered(member)

    @property
    def closed_message(self) -> str:
        return f"{self._shown}: the store is closed"

    async def close(self) -> None:
        """Lets what is under way come to an end, and begins nothing more. To be called once."""
        self._closed = True
        if self._under_way:
            self._idle.clear()
            await self._idle.wait()
        await asyncio.gather(*(member.close() for member in self._members))


def _is_repeatable(error: RpcError, *, again: bool) -> bool:
    return errors.is_passing(error) if again else errors.was_not_started(error)


class _State:
    """Tells the log how it stands with etcd: once for each change, for members are tried many times a second."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._last = ""
        self._failures = 0
        self._is_gone = False

    def failed(self, error: RpcError, *, members: int) -> None:
        """The member in use did not answer. When none of them does, that is worth a warning."""
        self._failures += 1
        if self._failures < members or self._is_gone:
            return
        self._is_gone = True
        explained = errors.translated(error, self._shown, unsure=False)
        remedy = getattr(explained, "remedy", "") or "see that etcd runs"
        _log.warning("%s. What to do: %s; it is tried again all the time", explained, remedy)

    def answered(self, member: Member) -> None:
        self._failures = 0
        if self._is_gone:
            _log.info("%s answers again, at %s", self._shown, member.endpoint)
        elif self._last not in {"", member.endpoint}:
            _log.info("%s: %s does not answer; going on with %s", self._shown, self._last, member.endpoint)
        self._is_gone, self._last = False, member.endpoint
