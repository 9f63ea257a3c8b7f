"""Objects, versions and certificates outlive the process."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.apiserver.api.objects import CLUSTERS, HOLD, cluster, names, path_of
from tests.apiserver.server.programs import Program


def test_objects_and_versions_outlive_the_process(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        with program.client() as client:
            client.post(CLUSTERS, cluster("a", labels={"x": "1"})).expect(201)
            client.patch(path_of("a") + "/status", {"status": {"nodes": {"total": 3}}}).expect(200)
            client.post(CLUSTERS, cluster("held", finalizers=[HOLD])).expect(201)
            client.delete(path_of("held")).expect(200)
            client.post(CLUSTERS, cluster("gone")).expect(201)
            client.delete(path_of("gone")).expect(200)
            before = client.get(CLUSTERS).expect(200)
        assert program.stop() == 0
        with program.start().client() as client:
            assert client.get(CLUSTERS).expect(200) == before
            following = client.post(CLUSTERS, cluster("b")).expect(201)["metadata"]["resourceVersion"]
            assert int(following) == int(before["metadata"]["resourceVersion"]) + 1


def test_a_watch_resumes_from_before_the_restart(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        with program.client() as client:
            start = client.post(CLUSTERS, cluster("a")).expect(201)["metadata"]["resourceVersion"]
            changed = client.put(path_of("a"), cluster("a", "gce")).expect(200)
            client.delete(path_of("a")).expect(200)
        program.stop()
        with program.start().client() as client:
            client.post(CLUSTERS, cluster("b")).expect(201)
            with client.watch(CLUSTERS, resourceVersion=start) as watch:
                events = watch.take(3)
        assert [event["type"] for event in events] == ["MODIFIED", "DELETED", "ADDED"]
        assert events[0]["object"] == changed


def test_pages_go_on_after_a_restart(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        with program.client() as client:
            for name in "abc":
                client.post(CLUSTERS, cluster(name)).expect(201)
            token = client.get(CLUSTERS, limit=1).expect(200)["metadata"]["continue"]
            client.delete(path_of("c")).expect(200)
        program.stop()
        with program.start().client() as client:
            assert names(client.get(CLUSTERS, **{"continue": token}).expect(200)) == ["b", "c"]


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        with program.client() as client:
            for index in range(20):
                client.post(CLUSTERS, cluster(f"n{index:02}")).expect(201)
            program.signal(signal.SIGKILL)
            program.wait()
        with program.start().client() as client:
            assert names(client.get(CLUSTERS).expect(200)) == [f"n{index:02}" for index in range(20)]


def test_certificates_and_kubeconfig_stay_the_same(tmp_path: Path) -> None:
    with Program(tmp_path) as program:
        made = [program.data / "ca.crt", program.data / "admin.kubeconfig", program.data / "certs" / "serving.crt"]
        before = [path.read_bytes() for path in made]
        program.stop()
        program.start()
        assert [path.read_bytes() for path in made] == before


def test_a_second_server_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with Program(tmp_path / "one") as first:
        second = Program(tmp_path / "two")
        second.data = first.data
        with pytest.raises(AssertionError, match="the server ended with 3"):
            second.start()
        with first.client() as client:
            client.get(CLUSTERS).expect(200)
