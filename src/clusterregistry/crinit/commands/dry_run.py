"""``--dry-run``: what ``init`` would apply, as manifests or as a list. Changes nothing anywhere.

With --host-cluster-context the host cluster is read, so that credentials and addresses which are there come out
again. Without it nobody is called, and the credentials are new ones.
"""

from __future__ import annotations

import time

from clusterregistry.codecs import yaml_codec
from clusterregistry.crinit import choosing
from clusterregistry.crinit.commands import addresses, applying, init
from clusterregistry.crinit.commands.session import Session
from clusterregistry.crinit.credentials import making
from clusterregistry.crinit.manifests import everything
from clusterregistry.crinit.manifests.objects import Manifest
from clusterregistry.crinit.settings import Mode, ServiceType, Settings


def offline(mode: Mode, name: str, given: dict[str, str]) -> list[Manifest]:
    settings = choosing.settings(mode, name, given)
    wanted = making.Wanted(settings=settings, names=making.serving_names(settings), now=time.time())
    return everything(settings, making.material(wanted, {}))


def against_host(session: Session, *, upgrade: bool) -> list[Manifest]:
    settings, _ = init.chosen(session, upgrade=upgrade)
    material = init.material_for(session, settings, names=_names(session, settings))
    return everything(settings, material)


def _names(session: Session, settings: Settings) -> tuple[str, ...]:
    """Those of a load balancer that is there; the certificate of one that is to come lacks its address."""
    is_balanced = settings.mode is Mode.STANDALONE and settings.service_type is ServiceType.LOAD_BALANCER
    return addresses.known(session, settings) if is_balanced else ()


def as_yaml(manifests: list[Manifest]) -> str:
    return "".join(f"---\n{yaml_codec.encode(manifest).decode()}" for manifest in manifests)


def as_list(manifests: list[Manifest]) -> list[str]:
    return [f"would apply {applying.shown_as(manifest)}" for manifest in manifests]
