"""``init`` and ``upgrade``: applies all objects in order, waits for them, and adds a context to the kubeconfig.

Both are idempotent: existing objects are kept or repaired, and existing credentials are kept.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.client.kubeconfig import Context
from clusterregistry.crinit import settings_from_flags
from clusterregistry.crinit.commands import addresses, apply, readiness, records, registration
from clusterregistry.crinit.commands.addresses import Reached
from clusterregistry.crinit.commands.session import Session
from clusterregistry.crinit.credentials import issuance
from clusterregistry.crinit.credentials.material import Material
from clusterregistry.crinit.host import answers, kubeconfig_files
from clusterregistry.crinit.host.client import Client, path_of, path_to
from clusterregistry.crinit.manifests import access, apiservices, controller, everything, secrets, server
from clusterregistry.crinit.manifests.objects import CRINIT, INSTANCE, MANAGED_BY, namespace
from clusterregistry.crinit.settings import EtcdFiles, Mode, Settings, Storage

_AHEAD = frozenset({"Namespace"})


def run(session: Session, *, upgrade: bool = False) -> None:
    """Deploys, repairs or upgrades a registry. Raises OperatorError."""
    kubeconfig_files.require_free(session.kubeconfig, session.name)
    kubeconfig_files.require_writable(session.kubeconfig)
    _require_host(session)
    settings, given = chosen(session, upgrade=upgrade)
    _require_ours(session, settings)
    _namespace(session, settings)
    _apply(session, records.manifest(settings, given))
    _apply(session, server.service(settings))
    reached = _reached(session, settings)
    with session.progress.step("Certificates and credentials"):
        material = material_for(session, settings, names=reached.names)
    manifests = everything(settings, material)
    for manifest in manifests:
        if manifest["kind"] not in _AHEAD and manifest != server.service(settings):
            _apply(session, manifest)
    _remove_policies(session, settings)
    _remove_controller(session, settings, wanted={path_to(manifest) for manifest in manifests})
    if settings.mode is Mode.AGGREGATED:
        registration.remove_unserved(session, settings)
    readiness.workloads(session, settings)
    _finish(session, settings, material=material, reached=reached)


def chosen(session: Session, *, upgrade: bool = False) -> tuple[Settings, Mapping[str, str]]:
    """Returns the settings of this run (flags before recorded flags before defaults), and the flags."""
    record = records.load(session.client, namespace=session.namespace, name=session.name)
    if record is None and upgrade:
        raise OperatorError(
            f'crinit has deployed no registry "{session.name}" in the namespace {session.namespace}',
            remedy=f"deploy it: {session.command('init')}",
        )
    given = {**(record.flags if record else {}), **session.given}
    settings = settings_from_flags.settings(session.mode, session.name, given)
    if record is not None:
        records.require_same_mode(record, session.mode, session.name)
        records.require_same_storage(record, settings)
    return _with_known_access_config(session, _with_known_etcd_files(session, settings)), given


def material_for(session: Session, settings: Settings, *, names: tuple[str, ...]) -> Material:
    """Returns the secret material of the host cluster, completed."""
    wanted = issuance.Wanted(settings=settings, names=issuance.serving_names(settings, *names), now=time.time())
    return issuance.material(wanted, existing_secrets(session, settings))


def existing_secrets(session: Session, settings: Settings) -> dict[str, dict[str, bytes]]:
    found = {}
    for secret in secrets.ALL:
        path = path_of("v1", "Secret", namespace=settings.namespace, name=secrets.name_of(settings, secret))
        held = session.client.get(path)
        if held is not None:
            found[secret] = {name: base64.b64decode(text) for name, text in (held.get("data") or {}).items()}
    return found


def entries(session: Session, *, reached: Reached, material: Material) -> kubeconfig_files.Entries:
    """Returns the entries for the user's kubeconfig: a context of the host if aggregated, else all three."""
    if material.admin is None:
        host = {key: session.access.entry[key] for key in ("cluster", "user") if key in session.access.entry}
        return {"contexts": host}
    user: dict[str, Any] = {
        "client-certificate-data": base64.b64encode(material.admin.certificate).decode(),
        "client-key-data": base64.b64encode(material.admin.key).decode(),
    }
    if material.token:
        user["token"] = material.token
    authority = base64.b64encode(material.authority.certificate).decode()
    return {
        "clusters": {"server": reached.url, "certificate-authority-data": authority},
        "users": user,
        "contexts": {"cluster": session.name, "user": session.name},
    }


def _require_host(session: Session) -> None:
    with session.progress.step(f"Host cluster {session.client.url}") as outcome:
        outcome.text = answers.require_cluster(session.client)


def _require_ours(session: Session, settings: Settings) -> None:
    """Raises OperatorError, before any change, if something else deployed a registry of this name."""
    for manifest in (server.service(settings), server.deployment(settings)):
        found = session.client.get(path_to(manifest))
        if found is not None:
            apply.require_ours(found, manifest)


def _namespace(session: Session, settings: Settings) -> None:
    """Applies the namespace, unless crinit did not make it."""
    found = session.client.get(path_of("v1", "Namespace", name=settings.namespace))
    if found is not None and found["metadata"].get("deletionTimestamp"):
        raise OperatorError(
            f"the namespace {settings.namespace} is being deleted",
            remedy="wait until it is gone and run the same command again, or name another namespace: "
            "--cluster-registry-namespace",
        )
    if found is None or apply.is_ours(found):
        _apply(session, namespace(settings))


def _reached(session: Session, settings: Settings) -> Reached:
    """Clients reach an aggregated registry through its host: only the names in the cluster matter."""
    if settings.mode is Mode.AGGREGATED:
        return Reached(url=session.client.url)
    return addresses.wait(session, settings)


def _apply(session: Session, manifest: dict[str, Any]) -> None:
    apply.apply(session.client, session.progress, manifest)


def _remove_policies(session: Session, settings: Settings) -> None:
    """Deletes network policies of an earlier run that the settings no longer have."""
    wanted = {manifest["metadata"]["name"] for manifest in access.network_policies(settings)}
    path = path_of(access.POLICY_VERSION, access.POLICY_KIND, namespace=session.namespace)
    selector = f"{INSTANCE}={session.name},{MANAGED_BY}={CRINIT}"
    for found in session.client.items(path, labelSelector=selector):
        name = found["metadata"]["name"]
        if name not in wanted:
            with session.progress.step(apply.shown_as(found | {"kind": access.POLICY_KIND})) as outcome:
                session.client.delete(f"{path}/{name}")
                outcome.text = "deleted"


def _remove_controller(session: Session, settings: Settings, *, wanted: set[str]) -> None:
    """Deletes objects of a controller of an earlier run that the settings no longer have."""
    for manifest in controller.possible_objects(settings):
        path = path_to(manifest)
        found = session.client.get(path) if path not in wanted else None
        if found is not None and apply.is_ours(found):
            with session.progress.step(apply.shown_as(manifest)) as outcome:
                session.client.delete(path)
                outcome.text = "deleted"


def _with_known_access_config(session: Session, settings: Settings) -> Settings:
    """Takes the access.yaml of an earlier run from its ConfigMap, where no flag gives one."""
    if settings.controller is None or settings.controller.access_config:
        return settings
    held = session.client.get(path_to(controller.access_config(settings, settings.controller))) or {}
    known = str((held.get("data") or {}).get(controller.ACCESS_CONFIG) or "")
    return replace(settings, controller=replace(settings.controller, access_config=known))


def _with_known_etcd_files(session: Session, settings: Settings) -> Settings:
    """Takes the files for an external etcd from the Secret of the first run, where no flag gives them."""
    if settings.storage is not Storage.EXTERNAL_ETCD or settings.etcd_files:
        return settings
    held = existing_secrets(session, settings).get(secrets.ETCD_CLIENT, {})
    files = EtcdFiles(
        authority=held.get("ca.crt", b""), certificate=held.get("tls.crt", b""), key=held.get("tls.key", b"")
    )
    return replace(settings, etcd_files=files)


def _finish(session: Session, settings: Settings, *, material: Material, reached: Reached) -> None:
    if settings.mode is Mode.AGGREGATED:
        registration.wait(session, apiservices.served(settings.argument_overrides))
    ours = entries(session, reached=reached, material=material)
    _write_context(session, ours)
    if reached.from_here:
        readiness.clusters(session, _client(session, ours), version=_listed_version(settings))
    else:
        session.progress.say(
            f"{reached.url} is reached from inside of the host cluster only. From here: kubectl --context "
            f"{session.access.name} -n {session.namespace} port-forward service/{session.name} 8443:443, and beside "
            f"it: kubectl get clusters --context {session.name} --server https://127.0.0.1:8443"
        )


def _listed_version(settings: Settings) -> str:
    """The version in which clusters are listed: kubectl's if aggregated, else the one that most images serve."""
    served = apiservices.served(settings.argument_overrides) or apiservices.VERSIONS
    return served[0] if settings.mode is Mode.AGGREGATED else served[-1]


def _write_context(session: Session, ours: kubeconfig_files.Entries) -> None:
    file = session.kubeconfig
    with session.progress.step(f"Context {session.name} in {file}") as outcome:
        was_open = kubeconfig_files.is_open_to_others(file)
        outcome.text = "written" if kubeconfig_files.put(file, session.name, ours) else "unchanged"
        if was_open and not kubeconfig_files.is_open_to_others(file):
            outcome.text += ", and now readable by its owner only"


def _client(session: Session, ours: kubeconfig_files.Entries) -> Client:
    """Returns a client as the user that the kubeconfig now has."""
    if "clusters" not in ours:
        return session.client
    return Client(Context(name=session.name, cluster=ours["clusters"], user=ours["users"]))
