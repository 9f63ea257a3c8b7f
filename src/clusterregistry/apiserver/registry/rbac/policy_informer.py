"""Keeps a policy in step with the stored roles and bindings, so that no decision has to read them.

A role or binding that the policy cannot take grants nothing; the others count, and the server starts. A default object
that can no longer be read counts as the server would create it, as it does after a start: else no client could use the
health checks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clusterregistry.apiserver.authz.rbac.policy import Binding, Policy
from clusterregistry.apiserver.authz.rbac.rules import rules_from_wire
from clusterregistry.apiserver.registry.rbac.bootstrap import Defaults
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.interface import Event, Interrupted, KeyValue, Subscription
from clusterregistry.apiserver.storage.object_bytes import decoded, name_of

Object = dict[str, Any]

_log = logging.getLogger(__name__)


async def run_policy_informer(
    policy: Policy, *, roles: Store, bindings: Store, defaults: Defaults
) -> Callable[[], None]:
    """Fills the policy and updates it from then on; returns a function that ends that. Raises StorageError."""

    def set_role(name: str, role: Object, revision: int) -> None:
        policy.set_role(name, rules_from_wire(role["rules"]), revision=revision)

    def set_binding(name: str, binding: Object, revision: int) -> None:
        policy.set_binding(name, Binding.from_wire(binding), revision=revision)

    def remove_role(name: str, revision: int) -> None:
        policy.remove_role(name, revision=revision)

    def remove_binding(name: str, revision: int) -> None:
        policy.remove_binding(name, revision=revision)

    def newest() -> int:
        return max(roles.storage.revision, bindings.storage.revision)

    def begin_anew() -> None:
        # Called for either kind; the last call sets the revision that counts.
        policy.begin_anew(newest())

    subscriptions = [
        await _Informer(store=roles, set=set_role, remove=remove_role, defaults=defaults.roles).start(begin_anew),
        await _Informer(store=bindings, set=set_binding, remove=remove_binding, defaults=defaults.bindings).start(
            begin_anew
        ),
    ]

    async def wait_for(revision: int) -> None:
        await roles.storage.wait_for(revision)
        await bindings.storage.wait_for(revision)

    policy.follow(wait_for)
    policy.begin_at(newest())

    def end() -> None:
        for subscription in subscriptions:
            subscription.close()

    return end


@dataclass(frozen=True, slots=True, kw_only=True)
class _Informer:
    """Sets and removes the objects of one kind in the policy."""

    store: Store
    set: Callable[[str, Object, int], None]
    remove: Callable[[str, int], None]
    defaults: Callable[[], Sequence[Object]]

    async def start(self, interrupted: Interrupted) -> Subscription:
        # Subscribed first: an object that changes while the list is read comes twice rather than not at all.
        subscription = self.store.storage.subscribe(self.store.prefix, self._receive, interrupted=interrupted)
        for kv in (await self.store.storage.list(self.store.prefix)).items:
            self._set(kv)
        return subscription

    def _receive(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.current:
                self._set(event.current)
            else:
                self._remove(event.key.removeprefix(self.store.prefix), event.revision)

    def _set(self, kv: KeyValue) -> None:
        try:
            self.set(name_of(kv), decoded(kv), kv.revision)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one object, the others count
            _log.error("the object under %r grants nothing, since it cannot be decoded: %r", kv.key, error)
            self.remove(name_of(kv), kv.revision)

    def _remove(self, name: str, revision: int) -> None:
        is_corrupt = self.store.prefix + name in self.store.corrupt
        defaults = self.defaults() if is_corrupt else ()
        default = next((each for each in defaults if each["metadata"]["name"] == name), None)
        if default:
            self.set(name, default, revision)
        else:
            self.remove(name, revision)
