"""Makes the data of a release: runs that release's own server, writes objects through its API, and keeps the files.

    python -m tests.system.upgrade.make_fixture CHECKOUT tests/system/upgrade/v0.1.0

CHECKOUT is a checkout of the release. The directory gets ``registry.db`` (SQLite), ``etcd.json`` (the objects in an
etcd, by their keys) and ``objects.json`` (every object as the release serves it). A fixture is made once, by its
release, and never changed.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import APPLY_PATCH, CLUSTERS, JSON_PATCH, cluster
from tests.apiserver.api.rbac_objects import BINDINGS, ROLES, aggregate, binding, role, rule
from tests.apiserver.server.programs import Program
from tests.apiserver.storage.etcd_servers import EtcdCluster

COLLECTIONS = (CLUSTERS, ROLES, BINDINGS)

FULL_SPEC = {
    "clusterID": "7a4b0b2c-2f4e-4b57-9a6e-5f7f3d3c9a11",
    "kubernetesApiEndpoints": {
        "serverEndpoints": [
            {"clientCIDR": "10.0.0.0/8", "serverAddress": "10.1.2.3:6443"},
            {"clientCIDR": "0.0.0.0/0", "serverAddress": "https://full.example.com:6443"},
        ],
        "caBundle": base64.b64encode(b"some authority").decode(),
    },
    "authInfo": {
        "providers": [
            {"name": "corp", "type": {"name": "corp-files"}, "config": {"key": "full", "realm": "eu"}},
            {"name": "second", "type": {}, "config": {}},
            {"name": "third"},
        ],
        "user": {"kind": "Secret", "name": "readers", "namespace": "fleet"},
        "controller": {"kind": "Secret", "name": "controllers"},
    },
    "cloudProvider": {"name": "aws"},
}

FULL_STATUS = {
    "conditions": [
        {
            "type": "OK",
            "status": "True",
            "reason": "ClusterReady",
            "message": "all\nwell",
            "lastHeartbeatTime": "2024-05-01T10:00:00Z",
            "lastTransitionTime": "2024-04-01T10:00:00Z",
        },
        {"type": "Offline", "status": "Unknown"},
        {"type": "", "status": "False", "reason": "Ünïcode \u2028"},
    ],
    "version": {"kubernetes": "v1.33.1"},
    "nodes": {"total": 12, "ready": 11},
    "capacity": {"cpu": 96, "memory": "512Gi", "example.com/devices": "4"},
    "allocatable": {"cpu": "95500m", "pods": 1320},
    "properties": [{"name": "region", "value": "eu-west-1"}, {"name": "tier", "value": ""}],
}


def _applied(name: str, **spec: Any) -> dict[str, Any]:
    return {**cluster(name, provider=None), "spec": spec}


def write_objects(client: Client) -> None:
    """Writes clusters in every form that v1alpha1 has, and some roles and bindings."""
    _write_whole_objects(client)
    _write_managed_objects(client)
    _write_deleted_objects(client)
    client.post(ROLES, role("inspector", rule("get", "list", "watch"))).expect(201)
    client.post(ROLES, role("one", rule("get", names=["full"]), labels={"example.com/part": "yes"})).expect(201)
    client.post(ROLES, aggregate("sum", **{"example.com/part": "yes"})).expect(201)
    client.post(BINDINGS, binding("inspectors", "inspector", User="jane", Group="auditors")).expect(201)


def _write_whole_objects(client: Client) -> None:
    full = {**cluster("full", labels={"env": "prod", "empty": ""}), "spec": FULL_SPEC}
    full["metadata"]["annotations"] = {"example.com/note": 'two lines\nwith "quotes" and {braces}', "zurich": "ß\u2029"}
    client.post(CLUSTERS, full, fieldManager="creator").expect(201)
    client.put(
        f"{CLUSTERS}/full/status", {**cluster("full", None), "status": FULL_STATUS}, fieldManager="controller"
    ).expect(200)
    old = [{"clientCidr": "192.168.0.0/16", "serverAddress": "registered"}]
    client.post(
        CLUSTERS, {**cluster("old-spelling"), "spec": {"kubernetesApiEndpoints": {"serverEndpoints": old}}}
    ).expect(201)
    absent = {"authInfo": {"providers": None}, "cloudProvider": {"name": ""}, "kubernetesApiEndpoints": None}
    client.post(CLUSTERS, {**cluster("nulls"), "spec": absent, "status": None}).expect(201)
    empties: dict[str, Any] = {
        "authInfo": {"providers": []},
        "cloudProvider": {},
        "kubernetesApiEndpoints": {"serverEndpoints": []},
    }
    client.post(CLUSTERS, {**cluster("empties"), "spec": empties}).expect(201)
    client.post(CLUSTERS, cluster("bare", None)).expect(201)
    client.put(f"{CLUSTERS}/by-update", cluster("by-update", "gcp")).expect(201)
    client.post(CLUSTERS, cluster("", "azure", generateName="generated-")).expect(201)


def _write_managed_objects(client: Client) -> None:
    path = f"{CLUSTERS}/shared"
    first = _applied("shared", cloudProvider={"name": "onprem"}, authInfo={"user": {"kind": "Secret", "name": "a"}})
    second = _applied("shared", cloudProvider={"name": "onprem"}, clusterID="shared-id")
    second["metadata"]["labels"] = {"team": "blue"}
    client.patch(path, first, kind=APPLY_PATCH, fieldManager="first").expect(201)
    client.patch(path, second, kind=APPLY_PATCH, fieldManager="second").expect(200)
    status = {**cluster("shared", None), "status": {"conditions": [{"type": "OK", "status": "False"}]}}
    client.patch(f"{path}/status", status, kind=APPLY_PATCH, fieldManager="observer").expect(200)
    heartbeat = {"status": {"nodes": {"total": 3}, "version": {"kubernetes": "v1.30.0"}}}
    client.patch(f"{path}/status", heartbeat, fieldManager="heartbeat").expect(200)
    client.patch(
        path, [{"op": "add", "path": "/metadata/labels/tier", "value": "1"}], kind=JSON_PATCH, fieldManager="editor"
    ).expect(200)
    client.post(CLUSTERS, cluster("unmanaged")).expect(201)
    client.put(f"{CLUSTERS}/unmanaged", cluster("unmanaged", managedFields=[{}])).expect(200)


def _write_deleted_objects(client: Client) -> None:
    owner = client.get(f"{CLUSTERS}/full").expect(200)["metadata"]["uid"]
    reference = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster", "name": "full", "uid": owner}
    held = cluster("held", finalizers=["example.com/hold"], ownerReferences=[reference])
    client.post(CLUSTERS, held).expect(201)
    client.delete(f"{CLUSTERS}/held").expect(200)
    client.post(CLUSTERS, cluster("gone")).expect(201)
    client.put(f"{CLUSTERS}/gone", cluster("gone", "gcp")).expect(200)
    client.delete(f"{CLUSTERS}/gone").expect(200)


def objects_of(client: Client) -> dict[str, Any]:
    """Every object by its path."""
    return {
        f"{collection}/{item['metadata']['name']}": item
        for collection in COLLECTIONS
        for item in client.get(collection).expect(200)["items"]
    }


def make(checkout: Path, target: Path) -> None:
    environment = {"PYTHONPATH": str(checkout / "src")}
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        with Program(directory / "sqlite", environment=environment) as program, program.client() as client:
            write_objects(client)
            objects = objects_of(client)
            program.stop()
        database = directory / "sqlite" / "data" / "registry.db"
        shutil.copyfile(database, target / "registry.db")
        (directory / "etcd").mkdir()
        with EtcdCluster(directory / "etcd") as etcd:
            _copy(checkout, database, etcd.endpoints[0])
            flag = f"--etcd-servers={etcd.endpoints[0]}"
            with Program(directory / "on-etcd", flag, environment=environment) as program, program.client() as client:
                client.post(CLUSTERS, cluster("gone")).expect(201)
                client.delete(f"{CLUSTERS}/gone").expect(200)
                program.stop()
            (target / "etcd.json").write_text(_dump(etcd))
    (target / "objects.json").write_text(json.dumps(objects, indent=1, sort_keys=True) + "\n")


def _copy(checkout: Path, database: Path, endpoint: str) -> None:
    """Copies all objects to etcd, by the release's own command."""
    command = [sys.executable, "-m", "clusterregistry", "storage", "copy"]
    command += [f"--from=sqlite:{database}", f"--to=etcd:{endpoint.removeprefix('http://')}"]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(checkout / "src")})


def _dump(etcd: EtcdCluster) -> str:
    """All objects by their keys as JSON, in the order of their last changes."""
    found = json.loads(etcd.etcdctl("get", "", "--prefix", "--sort-by=MODIFY", "--order=ASCEND", "-w=json"))["kvs"]
    decoded = {base64.b64decode(kv["key"]).decode(): base64.b64decode(kv["value"]) for kv in found}
    # The key of the writer lease has a value too. It ends with its server.
    objects = {key: value.decode() for key, value in decoded.items() if value.startswith(b"{")}
    return json.dumps(objects, indent=1) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("target", type=Path)
    given = parser.parse_args()
    make(given.checkout.absolute(), given.target)
