"""Keeps a policy in step with the stored roles and bindings, so that no decision has to read them.

A role or binding that the policy cannot take grants nothing; the others count, and the server starts. A default object
that can no longer be read counts as the server would create it, as it does after a start: else no client could use the
health checks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterregistry.apiserver.authz.rbac.bindings import Binding, namespace_of
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.authz.rbac.rules import rules_from_wire
from clusterregistry.apiserver.registry.rbac import escalation
from clusterregistry.apiserver.registry.rbac.bootstrap import Defaults
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.interface import Event, Interrupted, KeyValue, Subscription
from clusterregistry.apiserver.storage.object_bytes import decoded

Object = dict[str, Any]

_log = logging.getLogger(__name__)


async def run_policy_informer(policy: Policy, stores: Mapping[str, Store], *, defaults: Defaults) -> Callable[[], None]:
    """Fills the policy and updates it from then on; returns a function that ends that. Raises StorageError.

    ``stores`` are those of roles and bindings by their plurals: ``escalation.RESOURCES``.
    """

    def newest() -> int:
        return max(store.storage.revision for store in stores.values())

    def begin_anew() -> None:
        # Called for each kind; the last call sets the revision that counts.
        policy.begin_anew(newest())

    subscriptions = [await informer.start(begin_anew) for informer in _informers(policy, stores, defaults)]

    async def wait_for(revision: int) -> None:
        for store in stores.values():
            await store.storage.wait_for(revision)

    policy.follow(wait_for)
    policy.begin_at(newest())

    def end() -> None:
        for subscription in subscriptions:
            subscription.close()

    return end


def _informers(policy: Policy, stores: Mapping[str, Store], defaults: Defaults) -> Sequence[_Informer]:
    def set_role(key: str, role: Object, revision: int) -> None:
        policy.set_role(key, rules_from_wire(role["rules"]), revision=revision)

    def set_binding(key: str, binding: Object, revision: int) -> None:
        policy.set_binding(key, Binding.from_wire(binding, namespace_of(key)), revision=revision)

    def remove_role(key: str, revision: int) -> None:
        policy.remove_role(key, revision=revision)

    def remove_binding(key: str, revision: int) -> None:
        policy.remove_binding(key, revision=revision)

    cluster_roles, cluster_role_bindings = stores[escalation.CLUSTER_ROLES], stores[escalation.CLUSTER_ROLE_BINDINGS]
    return (
        _Informer(store=cluster_roles, set=set_role, remove=remove_role, defaults=defaults.roles),
        _Informer(store=stores[escalation.ROLES], set=set_role, remove=remove_role),
        _Informer(store=cluster_role_bindings, set=set_binding, remove=remove_binding, defaults=defaults.bindings),
        _Informer(store=stores[escalation.ROLE_BINDINGS], set=set_binding, remove=remove_binding),
    )


def _no_defaults() -> Sequence[Object]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Informer:
    """Sets and removes the objects of one kind in the policy."""

    store: Store
    set: Callable[[str, Object, int], None]
    remove: Callable[[str, int], None]
    defaults: Callable[[], Sequence[Object]] = _no_defaults

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
            elif key := self._key(event.key):
                self._remove(key, event.revision)

    def _key(self, stored_under: str) -> str:
        """The key of an object; '' where none of the kind can be: a stray one must not count as of the other scope."""
        key = stored_under.removeprefix(self.store.prefix)
        return key if key.count("/") == int(self.store.resource.namespaced) else ""

    def _set(self, kv: KeyValue) -> None:
        key = self._key(kv.key)
        if not key:
            _log.error("the object under %r grants nothing: it is not where an object of its kind can be", kv.key)
            return
        try:
            self.set(key, decoded(kv), kv.revision)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one object, the others count
            _log.error("the object under %r grants nothing, since it cannot be decoded: %r", kv.key, error)
            self.remove(key, kv.revision)

    def _remove(self, key: str, revision: int) -> None:
        is_corrupt = self.store.prefix + key in self.store.corrupt
        defaults = self.defaults() if is_corrupt else ()
        default = next((each for each in defaults if each["metadata"]["name"] == key), None)
        if default:
            self.set(key, default, revision)
        else:
            self.remove(key, revision)
