"""Puts the parts together: from what the operator wants to an audit log that runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from clusterregistry.apimachinery.startup import StartupProblem
from clusterregistry.apiserver.audit.counts import Counts
from clusterregistry.apiserver.audit.event import Renderer
from clusterregistry.apiserver.audit.event_queue import Log, Queue
from clusterregistry.apiserver.audit.log_file import LogFile, StandardOutput
from clusterregistry.apiserver.audit.policy import Policy
from clusterregistry.apiserver.audit.redaction import LooksSecret, Masker
from clusterregistry.apiserver.audit.settings import AuditSettings
from clusterregistry.apiserver.audit.trail import Audit, Event


class AuditLogError(StartupProblem):
    """The log cannot be written, which a server should say at its start rather than later."""

    def __init__(self, message: str) -> None:
        remedy = f"let the user that runs the server (uid {os.getuid()}) write there, or give another --audit-log-path"
        super().__init__(message, remedy=remedy)


@contextlib.asynccontextmanager
async def opened(settings: AuditSettings, counts: Counts, *, looks_secret: LooksSecret) -> AsyncIterator[Audit]:
    """A running audit log; at the end what waits is written. Raises PolicyError and AuditLogError."""
    policy, log = _policy(settings), _log(settings)
    queue: Queue[Event] = Queue(log, Renderer(Masker(looks_secret)).line, counts)
    queue.start()
    try:
        yield Audit(policy, queue, counts)
    finally:
        await asyncio.to_thread(queue.close)


def _policy(settings: AuditSettings) -> Policy:
    if settings.policy_file is not None:
        from clusterregistry.apiserver.audit.policy_file import load  # noqa: PLC0415 - it loads YAML

        return load(settings.policy_file)
    from clusterregistry.apiserver.audit.default_policy import DEFAULT_POLICY  # noqa: PLC0415 - not with a file

    return DEFAULT_POLICY


def _log(settings: AuditSettings) -> Log:
    if settings.path is None:
        return StandardOutput()
    file = LogFile(settings.path, settings.rotation)
    try:
        file.check()
    except OSError as error:
        raise AuditLogError(f"{settings.path} cannot be written: {error.strerror or error}") from None
    return file
