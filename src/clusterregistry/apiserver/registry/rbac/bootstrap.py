"""Bootstraps RBAC: creates the default roles and bindings that are missing, and repairs those that lack something.

Several servers may do so at once: the second one finds the object and repairs it, which changes nothing.
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
from clusterregistry.apiserver.authz.rbac.bindings import Binding
from clusterregistry.apiserver.authz.rbac.coverage import compacted, not_covered
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.authz.rbac.rules import Rule, rules_from_wire
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.registry.store import Store, UpdateRequest
from clusterregistry.apiserver.storage.object_bytes import decoded, name_of

Object = dict[str, Any]
Change = Callable[[Object], Object]
Repaired = Callable[[Object, Object], Object]

AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
"""The annotation that keeps a default object from being repaired, when it is "false"."""

_BOOTSTRAPPING = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_MONITORING = "system:monitoring"
_READING = ["get", "list", "watch"]
_WRITING = ["create", "delete", "deletecollection", "patch", "update"]
_ALL = sorted([*_READING, *_WRITING])
_PUBLIC_PATHS = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_CERTIFICATES = "certificates.k8s.io"
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
"""The signer that the server has; kube-apiserver has a role for approving each signer."""
_DISCOVERY_PATHS = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]
_MONITORED_PATHS = ["/healthz", "/healthz/*", "/livez", "/livez/*", "/metrics", "/metrics/slis", "/readyz", "/readyz/*"]

_ATTEMPTS = 100
"""Another program would have to delete and create an object each time."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedRole:
    """A default role of a product, bound to the users and groups of its programs. Names begin with ``system:``."""

    name: str
    rules: Sequence[Object]
    """As in the wire objects of roles."""
    users: Sequence[str] = ()
    groups: Sequence[str] = ()

    def role(self) -> Object:
        return _role(self.name, *({**rule} for rule in self.rules))

    def binding(self) -> Object:
        return _binding(self.name, *self.groups, users=self.users)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The default roles and bindings of a server; ``manager`` is the field manager that writes them."""

    manager: str = "apiserver"
    resources: Sequence[Resource] = ()
    """The resources that the default roles have rules for."""
    granted: Sequence[GrantedRole] = ()
    """Those of the product."""

    def roles(self) -> list[Object]:
        return [*default_roles(self.resources), *(each.role() for each in self.granted)]

    def bindings(self) -> list[Object]:
        return [*default_bindings(), *(each.binding() for each in self.granted)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Writes the default objects, or has the policy assume them."""

    roles: ServerWriter
    bindings: ServerWriter
    defaults: Defaults

    async def write(self) -> None:
        """Creates or repairs each default object. Raises APIError if the storage cannot be written."""
        await self._ensure_all(self.roles, self.defaults.roles(), repaired=_repaired_role)
        await self._delete_bindings_of_other_roles()
        await self._ensure_all(self.bindings, self.defaults.bindings(), repaired=_repaired_binding)

    async def assume(self, policy: Policy) -> None:
        """Adds the default objects that are missing to the policy, for a storage that cannot be written."""
        stored = await self.roles.seen()
        for role in self.defaults.roles():
            if role["metadata"]["name"] not in stored:
                policy.set_role(role["metadata"]["name"], rules_from_wire(role["rules"]), revision=0)
        stored = await self.bindings.seen()
        for binding in self.defaults.bindings():
            if binding["metadata"]["name"] not in stored:
                policy.set_binding(binding["metadata"]["name"], Binding.from_wire(binding), revision=0)

    async def _ensure_all(self, writer: ServerWriter, wanted: Sequence[Object], *, repaired: Repaired) -> None:
        results = await asyncio.gather(
            *(self._ensure(writer, each, repaired=repaired) for each in wanted), return_exceptions=True
        )
        for result in results:
            if result is not None:
                raise result

    async def _ensure(self, writer: ServerWriter, wanted: Object, *, repaired: Repaired) -> None:
        """Repairs or creates one object, whatever other writers do to it meanwhile.

        An object that cannot be read is left alone; the cache has logged it.
        """
        name = wanted["metadata"]["name"]
        for _ in range(_ATTEMPTS):
            if writer.store.prefix + name in writer.store.corrupt:
                return
            with _expecting("NotFound"):
                await self._repair(writer, name, lambda present: repaired(present, wanted))
                return
            with _expecting("AlreadyExists"):
                await writer.create({**wanted, "metadata": {**wanted["metadata"]}}, manager=self.defaults.manager)
                return

    async def _repair(self, writer: ServerWriter, name: str, change: Change) -> None:
        """Repairs an object, or logs that it cannot be repaired: another program stored an invalid one."""
        try:
            await writer.change(name, change, manager=self.defaults.manager)
        except APIError as error:
            if error.reason != "Invalid":
                raise
            key = writer.store.prefix + name
            _log.error("the object under %r cannot be repaired: %s. What to do: delete it, and restart", key, error)

    async def _delete_bindings_of_other_roles(self) -> None:
        """Deletes bindings of a default name and another role: the role of a binding cannot be changed."""
        stored = await self.bindings.seen()
        for wanted in self.defaults.bindings():
            name = wanted["metadata"]["name"]
            present = stored.get(name)
            if present and not _is_exempt(present) and present["roleRef"] != wanted["roleRef"]:
                with _expecting("NotFound"):
                    await self.bindings.delete(name)


@contextlib.contextmanager
def _expecting(reason: str) -> Iterator[None]:
    """Suppresses the API error with a reason that another writer may have caused."""
    try:
        yield
    except APIError as error:
        if error.reason != reason:
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWriter:
    """Writes objects of one kind on behalf of the server. Its writes raise APIError if the storage does not answer."""

    store: Store
    field_manager: FieldManager
    subresource: str = ""
    """The subresource through which ``change`` writes; empty for the object itself."""

    async def seen(self) -> dict[str, Object]:
        """All objects by name, from the cache."""
        page = await self.store.storage.list(self.store.prefix, revision=self.store.storage.revision)
        return {name_of(kv): decoded(kv) for kv in page.items}

    async def create(self, obj: Object, *, manager: str) -> None:
        """Raises 409 for an object that exists."""
        self.field_manager.record_update(None, obj, manager=manager)
        await self.store.create(obj, dry_run=False, warn=_ignore_warning)

    async def change(self, name: str, change: Change, *, manager: str) -> None:
        """Replaces an object by what ``change`` makes of a copy of it. Raises 404."""

        def changed(old: Object | None) -> Object:
            if old is None:
                raise self.store.not_found(name)
            obj = change({**old, "metadata": {**old["metadata"]}})
            self.field_manager.record_update(old, obj, manager=manager)
            return obj

        resource = self.store.resource
        strategy = resource.subresources[self.subresource].strategy if self.subresource else resource.strategy
        request = UpdateRequest(change=changed, strategy=strategy, warn=_ignore_warning)
        await self.store.update(name, request)

    async def delete(self, name: str) -> None:
        await self.store.delete(name, DeleteOptions())


def _ignore_warning(_text: str) -> None:
    """The server does not warn itself."""


def _repaired_role(present: Object, wanted: Object) -> Object:
    """``present`` with the rules, or the selectors, that it lacks."""
    if _is_exempt(present):
        return present
    repaired = _with_metadata(present, wanted)
    if "aggregationRule" in wanted:
        return {
            **repaired,
            "aggregationRule": _with_selectors(present.get("aggregationRule"), wanted["aggregationRule"]),
        }
    missing = not_covered(rules_from_wire(wanted["rules"]), held=rules_from_wire(present["rules"]))
    return {**repaired, "rules": [*(present["rules"] or ()), *map(_wire, compacted(missing))] or None}


def _repaired_binding(present: Object, wanted: Object) -> Object:
    """``present``, a binding of the wanted role, with the subjects that it lacks."""
    if _is_exempt(present):
        return present
    subjects = present.get("subjects", [])
    missing = [each for each in wanted["subjects"] if each not in subjects]
    return {**_with_metadata(present, wanted), "subjects": [*subjects, *missing]}


def _is_exempt(present: Object) -> bool:
    """Whether the annotation exempts a default object from repairs."""
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


def default_roles(resources: Sequence[Resource] = ()) -> list[Object]:
    """Fresh objects, for the caller to change."""
    native = _native_rules()
    parts = [
        _role(f"system:aggregate-to-{role}", *native[role], *_rules_on(resources, role), aggregated_to=role)
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
        _role(
            f"system:{_CERTIFICATES}:kube-apiserver-client-approver",
            _on(_CERTIFICATES, ["approve"], "signers") | {"resourceNames": [_CLIENT_SIGNER]},
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


def _native_rules() -> dict[str, list[Object]]:
    """The rules of kube-apiserver's default roles on the native kinds that are served here."""
    events = {"apiGroups": ["", "events.k8s.io"], "resources": ["events"]}
    return {
        "admin": [
            _on("authorization.k8s.io", ["create"], "localsubjectaccessreviews"),
            _on(GROUP, _ALL, "rolebindings", "roles"),
        ],
        "edit": [{"verbs": _WRITING, **events}, _on("coordination.k8s.io", _ALL, "leases")],
        # In a namespace, namespaces are that namespace: clients find so which ones they have access to.
        "view": [
            _on("", _READING, "namespaces/status"),
            _on("", _READING, "namespaces"),
            {"verbs": _READING, **events},
        ],
    }


def _rules_on(resources: Sequence[Resource], role: str) -> list[Object]:
    """The rules of a default role on the resources of the product that name it: one for each."""
    rules = []
    for each in resources:
        if each.native or role not in each.default_roles:
            continue
        status = [f"{each.plural}/status"] if "status" in each.subresources else []
        if role == "view":
            views = [f"{each.plural}/{name}" for name in each.views]
            rules.append(_on(each.group, _READING, each.plural, *status, *views))
        elif role == "edit":
            rules.append(_on(each.group, _WRITING, each.plural))
        elif status:
            rules.append(_on(each.group, ["patch", "update"], *status))
    return rules


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


def _binding(role: str, *groups: str, users: Sequence[str] = ()) -> Object:
    subjects = [("User", user) for user in users] + [("Group", group) for group in groups]
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": CLUSTER_ROLE_BINDING_KIND,
        "metadata": _metadata(role, {}),
        "roleRef": {"apiGroup": GROUP, "kind": CLUSTER_ROLE_KIND, "name": role},
        "subjects": [{"kind": kind, "apiGroup": GROUP, "name": name} for kind, name in subjects],
    }
