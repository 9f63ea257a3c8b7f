"""Budgets for drained nodes: one pod of several at a time. A single pod has none, or no node could be drained."""

from __future__ import annotations

from clusterregistry.crinit.manifests.objects import ETCD, SERVER, Manifest, metadata, selector
from clusterregistry.crinit.settings import Settings, Storage


def budgets(settings: Settings) -> list[Manifest]:
    made = [_budget(settings, settings.name, SERVER)] if settings.replicas > 1 else []
    return [*made, _budget(settings, settings.etcd_name, ETCD)] if settings.storage is Storage.OWN_ETCD else made


def _budget(settings: Settings, name: str, component: str) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(settings, name, component=component),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(settings, component)}},
    }
