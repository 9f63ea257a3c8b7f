"""What managed fields and server-side apply cost, in microseconds of CPU for one write of an object of 3 KB.

    make bench-apply
    make bench-apply ARGS='--profile --only "apply: the same"'   # where the time goes

Only the work of ``apimachinery.fieldmanager`` is measured: no HTTP, no validation, no storage. The figure is the best
of several rounds, for anything else that runs on the machine only adds to it. Exit status 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import base64
import copy
import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from clusterregistry.apimachinery.fieldmanager.field_manager import FieldManager
from clusterregistry.apiserver.endpoints.request_scope import field_managers
from clusterregistry.registry.cluster import cluster_resource

Object = dict[str, Any]

API_VERSION = "clusterregistry.k8s.io/v1alpha1"
UPDATE_GOAL = 300.0
APPLY_GOAL = 600.0
CALLS = 500
ROUNDS = 7


class Scenario(NamedTuple):
    name: str
    goal: float
    work: Callable[[], object]


def cluster() -> Object:
    """A cluster of about 3 KB as a registry in use has them, status included, managed fields not."""
    endpoints = [
        {"clientCIDR": "10.0.0.0/8", "serverAddress": "10.11.12.13:6443"},
        {"clientCIDR": "0.0.0.0/0", "serverAddress": "https://prod-17.europe-west1.example.com:443"},
    ]
    provider = {
        "name": "google",
        "type": {"name": "oidc"},
        "config": {"idp-issuer-url": "https://accounts.example.com", "client-id": "registry", "extra-scopes": "groups"},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "Cluster",
        "metadata": {
            "name": "prod-17",
            "labels": {f"example.com/label-{number}": f"value-{number}" for number in range(6)},
            "annotations": {f"example.com/note-{number}": "some words for people " * 3 for number in range(3)},
            "finalizers": ["example.com/cleanup"],
        },
        "spec": {
            "clusterID": "6b4c2a1e-6e27-4f9d-9d40-0d1a4a3f7c11",
            "cloudProvider": {"name": "gce"},
            "kubernetesApiEndpoints": {
                "serverEndpoints": endpoints,
                "caBundle": base64.b64encode(bytes(range(256)) * 2).decode(),
            },
            "authInfo": {"providers": [provider], "user": {"kind": "Secret", "name": "user", "namespace": "fleet"}},
        },
    }


def status(beat: int) -> Object:
    times = {"lastHeartbeatTime": f"2026-01-01T00:00:{beat:02}Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [
        {"type": kind, "status": "True", "reason": "Ready", "message": "all is well", **times}
        for kind in ("OK", "Reachable", "Upgradable")
    ]
    return {
        "conditions": conditions,
        "version": {"kubernetes": "v1.36.4"},
        "nodes": {"total": 12, "ready": 12},
        "capacity": {"cpu": "96", "memory": "384Gi", "pods": 1320},
        "allocatable": {"cpu": "90", "memory": "360Gi", "pods": 1320},
        "properties": [{"name": f"example.com/fact-{number}", "value": "yes"} for number in range(3)],
    }


def live_object(main: FieldManager, of_status: FieldManager) -> Object:
    """The cluster as it is stored after a create, a status update and a label of another manager."""
    created = cluster()
    main.record_update(None, created, manager="kubectl-create")
    created["metadata"] |= {"uid": "0c1f", "resourceVersion": "41", "generation": 1}
    reported = changed(created, status=status(0))
    of_status.record_update(created, reported, manager="status-controller")
    labelled = with_label(reported, "example.com/owner", "team-a")
    main.record_update(reported, labelled, manager="labeller")
    return as_decoded(labelled)


def as_decoded(obj: Object) -> Object:
    """The same object with nothing shared, as it comes out of storage."""
    decoded: Object = orjson.loads(orjson.dumps(obj))
    return decoded


def changed(obj: Object, **parts: Any) -> Object:
    return {**obj, "metadata": {**obj["metadata"]}, **parts}


def with_label(obj: Object, key: str, value: str) -> Object:
    metadata = {**obj["metadata"], "labels": {**obj["metadata"]["labels"], key: value}}
    return {**obj, "metadata": metadata}


def scenarios() -> list[Scenario]:
    resource = cluster_resource("off")
    made = field_managers(resource, resource.versions[0], now=lambda: "2026-01-01T00:00:00Z")
    main, of_status = made[""], made["status"]
    live = live_object(main, of_status)
    print(f"object: {len(orjson.dumps(live))} bytes, {len(live['metadata']['managedFields'])} managers\n")

    def update(field_manager: FieldManager, obj: Object, manager: str) -> Callable[[], object]:
        return lambda: field_manager.record_update(live, changed(obj), manager=manager)

    heartbeat = as_decoded(changed(live, status=status(7)))
    relabelled = with_label(live, "example.com/label-0", "other")
    replaced = as_decoded(with_label(live, "example.com/label-0", "other"))
    configuration = cluster()
    applied = main.apply(live, configuration, manager="gitops", force=True)
    stored = as_decoded(applied)
    moved = copy.deepcopy(configuration)
    moved["spec"]["cloudProvider"]["name"] = "aws"
    smaller = copy.deepcopy(configuration)
    del smaller["spec"]["authInfo"]["user"]["namespace"]
    beat = {"apiVersion": API_VERSION, "kind": "Cluster", "metadata": {"name": "prod-17"}, "status": status(7)}

    def apply(field_manager: FieldManager, wanted: Object, manager: str) -> Callable[[], object]:
        return lambda: field_manager.apply(stored, wanted, manager=manager, force=True)

    return [
        Scenario("create", UPDATE_GOAL, lambda: main.record_update(None, cluster(), manager="kubectl-create")),
        Scenario("update: nothing changes", UPDATE_GOAL, update(main, live, "labeller")),
        Scenario("update: merge patch of a label", UPDATE_GOAL, update(main, relabelled, "labeller")),
        Scenario("update: PUT that changes a label", UPDATE_GOAL, update(main, replaced, "labeller")),
        Scenario("update: status, all heartbeats", UPDATE_GOAL, update(of_status, heartbeat, "status-controller")),
        Scenario("apply: the same again", APPLY_GOAL, apply(main, configuration, "gitops")),
        Scenario("apply: one field changes", APPLY_GOAL, apply(main, moved, "gitops")),
        Scenario("apply: one field is given up", APPLY_GOAL, apply(main, smaller, "gitops")),
        Scenario("apply: status, all heartbeats", APPLY_GOAL, apply(of_status, beat, "status-controller")),
    ]


def measured(work: Callable[[], object]) -> float:
    """Microseconds of CPU for one call."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(CALLS):
            work()
        best = min(best, time.process_time() - start)
    return best / CALLS * 1e6


def profile(work: Callable[[], object]) -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(CALLS):
        work()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="scenarios whose name has this text")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    options = parser.parse_args()
    missed = 0
    for scenario in scenarios():
        if options.only not in scenario.name:
            continue
        if options.profile:
            print(f"==> {scenario.name}")
            profile(scenario.work)
            continue
        cost = measured(scenario.work)
        missed += cost > scenario.goal
        verdict = "MISSED" if cost > scenario.goal else ""
        print(f"{scenario.name:34} {cost:7.1f} us   goal {scenario.goal:.0f} {verdict}".rstrip())
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
