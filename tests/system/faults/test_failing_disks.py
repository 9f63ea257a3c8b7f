"""A disk that reports errors: what was written then is neither promised nor denied until it is certain."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.api.clients import Client
from tests.apiserver.api.objects import CLUSTERS, cluster, names, path_of
from tests.apiserver.server.programs import Program
from tests.system.faults.disks import NEEDS_COMPILER, FailingDisk

pytestmark = NEEDS_COMPILER


@pytest.fixture
def disk(tmp_path: Path) -> FailingDisk:
    return FailingDisk(tmp_path / "disk")


@pytest.fixture
def program(tmp_path: Path, disk: FailingDisk) -> Iterator[Program]:
    with Program(tmp_path, environment=disk.environment) as started:
        yield started


@pytest.fixture
def client(program: Program) -> Iterator[Client]:
    with program.client() as client:
        client.post(CLUSTERS, cluster("before")).expect(201)
        yield client


def kill(program: Program) -> None:
    program.signal(signal.SIGKILL)
    program.wait()


def test_a_write_whose_sync_failed_is_not_known_and_nothing_is_served_as_certain(
    disk: FailingDisk, client: Client
) -> None:
    disk.fail()
    refused = client.post(CLUSTERS, cluster("unclear")).refused(503, "ServiceUnavailable")
    assert "it is not known whether this write was done" in refused["message"]
    # Neither that it is there, nor that it is not, nor what else is there.
    asked = (path_of("unclear"), path_of("before"), CLUSTERS, f"{CLUSTERS}?labelSelector=a=b", f"{CLUSTERS}?limit=1")
    for path in asked:
        answer = client.get(path).refused(503, "ServiceUnavailable")
        assert "not known" in answer["message"], path
    assert client.get("/readyz").status == 500
    # As with an etcd without a majority: reads from the cache of this server are answered.
    assert names(client.get(CLUSTERS, resourceVersion="0").expect(200)) == ["before"]
    assert client.get(path_of("before"), resourceVersion="0").status == 200
    disk.repair()
    assert names(client.get(CLUSTERS).expect(200)) == ["before"]


def test_when_the_disk_is_mended_the_failed_write_is_gone_for_good(
    program: Program, disk: FailingDisk, client: Client
) -> None:
    disk.fail()
    client.post(CLUSTERS, cluster("unclear")).refused(503, "ServiceUnavailable")
    disk.repair()
    client.get(path_of("unclear")).refused(404, "NotFound")
    assert client.get("/readyz").status == 200
    kill(program)
    with program.start().client() as again:
        assert names(again.get(CLUSTERS).expect(200)) == ["before"]


def test_a_write_goes_over_a_failed_one_and_makes_everything_certain(
    program: Program, disk: FailingDisk, client: Client
) -> None:
    disk.fail()
    client.post(CLUSTERS, cluster("unclear")).refused(503, "ServiceUnavailable")
    disk.repair()
    client.post(CLUSTERS, cluster("after")).expect(201)
    kill(program)
    with program.start().client() as again:
        assert names(again.get(CLUSTERS).expect(200)) == ["after", "before"]


def test_a_sync_that_fails_once_is_gone_over_before_the_answer(
    program: Program, disk: FailingDisk, client: Client
) -> None:
    disk.fail_once()
    refused = client.post(CLUSTERS, cluster("refused")).refused(503, "ServiceUnavailable")
    assert disk.has_failed
    assert "nothing was written" in refused["message"]
    kill(program)
    with program.start().client() as again:
        assert names(again.get(CLUSTERS).expect(200)) == ["before"]


def test_what_a_crash_left_is_not_served_before_the_disk_has_it(
    program: Program, disk: FailingDisk, client: Client
) -> None:
    disk.fail()
    client.post(CLUSTERS, cluster("unclear")).refused(503, "ServiceUnavailable")
    kill(program)
    with pytest.raises(AssertionError, match="the server ended with 3"):
        program.start()
    assert "the disk reports an error" in program.logged()
    disk.repair()
    with program.start().client() as again:
        assert "before" in names(again.get(CLUSTERS).expect(200))
