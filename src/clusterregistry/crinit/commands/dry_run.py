"""``--dry-run``: the manifests that ``init`` would apply, or a list of them. Changes nothing anywhere.

With --host-cluster-context the host cluster is read, so that the output has its credentials and addresses. Without it
no cluster is called, and the credentials are new ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.crinit import settings_from_flags
from clusterregistry.crinit.commands import addresses, apply, init, records
from clusterregistry.crinit.commands.session import Session
from clusterregistry.crinit.credentials import issuance
from clusterregistry.crinit.credentials.material import Material
from clusterregistry.crinit.host import answers
from clusterregistry.crinit.manifests import everything
from clusterregistry.crinit.manifests.objects import Manifest
from clusterregistry.crinit.settings import Mode, ServiceType, Settings


def offline(mode: Mode, name: str, given: dict[str, str]) -> list[Manifest]:
    settings = settings_from_flags.settings(mode, name, given)
    wanted = issuance.Wanted(settings=settings, names=issuance.serving_names(settings), now=time.time())
    return _all(settings, issuance.material(wanted, {}), given)


def against_host(session: Session, *, upgrade: bool) -> list[Manifest]:
    answers.require_cluster(session.client)
    settings, given = init.chosen(session, upgrade=upgrade)
    material = init.material_for(session, settings, names=_names(session, settings))
    return _all(settings, material, given)


def _all(settings: Settings, material: Material, given: Mapping[str, str]) -> list[Manifest]:
    """Includes the record, as ``init`` does: crinit can manage a registry that was deployed from the output."""
    namespace, *others = everything(settings, material)
    return [namespace, records.manifest(settings, given), *others]


def _names(session: Session, settings: Settings) -> tuple[str, ...]:
    """Returns the addresses of an existing load balancer; the certificate of a new one lacks its address."""
    is_balanced = settings.mode is Mode.STANDALONE and settings.service_type is ServiceType.LOAD_BALANCER
    return addresses.known(session, settings) if is_balanced else ()


def as_yaml(manifests: list[Manifest]) -> str:
    return "".join(f"---\n{yaml_codec.encode(manifest).decode()}" for manifest in manifests)


def as_list(manifests: list[Manifest]) -> list[str]:
    return [f"would apply {apply.shown_as(manifest)}" for manifest in manifests]
