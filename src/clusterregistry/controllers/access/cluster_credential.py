"""The credential of one cluster by one rule: resolved once for all who wait, kept in memory to 80% of its life."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from clusterregistry.apimachinery.meta import times
from clusterregistry.controllers.access.configuration import InClusterUse, Rule
from clusterregistry.controllers.access.expiry import earliest, expiry_of
from clusterregistry.controllers.access.resolver import PAUSE, Resolved, ResolveError, Resolver, ResolveRequest
from clusterregistry.controllers.access.subject import Subject
from clusterregistry.controllers.observer.credentials import AccessError, MemberCredential
from clusterregistry.controllers.observer.failure import bounded
from clusterregistry.controllers.observer.observation import CredentialInfo, Failure, Reason

_log = logging.getLogger(__name__)

KEPT_PART = 0.8
"""Of the life of a credential, after which it is resolved again while it is still good."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Unix time, for the ends of credentials, and a clock that never jumps, for pauses."""

    unix: Callable[[], float] = field(default=time.time)
    monotonic: Callable[[], float] = field(default=time.monotonic)


@dataclass(frozen=True, slots=True)
class _Held:
    """A credential, and when it is to be resolved again."""

    resolved: Resolved = field(repr=False)
    member: MemberCredential
    renew_at: float | None


class ClusterCredential:
    """One cluster, as it was when the rule was chosen. Another UID, spec or label makes another one of these."""

    def __init__(  # noqa: PLR0913 - half of them by keyword
        self,
        subject: Subject,
        rule: Rule,
        rules: tuple[Rule, ...],
        *,
        resolver: Resolver,
        request: ResolveRequest,
        clocks: Clocks,
    ) -> None:
        self.subject, self.rule, self.rules = subject, rule, rules
        self.used_at = clocks.monotonic()
        self._resolver, self._request, self._clocks = resolver, request, clocks
        self._held: _Held | None = None
        self._failure: Failure | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_rejected = False
        self._resolved_at = 0.0
        self._not_before = 0.0

    async def credential(self) -> MemberCredential:
        """The credential as it is now. Callers at the same time share one resolution. Raises AccessError.

        One that is good for a while yet is returned at once, and renewed in the background.
        """
        self.used_at = self._clocks.monotonic()
        if self._needs_another():
            self._start()
            # A caller that gives up does not end the resolution: the next one finds its result.
            if self._task is not None:
                await asyncio.wait([self._task])
        elif self._should_renew():
            self._start()
        return self._outcome()

    def reject(self, credential: MemberCredential) -> None:
        """The cluster refused this credential."""
        if self._held is not None and self._held.member.credential == credential.credential:
            self._is_rejected = True

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    def when_idle(self, step: Callable[[], None]) -> None:
        """Calls ``step`` when the resolution that runs has ended."""
        if self._task is not None:
            self._task.add_done_callback(lambda _: step())

    async def close(self) -> None:
        """Ends a resolution that runs, and forgets the credential."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._held = None

    def _needs_another(self) -> bool:
        held = self._held
        if held is None or self._has_ended(held):
            return True
        if held.resolved.is_current is not None and not held.resolved.is_current():
            return True
        return self._is_rejected and self._clocks.monotonic() - self._resolved_at >= PAUSE

    def _should_renew(self) -> bool:
        held = self._held
        return held is not None and held.renew_at is not None and self._clocks.unix() >= held.renew_at

    def _has_ended(self, held: _Held) -> bool:
        end = held.member.info.expires_at
        return end is not None and self._clocks.unix() >= end

    def _start(self) -> None:
        if self._task is None and self._clocks.monotonic() >= self._not_before:
            self._task = asyncio.create_task(self._resolve())
            self._task.add_done_callback(self._finished)

    def _finished(self, _: asyncio.Task[None]) -> None:
        self._task = None

    async def _resolve(self) -> None:
        """Never raises: the result, or the failure, is kept."""
        try:
            resolved = await self._resolver.resolve(self._request)
        except ResolveError as error:
            self._fail(str(error), pause=error.pause, gone=error.gone)
        except Exception as error:  # noqa: BLE001 - whatever it is: its text may hold a credential
            _log.error(
                "cluster %s: %s failed with an unexpected %s", self.subject.name, self.rule.source, type(error).__name__
            )
            self._fail(f"an unexpected {type(error).__name__}: this is a bug", pause=PAUSE, gone=False)
        else:
            self._hold(resolved)

    def _hold(self, resolved: Resolved) -> None:
        now = self._clocks.unix()
        end = earliest(resolved.ends_at, expiry_of(resolved.credential))
        renewals = [
            now + KEPT_PART * (end - now) if end is not None else None,
            now + resolved.keep_for if resolved.keep_for is not None else None,
        ]
        # A source that tells the end makes credentials as they are needed; files and Secrets wait for an operator.
        renews = resolved.ends_at is not None or isinstance(self.rule.use, InClusterUse)
        info = CredentialInfo(source=self.rule.source, expires_at=end, renews=renews)
        member = MemberCredential(credential=resolved.credential, info=info)
        self._held = _Held(resolved, member, earliest(*renewals))
        self._resolved_at, self._is_rejected, self._failure = self._clocks.monotonic(), False, None
        if self._has_ended(self._held):
            self._not_before = self._clocks.monotonic() + (0.0 if resolved.is_current else PAUSE)
        _log.debug("cluster %s: credential by %s, ends %s", self.subject.name, self.rule.source, _shown(end))

    def _fail(self, why: str, *, pause: float, gone: bool) -> None:
        message = bounded(f"{self.rule.source}: {why}")
        self._failure = Failure(reason=Reason.CREDENTIAL_MISSING, message=message)
        self._not_before = self._clocks.monotonic() + pause
        if gone:
            self._held = None
        _log.debug("cluster %s: no credential: %s", self.subject.name, message)

    def _outcome(self) -> MemberCredential:
        held = self._held
        if held is None:
            failure = self._failure or Failure(
                reason=Reason.CREDENTIAL_MISSING, message=f"{self.rule.source}: the resolution was ended"
            )
            raise AccessError(failure)
        if self._has_ended(held):
            why = f": {self._failure.message}" if self._failure else ": renew it at its source"
            message = bounded(f"{self.rule.source}: the credential ended at {_shown(held.member.info.expires_at)}{why}")
            raise AccessError(Failure(reason=Reason.CREDENTIAL_EXPIRED, message=message))
        return held.member


def _shown(end: float | None) -> str:
    return times.render(datetime.fromtimestamp(end, UTC)) if end is not None else "at a time that is not known"
