"""The etcd servers of the tests are what they say: otherwise a test of an engine over them shows nothing."""

import json
from pathlib import Path

import pytest

from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster, Settings

pytestmark = NEEDS_ETCD


def revision(etcd: EtcdCluster) -> int:
    answer = json.loads(etcd.etcdctl("get", "absent", "--write-out=json"))
    found: int = answer["header"]["revision"]
    return found


def test_an_empty_etcd_is_at_revision_one_and_counts_writes(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path) as etcd:
        assert revision(etcd) == 1
        etcd.etcdctl("put", "a", "1")
        assert revision(etcd) == 2


def test_a_killed_member_comes_back_with_its_data_on_the_same_address(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path) as etcd:
        (member,) = etcd.members
        etcd.etcdctl("put", "a", "1")
        member.kill()
        assert not member.running
        assert not member.healthy()
        member.start()
        assert etcd.etcdctl("get", "a", "--print-value-only") == "1\n"


def test_nothing_runs_after_the_end_not_even_what_is_paused(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path) as etcd:
        (member,) = etcd.members
        member.pause()
        assert not member.healthy()
        member.resume()
        member.wait_until_healthy()
        member.pause()
    assert not member.running


def test_a_cluster_elects_another_leader_and_serves_without_the_first(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, Settings(members=3)) as etcd:
        first = etcd.leader()
        assert etcd.follower() is not first
        first.kill()
        second = etcd.leader()
        assert second is not first
        etcd.etcdctl("put", "a", "1")
        first.start()
        assert etcd.etcdctl("get", "a", "--print-value-only") == "1\n"


def test_a_client_certificate_is_asked_for(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, Settings(client_certificates=True)) as etcd:
        assert [endpoint.split(":")[0] for endpoint in etcd.endpoints] == ["https"]
        assert etcd.access.certificate is not None
        etcd.etcdctl("put", "a", "1")
        etcd._root = etcd._root.without_certificate()
        with pytest.raises(AssertionError, match="get a"):
            etcd.etcdctl("--command-timeout=1s", "get", "a")


def test_tls_alone_asks_for_no_certificate(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, Settings(tls=True)) as etcd:
        assert etcd.access.certificate is None
        etcd.etcdctl("put", "a", "1")


def test_a_user_is_held_to_the_password_and_the_prefix(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, Settings(user="registry")) as etcd:
        etcd.etcdctl("put", "/other", "1")
        etcd.end()
        etcd.start()
        etcd._root = etcd.access
        etcd.etcdctl("put", "/registry/a", "1")
        with pytest.raises(AssertionError, match="permission denied"):
            etcd.etcdctl("get", "/other")
        etcd._root = etcd.access.as_user("registry", "wrong")
        with pytest.raises(AssertionError, match="invalid user ID or password"):
            etcd.etcdctl("get", "/registry/a")


def test_above_its_quota_etcd_takes_no_more(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, Settings(quota_bytes=200_000)) as etcd:
        for _ in range(200):
            try:
                etcd.etcdctl("put", "a", "x" * 100_000)
            except AssertionError as refused:
                assert "database space exceeded" in str(refused)  # noqa: PT017 - which of the writes is etcd's affair
                return
        pytest.fail("the quota does not hold")
