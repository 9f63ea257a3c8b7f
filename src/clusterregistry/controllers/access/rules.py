"""The rules of ``access.yaml`` at work: which rule matches a cluster, and the credential that it has now."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusterregistry.client.rest_config import SERVICE_ACCOUNT, RestConfig, in_cluster
from clusterregistry.controllers.access import configuration
from clusterregistry.controllers.access.cluster_credential import Clocks, ClusterCredential
from clusterregistry.controllers.access.configuration import (
    AccessFileError,
    CommandUse,
    EnvUse,
    FileUse,
    InClusterUse,
    Rule,
    SecretUse,
    TokenRequestUse,
)
from clusterregistry.controllers.access.exec_runner import ExecLimits, ExecRunner
from clusterregistry.controllers.access.host_resolvers import HostCluster, SecretResolver, TokenRequestResolver
from clusterregistry.controllers.access.local_resolvers import (
    EnvResolver,
    ExecResolver,
    FileResolver,
    InClusterResolver,
    NoneResolver,
)
from clusterregistry.controllers.access.placeholders import PlaceholderValues
from clusterregistry.controllers.access.resolver import Resolver, ResolveRequest
from clusterregistry.controllers.access.subject import Subject, subject_of
from clusterregistry.controllers.observer.credentials import AccessError, MemberCredential
from clusterregistry.controllers.observer.observation import Failure, Reason

_log = logging.getLogger(__name__)

UNUSED_SECONDS = 1800.0
"""After which the credential of a cluster that was not asked for is forgotten."""

_SWEEP_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessParts:
    """What the resolvers work with, apart from the file."""

    host: RestConfig | None = None
    """The host cluster of ``secret`` and ``tokenRequest``; None: the one in which this process runs as a pod."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    service_account: Path = SERVICE_ACCOUNT
    exec_limits: ExecLimits = field(default_factory=ExecLimits)
    clocks: Clocks = field(default_factory=Clocks)
    user_agent: str = "clusterregistry-access"


def open_access(path: Path, *, host: RestConfig | None = None, parts: AccessParts | None = None) -> AccessRules:
    """The rules of a file. Raises AccessFileError, which names every mistake in it.

    ``host`` is the host cluster of ``secret`` and ``tokenRequest``, if it is not the one in which this process runs.
    """
    return AccessRules(path, parts or AccessParts(host=host))


class AccessRules:
    """Credentials for clusters by the rules of a file; implements ``MemberAccess``. Used on one loop.

    The file is read again when it changes. A new file with mistakes is reported in the log and in ``problem``, and the
    former rules stay. Credentials are kept in memory alone, each bound to one cluster: its name, UID, labels and spec.
    """

    def __init__(self, path: Path, parts: AccessParts) -> None:
        """Raises AccessFileError."""
        self.path = path
        self.problem: AccessFileError | None = None
        """Why the file as it is now is not used; None: it is."""
        self._parts = parts
        self._host = HostCluster(self._host_config)
        self._kept: dict[str, ClusterCredential] = {}
        self._retired: set[ClusterCredential] = set()
        self._next_sweep = 0.0
        self._version = _version(path)
        self._use(configuration.load(path))

    async def credential(self, cluster: Mapping[str, Any]) -> MemberCredential:
        """The credential for a cluster as it is now. Raises AccessError."""
        self._reload()
        self._sweep()
        return await self._kept_for(subject_of(cluster)).credential()

    def reject(self, cluster: Mapping[str, Any], credential: MemberCredential) -> None:
        """Notes that the cluster refused the credential: it is resolved again, though not at once."""
        subject = subject_of(cluster)
        kept = self._kept.get(subject.name)
        if kept is not None and kept.subject == subject:
            kept.reject(credential)

    def rule_for(self, cluster: Mapping[str, Any]) -> Rule | None:
        """The first rule that matches a cluster."""
        return self._rule_for(subject_of(cluster))

    def forget(self, name: str) -> None:
        """Forgets the credential of a cluster that is gone."""
        kept = self._kept.pop(name, None)
        if kept is not None:
            self._retire(kept)

    async def close(self) -> None:
        """Ends all resolutions, their commands included, and forgets all credentials."""
        every = [*self._kept.values(), *self._retired]
        self._kept.clear()
        await asyncio.gather(*(kept.close() for kept in every))
        await self._host.close()

    # Kept credentials

    def _kept_for(self, subject: Subject) -> ClusterCredential:
        """Raises AccessError if no rule matches."""
        kept = self._kept.get(subject.name)
        if kept is not None and kept.subject == subject and kept.rules is self._rules:
            return kept
        rule = self._rule_for(subject)
        if rule is None:
            self.forget(subject.name)
            message = "no rule of access.yaml matches the cluster"
            raise AccessError(Failure(reason=Reason.CREDENTIAL_MISSING, message=message))
        if kept is not None and kept.subject == subject and kept.rule == rule:
            kept.rules = self._rules  # the file changed, not this rule
            return kept
        self.forget(subject.name)
        made = ClusterCredential(
            subject, rule, self._rules, resolver=self._resolvers[rule.number], request=_request(subject, rule),
            clocks=self._parts.clocks,
        )  # fmt: skip
        self._kept[subject.name] = made
        return made

    def _rule_for(self, subject: Subject) -> Rule | None:
        return next((rule for rule in self._rules if rule.matches(subject)), None)

    def _retire(self, kept: ClusterCredential) -> None:
        """Its resolution may still run for callers that wait: it is kept until it ends, so that ``close`` finds it."""
        if kept.is_busy:
            self._retired.add(kept)
            kept.when_idle(lambda: self._retired.discard(kept))

    def _sweep(self) -> None:
        now = self._parts.clocks.monotonic()
        if now < self._next_sweep:
            return
        self._next_sweep = now + _SWEEP_SECONDS
        for name in [each for each, kept in self._kept.items() if now - kept.used_at > UNUSED_SECONDS]:
            self.forget(name)

    # The file

    def _reload(self) -> None:
        version = _version(self.path)
        if version == self._version:
            return
        self._version = version
        try:
            rules = configuration.load(self.path)
        except AccessFileError as error:
            self.problem = error
            _log.error("the former rules stay in use: %s\nWhat to do: %s", error, error.remedy)
            return
        self.problem = None
        self._use(rules)
        _log.info("%s has changed: %s in use", self.path, "1 rule is" if len(rules) == 1 else f"{len(rules)} rules are")

    def _use(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        hidden = {rule.use.variable for rule in rules if isinstance(rule.use, EnvUse)}
        environ = {name: value for name, value in self._parts.environ.items() if name not in hidden}
        runner = ExecRunner(environ=environ, limits=self._parts.exec_limits)
        self._resolvers = {rule.number: self._resolver(rule, runner) for rule in rules}

    def _resolver(self, rule: Rule, runner: ExecRunner) -> Resolver:
        use = rule.use
        if isinstance(use, FileUse):
            return FileResolver(use, runner)
        if isinstance(use, EnvUse):
            return EnvResolver(use, self._parts.environ)
        if isinstance(use, CommandUse):
            return ExecResolver(use, runner)
        if isinstance(use, SecretUse):
            return SecretResolver(use, self._host)
        if isinstance(use, TokenRequestUse):
            return TokenRequestResolver(use, self._host)
        return InClusterResolver(self._parts.service_account) if isinstance(use, InClusterUse) else NoneResolver()

    def _host_config(self) -> RestConfig | None:
        if self._parts.host is not None:
            return self._parts.host
        return in_cluster(self._parts.environ, user_agent=self._parts.user_agent, files=self._parts.service_account)


def _request(subject: Subject, rule: Rule) -> ResolveRequest:
    values = PlaceholderValues(name=subject.name, cluster_id=subject.cluster_id, config=rule.config_of(subject))
    return ResolveRequest(values=values, file_key=rule.key_of(subject), spec=subject.spec)


def _version(path: Path) -> tuple[int, ...]:
    """Differs once the file is written or replaced; empty: it is gone."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
