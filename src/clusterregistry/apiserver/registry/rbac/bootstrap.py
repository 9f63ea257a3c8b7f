"""Makes the default roles and bindings where they are missing, and repairs those that lack something.

Any number of servers may do so at once: who comes second finds the object and repairs it, which changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from clusterregistry.api.rbac import GROUP
from clusterregistry.api.rbac.v1 import VERSION
from clusterregistry.api.rbac.v1.types import CLUSTER_ROLE_BINDING_KIND, CLUSTER_ROLE_KIND
from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apiserver.authn.user import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, MASTERS
from clusterregistry.apiserver.authz.rbac.coverage import compacted, not_covered
from clusterregistry.apiserver.authz.rbac.policy import Binding, Policy
from clusterregistry.apiserver.authz.rbac.rules import Rule, rules_from_wire
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.store import Store, UpdateRequest
from clusterregistry.apiserver.storage.object_bytes import decoded, name_of

Object = dict[str, Any]

AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
"""The annotation that keeps a default object from being repaired, when it is "false"."""

_BOOTSTRAPPING = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_MONITORING = "system:monitoring"
_READING = ["get", "list", "watch"]
_WRITING = ["create", "delete", "deletecollection", "patch", "update"]
_PUBLIC_PATHS = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY_PATHS = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]
_MONITORED_PATHS = [
    *("/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*"),
]


def _metadata(name: str, labels: dict[str, str]) -> Object:
    return {"name": name, "labels": _BOOTSTRAPPING | labels, "annotations": {AUTO_UPDATE: "true"}}


def _role(name: str, *rules: Object, aggregated_to: str = "") -> Object:
    labels = {_AGGREGATE + aggregated_to: "true"} if aggregated_to else {}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": CLUSTER_ROLE_KIND,
        "metadata": _metadata(name, labels),
        "rules": list(rules) or None,
    }


def _aggregate(name: str, *, aggregated_to: str = "") -> Object:
    """A role that is made of all roles with its label."""
    selector = {"matchLabels": {_AGGREGATE + name: "true"}}
    return _role(name, aggregated_to=aggregated_to) | {"aggregationRule": {"clusterRoleSelectors": [selector]}}


def _on(group: str, verbs: list[str], *resources: str) -> Object:
    return {"verbs": verbs, "apiGroups": [group], "resources": list(resources)}


def _paths(verbs: list[str], paths: list[str]) -> Object:
    return {"verbs": verbs, "nonResourceURLs": paths}


def _binding(role: str, *groups: str) -> Object:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": CLUSTER_ROLE_BINDING_KIND,
        "metadata": _metadata(role, {}),
        "roleRef": {"apiGroup": GROUP, "kind": CLUSTER_ROLE_KIND, "name": role},
        "subjects": [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups],
    }


def _rules_on(resources: Sequence[Resource], role: str) -> list[Object]:
    """What a default role allows on the resources that name it: one rule for each."""
    rules = []
    for each in resources:
        if role not in each.default_roles:
            continue
        status = [f"{each.plural}/status"] if each.has_status else []
        if role == "view":
            rules.append(_on(each.group, _READING, each.plural, *status))
        elif role == "edit":
            rules.append(_on(each.group, _WRITING, each.plural))
        elif status:
            rules.append(_on(each.group, ["patch", "update"], *status))
    return rules


def default_roles(resources: Sequence[Resource] = ()) -> list[Object]:
    """Fresh objects, for the caller to change."""
    parts = [
        _role(f"system:aggregate-to-{role}", *_rules_on(resources, role), aggregated_to=role)
        for role in ("admin", "edit", "view")
    ]
    return [
        _role("cluster-admin", _on("*", ["*"], "*"), _paths(["*"], ["*"])),
        _aggregate("admin"),
        _aggregate("edit", aggregated_to="admin"),
        _aggregate("view", aggregated_to="edit"),
        *parts,
        _role(
            "system:basic-user",
            _on("authorization.k8s.io", ["create"], "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
            _on("authentication.k8s.io", ["create"], "selfsubjectreviews"),
        ),
        _role("system:discovery", _paths(["get"], sorted([*_DISCOVERY_PATHS, *_PUBLIC_PATHS]))),
        _role("system:monitoring", _paths(["get"], _MONITORED_PATHS)),
        _role("system:public-info-viewer", _paths(["get"], _PUBLIC_PATHS)),
    ]


def default_bindings() -> list[Object]:
    """Fresh objects, for the caller to change."""
    return [
        _binding("cluster-admin", MASTERS),
        _binding("system:basic-user", ALL_AUTHENTICATED),
        _binding("system:discovery", ALL_AUTHENTICATED),
        _binding("system:monitoring", _MONITORING),
        _binding("system:public-info-viewer", ALL_AUTHENTICATED, ALL_UNAUTHENTICATED),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The default roles and bindings of a server; ``manager`` is the field manager that writes them."""

    manager: str = "apiserver"
    resources: Sequence[Resource] = ()
    """The kinds that the default roles are about."""

    def roles(self) -> list[Object]:
        return default_roles(self.resources)


def repaired_role(present: Object, wanted: Object) -> Object:
    """``present`` with the rules, or else the selectors, that it lacks."""
    if left_alone(present):
        return present
    repaired = _with_metadata(present, wanted)
    if "aggregationRule" in wanted:
        return {
            **repaired,
            "aggregationRule": _with_selectors(present.get("aggregationRule"), wanted["aggregationRule"]),
        }
    missing = not_covered(rules_from_wire(wanted["rules"]), held=rules_from_wire(present["rules"]))
    return {**repaired, "rules": [*(present["rules"] or ()), *map(_wire, compacted(missing))] or None}


def repaired_binding(present: Object, wanted: Object) -> Object:
    """``present``, which is of the wanted role, with the subjects that it lacks."""
    if left_alone(present):
        return present
    subjects = present.get("subjects", [])
    missing = [each for each in wanted["subjects"] if each not in subjects]
    return {**_with_metadata(present, wanted), "subjects": [*subjects, *missing]}


def left_alone(present: Object) -> bool:
    """Whether somebody asked that this default object be theirs."""
    annotations = present["metadata"].get("annotations", {})
    return bool(annotations.get(AUTO_UPDATE) == "false")


def _with_metadata(present: Object, wanted: Object) -> Object:
    metadata = {**present["metadata"]}
    for part in ("labels", "annotations"):
        metadata[part] = wanted["metadata"][part] | metadata.get(part, {})
    return {**present, "metadata": metadata}


def _with_selectors(present: Object | None, wanted: Object) -> Object:
    selectors = (present or {}).get("clusterRoleSelectors", [])
    missing = [each for each in wanted["clusterRoleSelectors"] if each not in selectors]
    return {"clusterRoleSelectors": [*selectors, *missing]}


def _wire(rule: Rule) -> Object:
    parts = {
        "verbs": rule.verbs,
        "apiGroups": rule.api_groups,
        "resources": rule.resources,
        "resourceNames": rule.resource_names,
        "nonResourceURLs": rule.non_resource_urls,
    }
    return {name: list(values) for name, values in parts.items() if values}


Change = Callable[[Object], Object]


def _unheard(_text: str) -> None:
    """There is nobody to warn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWriter:
    """The objects of one kind. All methods but ``seen`` raise APIError when the storage cannot answer."""

    store: Store
    field_manager: FieldManager

    async def seen(self) -> dict[str, Object]:
        """All objects by name, as far as this server has seen: from memory."""
        page = await self.store.storage.list(self.store.prefix, revision=self.store.storage.revision)
        return {name_of(kv): decoded(kv) for kv in page.items}

    async def create(self, obj: Object, *, manager: str) -> None:
        """Raises 409 for one that is there."""
        self.field_manager.record_update(None, obj, manager=manager)
        await self.store.create(obj, dry_run=False, warn=_unheard)

    async def change(self, name: str, change: Change, *, manager: str) -> None:
        """Replaces an object by what ``change`` makes of a copy of it. Raises 404."""

        def changed(old: Object | None) -> Object:
            if old is None:
                raise self.store.not_found(name)
            obj = change({**old, "metadata": {**old["metadata"]}})
            self.field_manager.record_update(old, obj, manager=manager)
            return obj

        request = UpdateRequest(change=changed, strategy=self.store.resource.strategy, warn=_unheard)
        await self.store.update(name, request)

    async def delete(self, name: str) -> None:
        await self.store.delete(name, DeleteOptions())


Repaired = Callable[[Object, Object], Object]

_log = logging.getLogger(__name__)

_ATTEMPTS = 100
"""Others would have to remove and make an object anew each time."""


async def ensure_defaults(*, roles: ServerWriter, bindings: ServerWriter, defaults: Defaults) -> None:
    """Raises APIError when the storage cannot be written."""
    await _ensure_all(roles, defaults.roles(), repaired_role, manager=defaults.manager)
    await _remove_bindings_of_other_roles(bindings)
    await _ensure_all(bindings, default_bindings(), repaired_binding, manager=defaults.manager)


async def assume_defaults(policy: Policy, *, roles: ServerWriter, bindings: ServerWriter, defaults: Defaults) -> None:
    """Has the policy know of the default objects that are missing, when they cannot be written."""
    there = await roles.seen()
    for role in defaults.roles():
        if role["metadata"]["name"] not in there:
            policy.set_role(role["metadata"]["name"], rules_from_wire(role["rules"]), revision=0)
    there = await bindings.seen()
    for binding in default_bindings():
        if binding["metadata"]["name"] not in there:
            policy.set_binding(binding["metadata"]["name"], Binding.from_wire(binding), revision=0)


async def _ensure_all(keeper: ServerWriter, wanted: Sequence[Object], repaired: Repaired, *, manager: str) -> None:
    results = await asyncio.gather(
        *(_ensure(keeper, each, repaired=repaired, manager=manager) for each in wanted), return_exceptions=True
    )
    for result in results:
        if result is not None:
            raise result


async def _ensure(keeper: ServerWriter, wanted: Object, *, repaired: Repaired, manager: str) -> None:
    """Repairs or creates one object, whatever others do to it meanwhile.

    One that is stored and cannot be read is left for a person to delete. The log has named it. So is one that cannot
    be repaired, since another program wrote what could not be written here.
    """
    name = wanted["metadata"]["name"]
    for _ in range(_ATTEMPTS):
        if keeper.store.prefix + name in keeper.store.corrupt:
            return
        with _expecting("NotFound"):
            await _repair(keeper, name, lambda present: repaired(present, wanted), manager=manager)
            return
        with _expecting("AlreadyExists"):
            await keeper.create({**wanted, "metadata": {**wanted["metadata"]}}, manager=manager)
            return


async def _repair(keeper: ServerWriter, name: str, change: Change, *, manager: str) -> None:
    try:
        await keeper.change(name, change, manager=manager)
    except APIError as error:
        if error.reason != "Invalid":
            raise
        key = keeper.store.prefix + name
        _log.error("what is stored under %r cannot be repaired: %s. What to do: delete it, and start anew", key, error)


async def _remove_bindings_of_other_roles(bindings: ServerWriter) -> None:
    """The role of a binding cannot be changed: one of a default name and another role has to go first."""
    there = await bindings.seen()
    for wanted in default_bindings():
        name = wanted["metadata"]["name"]
        present = there.get(name)
        if present and not left_alone(present) and present["roleRef"] != wanted["roleRef"]:
            with _expecting("NotFound"):
                await bindings.delete(name)


@contextlib.contextmanager
def _expecting(reason: str) -> Iterator[None]:
    """Goes on behind the block when the one thing has happened that others may have caused."""
    try:
        yield
    except APIError as error:
        if error.reason != reason:
            raise
