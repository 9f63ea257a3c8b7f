"""The real command with an audit log: with kubectl, with many writers at once, and when the disk is full."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.registry.main import main
from tests.apiserver.api.objects import CLUSTERS, cluster, path_of
from tests.apiserver.audit import trails
from tests.apiserver.server.programs import Program
from tools import programs

PATIENCE = 30.0
QUIET = {"level": "None", "nonResourceURLs": ["/readyz", "/metrics"]}
METADATA = {"level": "Metadata"}
WRITERS, WRITES = 16, 10


def eventually(happened: Callable[[], Any]) -> None:
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_sixteen_writers_at_once_are_all_in_the_log(tmp_path: Path) -> None:
    with Program(tmp_path, *trails.flags(tmp_path, QUIET, METADATA)) as program:

        def write(writer: int) -> list[str]:
            with program.client() as client:
                made = [client.post(CLUSTERS, cluster(f"c-{writer}-{number}")) for number in range(WRITES)]
            assert {answer.status for answer in made} == {201}
            return [answer.header("audit-id") or "" for answer in made]

        with ThreadPoolExecutor(WRITERS) as pool:
            ids = [each for some in pool.map(write, range(WRITERS)) for each in some]
        assert program.stop() == 0
    events = trails.events(tmp_path)
    assert Counter((event["auditID"], event["stage"]) for event in events) == Counter(
        (each, stage) for each in ids for stage in ("RequestReceived", "ResponseComplete")
    )
    names = {event["objectRef"]["name"] for event in events if event["stage"] == "ResponseComplete"}
    assert names == {f"c-{writer}-{number}" for writer in range(WRITERS) for number in range(WRITES)}


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the kubectl programs are for linux/amd64"
)
def test_what_kubectl_does_is_in_the_log(tmp_path: Path) -> None:
    kubectl = programs.fetch(programs.find("kubectl-1.36"))
    rules = (QUIET, {"level": "RequestResponse", "resources": [{"group": "clusterregistry.k8s.io"}]})
    with Program(tmp_path, *trails.flags(tmp_path, *rules, omitManagedFields=True)) as program:
        (tmp_path / "a.json").write_text(json.dumps(cluster("a")))

        def run(*arguments: str) -> None:
            command = [str(kubectl), "--kubeconfig", str(program.data / "admin.kubeconfig"), *arguments]
            environ = {**os.environ, "HOME": str(tmp_path)}
            subprocess.run(command, check=True, timeout=60, env=environ, stdout=subprocess.DEVNULL)

        run("apply", "--server-side", "-f", str(tmp_path / "a.json"))
        run("label", "clusters", "a", "b=c")
        run("get", "clusters")
        run("delete", "clusters", "a", "--wait=false")
        assert program.stop() == 0
    done = [event for event in trails.events(tmp_path) if event["stage"] == "ResponseComplete"]
    verbs = [event["verb"] for event in done]
    assert [verb for verb in verbs if verb != "get"] == ["patch", "patch", "list", "delete"]
    assert {event["user"]["username"] for event in done} == {"admin"}
    assert all(event["userAgent"].startswith("kubectl/v1.36") for event in done)
    applied = next(event for event in done if event["verb"] == "patch")
    assert applied["requestObject"]["metadata"]["name"] == applied["objectRef"]["name"] == "a"
    assert applied["responseObject"]["kind"] == "Cluster"
    assert "managedFields" not in applied["responseObject"]["metadata"]
    assert applied["sourceIPs"] == ["127.0.0.1"]


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="the kubectl programs are for linux/amd64"
)
def test_one_flag_records_who_changed_what(tmp_path: Path) -> None:
    kubectl = programs.fetch(programs.find("kubectl-1.36"))
    program = Program(tmp_path, "--audit-log-path", str(tmp_path / "audit.log"))
    (tmp_path / "tokens.csv").chmod(0o600)
    with program:
        (tmp_path / "a.json").write_text(json.dumps(cluster("a")))

        def run(*arguments: str) -> int:
            command = [str(kubectl), "--kubeconfig", str(program.data / "admin.kubeconfig"), *arguments]
            environ = {**os.environ, "HOME": str(tmp_path)}
            silent = subprocess.DEVNULL
            return subprocess.run(
                command, check=False, timeout=60, env=environ, stdout=silent, stderr=silent
            ).returncode

        assert run("create", "-f", str(tmp_path / "a.json")) == 0
        assert run("get", "clusters") == 0
        assert run("auth", "can-i", "get", "clusters") == 0
        assert run("label", "clusters", "a", "b=c") == 0
        assert run("delete", "clusters", "a", "--as=jane") == 1
        with program.client() as client:
            headers = [("Authorization", "Bearer stolen")]
            assert client.exchange("DELETE", path_of("a"), headers=headers, body=b"").status == 401
            assert client.get("/metrics").status == 200
        assert program.stop() == 0
    assert [
        (event["stage"], event["level"], event["user"].get("username"), event["verb"], event["responseStatus"]["code"])
        for event in trails.events(tmp_path)
    ] == [
        ("ResponseComplete", "Metadata", "admin", "create", 201),
        ("ResponseComplete", "Metadata", "admin", "patch", 200),
        ("ResponseComplete", "Metadata", "admin", "delete", 403),
        ("ResponseStarted", "Metadata", None, "delete", 401),
    ]
    warnings = [line for line in program.logged().splitlines() if "WARNING" in line]
    assert ["refused a bearer token" in line for line in warnings] == [True]  # the one above, and none about the log


def test_a_full_disk_stops_no_request_and_the_log_goes_on_when_there_is_room(tmp_path: Path) -> None:
    log, size = tmp_path / "audit.log", 1024 * 1024
    log.write_bytes(b"\n" * size)
    with Program(tmp_path, *trails.flags(tmp_path, QUIET, METADATA), "--audit-log-maxsize=0") as program:
        _, hard = resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (size + 100, hard))
        with program.client() as client:
            statuses = [client.get(path_of("absent")).status for _ in range(50)]
            eventually(lambda: "apiserver_audit_failed_writes_total 0.0" not in client.get("/metrics").body.decode())
            assert log.stat().st_size == size
            statuses += [client.get(path_of("absent")).status for _ in range(50)]
            assert set(statuses) == {404}
            assert 'apiserver_audit_error_total{plugin="log"} 0.0' in client.get("/metrics").body.decode()
            resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
            eventually(lambda: log.read_bytes().count(b"ResponseComplete") == len(statuses))
        assert program.stop() == 0
    lines = [json.loads(line) for line in log.read_text().splitlines() if line]
    assert len(lines) == 2 * len(statuses)
    assert program.logged().count("the audit log cannot be written") == 1
    assert program.logged().count("the audit log is written again") == 1


def test_the_log_may_be_standard_output(tmp_path: Path) -> None:
    policy = trails.policy_file(tmp_path, QUIET, METADATA)
    with Program(tmp_path, f"--audit-policy-file={policy}", "--audit-log-path=-") as program:
        with program.client() as client:
            client.get("/version")
        assert program.stop() == 0
    events = [json.loads(line) for line in program.logged().splitlines() if line.startswith("{")]
    assert [event["stage"] for event in events] == ["RequestReceived", "ResponseComplete"]


def refused(capsys: pytest.CaptureFixture[str], directory: Path, *flags: str) -> str:
    """What a server says that does not start."""
    port = Program(directory / "port").port
    assert main(["standalone", f"--data-dir={directory / 'data'}", f"--secure-port={port}", *flags], {}) == 3
    assert not (directory / "data").exists()
    return capsys.readouterr().err


def test_a_policy_with_mistakes_starts_no_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, tmp_path, *trails.flags(tmp_path, {"level": "Some"}, {"levels": "None"}))
    assert "policy.yaml: 3 mistakes:" in said
    assert "rules[0].level: must be one of None, Metadata, Request, RequestResponse" in said
    assert "rules[1].levels: there is no such field" in said
    assert "What to do: correct the file that --audit-policy-file names" in said


def test_a_log_that_cannot_be_written_starts_no_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = trails.policy_file(tmp_path, METADATA)
    said = refused(capsys, tmp_path, f"--audit-policy-file={policy}", f"--audit-log-path={policy}/audit.log")
    assert f"{policy}/audit.log cannot be written" in said
    assert "or give another --audit-log-path" in said
