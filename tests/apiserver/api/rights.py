"""Rights of users in a server in process, changed by events with revisions, as the store sends them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from clusterregistry.apiserver.authz.rbac.bindings import Binding
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.authz.rbac.rules import rules_from_wire
from clusterregistry.apiserver.storage.errors import KeyExists
from clusterregistry.apiserver.storage.interface import Event
from tests.apiserver.api.in_process import InProcess
from tests.apiserver.api.rbac_objects import rule

_PREFIX = "/registry/tests/rights/"


class Rights:
    """One role and one binding for each user."""

    def __init__(self, server: InProcess) -> None:
        self._server = server
        server.run(self._follow())

    async def _follow(self) -> None:
        self._server.storage.subscribe(_PREFIX, self._apply)
        self._policy.follow(self._server.storage.wait_for)

    def sees(self, user: str, *names: str) -> int:
        """The user may get the objects with these names, and nothing else from now on."""
        return self.has(user, *([rule("get", names=names)] if names else []))

    def has(self, user: str, *rules: dict[str, Any]) -> int:
        """The user has these rules from now on. Returns the revision of that."""
        return self._server.run(self._write(_PREFIX + user, json.dumps(rules).encode()))

    async def _write(self, key: str, value: bytes) -> int:
        storage = self._server.storage
        try:
            return await storage.create(key, value)
        except KeyExists:
            known = await storage.get(key)
            assert known is not None
            return await storage.update(key, value, expected=known.revision)

    def _apply(self, events: Sequence[Event]) -> None:
        for event in events:
            assert event.current is not None
            user = event.key.removeprefix(_PREFIX)
            self._policy.set_role(user, rules_from_wire(json.loads(event.current.value)), revision=event.revision)
            role, subject = {"kind": "ClusterRole", "name": user}, {"kind": "User", "name": user}
            binding = Binding.from_wire({"roleRef": role, "subjects": [subject]})
            self._policy.set_binding(user, binding, revision=event.revision)

    @property
    def _policy(self) -> Policy:
        return self._server.server.policy
