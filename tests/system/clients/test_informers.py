"""client-go's informers on native kinds: lists and watches over restarts and a restored backup, as protobuf too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.system.clients import servers
from tests.system.clients.client_process import ClientProcess
from tests.system.clients.conftest import StartClient
from tests.system.clients.go_clients import JSON, PROTOBUF
from tests.system.clients.servers import Ours, Server

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
NATIVE = {
    "v1/namespaces": ["default", "kube-public", "kube-system"],
    "coordination.k8s.io/v1/leases": None,
    "rbac.authorization.k8s.io/v1/roles": None,
    "rbac.authorization.k8s.io/v1/rolebindings": None,
    "rbac.authorization.k8s.io/v1/clusterroles": ["cluster-admin", "view"],
    "rbac.authorization.k8s.io/v1/clusterrolebindings": ["cluster-admin"],
    "certificates.k8s.io/v1/certificatesigningrequests": [],
    "v1/events": None,
    "events.k8s.io/v1/events": None,
}
"""What an informer of each kind knows at least."""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, which may end in the middle."""
    with servers.server(tmp_path / "server") as started:
        yield started
        assert started.failed_requests() == []


def lease(name: str, holder: str = "first") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder}}


def inform(start: StartClient, release: str, server: Server, *flags: str) -> ClientProcess:
    return start(release, "inform", server.admin_kubeconfig, *flags)


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_an_informer_knows_the_leases_of_its_namespace(
    server: Server, start: StartClient, release: str, content_type: str
) -> None:
    namespace = server.namespace_for("informed", release, "json" if content_type == JSON else "protobuf")
    path = LEASES.format(namespace)
    server.create(path, lease("early"))
    flags = "--resource=coordination.k8s.io/v1/leases", f"--namespace={namespace}", f"--content-type={content_type}"
    informer = inform(start, release, server, *flags)
    assert informer.expect("synced")["keys"] == [f"{namespace}/early"]
    server.create(path, lease("late"))
    server.create(LEASES.format("default"), lease(f"elsewhere-{namespace}"))
    assert informer.expect("added", key=f"{namespace}/late")["object"]["spec"]["holderIdentity"] == "first"
    changed = server.merge(
        f"{path}/late", {"spec": {"holderIdentity": "second", "renewTime": "2026-01-02T03:04:05.678901Z"}}
    )
    update = informer.expect("updated", key=f"{namespace}/late")
    assert update["object"]["spec"] == changed["spec"]
    assert update["resourceVersion"] == changed["metadata"]["resourceVersion"]
    server.delete(f"{path}/early")
    informer.expect("deleted", key=f"{namespace}/early")
    assert not [line for line in informer.seen("added") if line["key"].startswith("default/")]
    assert {line["type"].partition(";")[0] for line in informer.seen("response")} == {content_type}


def test_informers_know_every_native_kind(server: Server, start: StartClient, release: str) -> None:
    flags = [f"--resource={each}" for each in NATIVE]
    for metadata_only in (False, True):
        informer = inform(start, release, server, "--namespace=", f"--metadata={str(metadata_only).lower()}", *flags)
        for resource, least in NATIVE.items():
            keys = informer.expect("synced", resource=resource.rpartition("/")[2])["keys"]
            assert set(least or ()) <= set(keys), resource
        assert informer.seen("watch error") == []
        assert {line["status"] for line in informer.seen("response")} == {200}


def test_an_informer_repeats_what_it_knows(server: Server, start: StartClient, release: str) -> None:
    namespace = server.namespace_for("resynced", release)
    server.create(LEASES.format(namespace), lease("a"))
    flags = "--resource=coordination.k8s.io/v1/leases", f"--namespace={namespace}", "--resync=1s"
    informer = inform(start, release, server, *flags)
    informer.expect("resynced", key=f"{namespace}/a")
    informer.expect("resynced", key=f"{namespace}/a")


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_an_informer_misses_nothing_over_a_restart(
    own: Server, start: StartClient, release: str, content_type: str
) -> None:
    namespace = own.namespace_for("restarted")
    path = LEASES.format(namespace)
    own.create(path, lease("before"))
    flags = "--resource=coordination.k8s.io/v1/leases", f"--namespace={namespace}", f"--content-type={content_type}"
    informer = inform(start, release, own, *flags)
    informer.expect("added", key=f"{namespace}/before")
    own.restart()
    # Quicker than the informer, which waits for a moment before it comes back.
    own.delete(f"{path}/before")
    own.create(path, lease("after"))
    informer.expect("added", key=f"{namespace}/after")
    informer.expect("deleted", key=f"{namespace}/before")
    own.create(path, lease("later"))
    informer.expect("added", key=f"{namespace}/later")


@pytest.mark.skipif(bool(servers.AGAINST), reason="the backup is ours")
def test_an_informer_begins_anew_when_a_backup_was_restored(
    own: Server, start: StartClient, release: str, tmp_path: Path
) -> None:
    assert isinstance(own, Ours)
    namespace = own.namespace_for("turned-back")
    path = LEASES.format(namespace)
    own.create(path, lease("kept"))
    own.back_up(tmp_path / "backup.db")
    flags = "--resource=coordination.k8s.io/v1/leases", f"--namespace={namespace}"
    informer = inform(start, release, own, *flags)
    own.create(path, lease("lost"))
    informer.expect("added", key=f"{namespace}/lost")
    own.restore(tmp_path / "backup.db")
    # A watch cannot go on from a history that is no more: the informer lists again, and finds out what is missing.
    assert informer.expect("deleted", key=f"{namespace}/lost")["missed"]
    assert not informer.seen("deleted", key=f"{namespace}/kept")
    own.create(path, lease("new"))
    informer.expect("added", key=f"{namespace}/new")
