"""Keeps a policy in step with the roles and bindings that are stored, so that no decision has to read them.

A role or binding that the policy cannot take gives nothing to anybody, and keeps neither the others from counting nor
the server from starting. One of the default ones that cannot be read any longer counts as it comes with the server, as
it does after a start: without it nobody could ask for the health checks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from clusterregistry.apiserver.authz.rbac.policy import Binding, Policy
from clusterregistry.apiserver.authz.rbac.rules import rules_from_wire
from clusterregistry.apiserver.registry.rbac.bootstrap import Defaults, default_bindings
from clusterregistry.apiserver.registry.store import Store
from clusterregistry.apiserver.storage.interface import Event, Interrupted, KeyValue
from clusterregistry.apiserver.storage.object_bytes import decoded, name_of

Object = dict[str, Any]
_Take = Callable[[str, Object, int], None]
_Drop = Callable[[str, int], None]
_Defaults = Callable[[], Sequence[Object]]

_log = logging.getLogger(__name__)


async def run_policy_informer(
    policy: Policy, *, roles: Store, bindings: Store, defaults: Defaults
) -> Callable[[], None]:
    """Fills the policy and keeps it up from then on; gives what ends that. Raises StorageError."""

    def take_role(name: str, role: Object, revision: int) -> None:
        policy.set_role(name, rules_from_wire(role["rules"]), revision=revision)

    def take_binding(name: str, binding: Object, revision: int) -> None:
        policy.set_binding(name, Binding.from_wire(binding), revision=revision)

    def drop_role(name: str, revision: int) -> None:
        policy.remove_role(name, revision=revision)

    def drop_binding(name: str, revision: int) -> None:
        policy.remove_binding(name, revision=revision)

    def begin_anew() -> None:
        # Of the two, the one that is read anew last has the last word.
        policy.begin_anew(max(roles.storage.revision, bindings.storage.revision))

    ends = [
        await _follow(roles, take_role, drop_role, defaults=defaults.roles, interrupted=begin_anew),
        await _follow(bindings, take_binding, drop_binding, defaults=default_bindings, interrupted=begin_anew),
    ]

    async def wait_for(revision: int) -> None:
        await roles.storage.wait_for(revision)
        await bindings.storage.wait_for(revision)

    policy.follow(wait_for)
    policy.begin_at(max(roles.storage.revision, bindings.storage.revision))

    def end() -> None:
        for each in ends:
            each()

    return end


async def _follow(
    store: Store, take: _Take, drop: _Drop, *, defaults: _Defaults, interrupted: Interrupted
) -> Callable[[], None]:
    """Hands on every object that is there, and every change from then on."""

    def hand_on(kv: KeyValue) -> None:
        try:
            take(name_of(kv), decoded(kv), kv.revision)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one of them, the others count
            _log.error("what is stored under %r gives no rights, for it cannot be understood: %r", kv.key, error)
            drop(name_of(kv), kv.revision)

    def hand_on_gone(name: str, revision: int) -> None:
        unreadable = store.prefix + name in store.corrupt
        default = next((each for each in defaults() if each["metadata"]["name"] == name), None) if unreadable else None
        if default:
            take(name, default, revision)
        else:
            drop(name, revision)

    def sink(events: Sequence[Event]) -> None:
        for event in events:
            if event.current:
                hand_on(event.current)
            else:
                hand_on_gone(event.key.removeprefix(store.prefix), event.revision)

    # Subscribed first: what changes while the list is read comes twice rather than not at all.
    subscription = store.storage.subscribe(store.prefix, sink, interrupted=interrupted)
    for kv in (await store.storage.list(store.prefix)).items:
        hand_on(kv)
    return subscription.close
