"""kopf: an operator of clusters, with the settings that it has by default and with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.system.clients import operators
from tests.system.clients.client_process import ClientProcess
from tests.system.clients.servers import CLUSTERS, Server
from tools.processes import wait_for

FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
LAST_HANDLED = "kopf.zalando.org/last-handled-configuration"
StartOperator = Callable[..., ClientProcess]


@pytest.fixture
def operate(server: Server, tmp_path: Path) -> Iterator[StartOperator]:
    with ExitStack() as stack:

        def start(*flags: str, post_logs: bool = False) -> ClientProcess:
            process = operators.run(server.admin_kubeconfig, *flags, log=tmp_path / "kopf.log", post_logs=post_logs)
            return stack.enter_context(process)

        yield start


def cluster(name: str, provider: str = "here") -> dict[str, Any]:
    return {
        "apiVersion": "clusterregistry.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"cloudProvider": {"name": provider}},
    }


def events_of(server: Server, name: str) -> list[tuple[str, str, str]]:
    """The types, reasons and messages of the events of a cluster."""
    selector = quote(f"involvedObject.kind=Cluster,involvedObject.name={name}")
    items = server.get(f"/api/v1/namespaces/default/events?fieldSelector={selector}")["items"]
    return [(each["type"], each["reason"], each["message"]) for each in items]


def test_an_operator_handles_the_life_of_a_cluster(server: Server, operate: StartOperator) -> None:
    name = "of-defaults"
    server.create(CLUSTERS, cluster(f"{name}-early"))
    operator = operate()
    operator.expect("created", name=f"{name}-early", retry=1)

    server.create(CLUSTERS, cluster(name))
    operator.expect("created", name=name, retry=1)
    operator.expect("looked", name=name, times=2)
    wait_for(lambda: LAST_HANDLED in server.get(f"{CLUSTERS}/{name}")["metadata"]["annotations"], operator.logged)
    found = server.get(f"{CLUSTERS}/{name}")
    assert found["metadata"]["finalizers"] == [FINALIZER]
    assert found["status"]["conditions"] == [{"type": "OK", "status": "True"}]

    server.merge(f"{CLUSTERS}/{name}", {"spec": {"cloudProvider": {"name": "there"}}})
    operator.expect("updated", name=name, old="here", new="there")

    wait_for(lambda: bool(events_of(server, name)), operator.logged)
    assert events_of(server, name) == [("Normal", "Registered", f"{name} is registered")]

    for each in (name, f"{name}-early"):
        server.delete(f"{CLUSTERS}/{each}")
        operator.expect("deleted", name=each)
    wait_for(
        lambda: not server.has(f"{CLUSTERS}/{name}") and not server.has(f"{CLUSTERS}/{name}-early"), operator.logged
    )
    assert "Failed to post an event" not in operator.logged()
    assert operator.stop() == 0, operator.logged()


def test_what_an_operator_logs_becomes_events(server: Server, operate: StartOperator) -> None:
    operator = operate("--all-namespaces", "--standalone", post_logs=True)
    server.create(CLUSTERS, cluster("logged"))
    operator.expect("created", name="logged")
    expected = {
        ("Error", "Logging", "Handler 'register' failed temporarily: not at the first try"),
        ("Normal", "Registered", "logged is registered"),
        ("Normal", "Logging", "Handler 'register' succeeded."),
        ("Normal", "Logging", "Creation is processed: 1 succeeded; 0 failed."),
    }
    wait_for(lambda: expected <= {*events_of(server, "logged")}, operator.logged)
    server.delete(f"{CLUSTERS}/logged")
    operator.expect("deleted", name="logged")
    wait_for(lambda: not server.has(f"{CLUSTERS}/logged"), operator.logged)


def test_an_operator_serves_the_namespaces_that_fit(server: Server, operate: StartOperator) -> None:
    """Those that appear later, and not those that do not fit."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
    server.namespace_for("team-early")
    server.namespace_for("other")
    operator = operate("--namespace=team-*")
    for namespace in ("team-early", "other"):
        server.create(leases.format(namespace), {"metadata": {"name": "a"}})
    operator.expect("lease", namespace="team-early", name="a")
    server.namespace_for("team-late")
    server.create(leases.format("team-late"), {"metadata": {"name": "a"}})
    operator.expect("lease", namespace="team-late", name="a")
    server.delete(leases.format("team-late") + "/a")
    operator.expect("lease", type="DELETED", namespace="team-late")
    assert operator.seen("lease", namespace="other") == []


def test_an_operator_goes_on_after_a_restart_of_the_server(server: Server, operate: StartOperator) -> None:
    operator = operate("--all-namespaces")
    server.create(CLUSTERS, cluster("before"))
    operator.expect("created", name="before")
    server.restart()
    server.create(CLUSTERS, cluster("after"))
    operator.expect("created", name="after", retry=1)
    for name in ("before", "after"):
        server.delete(f"{CLUSTERS}/{name}")
        operator.expect("deleted", name=name)
    wait_for(lambda: not server.has(f"{CLUSTERS}/before") and not server.has(f"{CLUSTERS}/after"), operator.logged)
