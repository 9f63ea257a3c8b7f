"""``clusterregistry access check`` as people call it: simulated members, clusters of a file and of a real registry."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterregistry.registry.main import main
from tests.controllers.access.samples import cluster, jwt_until, rule, write_rules
from tools import exchanges, live_server
from tools.live_server import LiveServer
from tools.simulator import Fault, Simulator

TIMEOUT = "--timeout=60s"
Run = Callable[..., tuple[int, str, str]]


class Running:
    """Simulated members on a loop of their own: a command has one, too."""

    def __init__(self, directory: Path) -> None:
        self.simulator = Simulator(3, directory=directory / "certificates")
        self.simulator.write_registry(directory)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.simulator.__aenter__(), self._loop).result()

    def set_fault(self, number: int, fault: Fault) -> None:
        async def set_it() -> None:
            self.simulator[number].fault = fault

        asyncio.run_coroutine_threadsafe(set_it(), self._loop).result()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.simulator.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    running.start()
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(running.stop)
        yield running


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    def run(*arguments: str, environ: dict[str, str] | None = None) -> tuple[int, str, str]:
        given = ["access", "check", f"--access-config={tmp_path}/access.yaml", TIMEOUT, *arguments]
        status = main(given, environ or {"HOME": str(tmp_path)})
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def from_file(check: Run, tmp_path: Path) -> Run:
    return lambda *arguments: check(f"--cluster-file={tmp_path}/clusters.yaml", *arguments)


def test_a_table_of_all_clusters(members: Running, from_file: Run) -> None:
    status, printed, said = from_file()
    assert status == 0
    assert said.endswith("3 clusters tried, none with a problem.\n")
    heading, *rows = printed.splitlines()
    assert heading.split() == ["NAME", "RULE", "EXPIRES", "TLS", "CREDENTIAL", "VERSION", "RESULT"]
    assert [row.split()[0] for row in rows] == ["sim-00000", "sim-00001", "sim-00002"]
    assert all("rule 1 (file)" in row and "accepted" in row and row.endswith("OK") for row in rows)
    assert not any(member.token in printed for member in members.simulator.members)


def test_one_cluster_or_some(members: Running, from_file: Run) -> None:
    assert len(from_file("sim-00001")[1].splitlines()) == 2
    assert len(from_file("-l", "env=prod")[1].splitlines()) == 2
    assert "no cluster to try" in from_file("-l", "env=none")[2]
    status, _, said = from_file("unknown")
    assert status == 3
    assert 'no cluster "unknown"' in said
    assert members.simulator[0].request_count == 4  # of one check with four requests


def test_clusters_with_an_agent_are_left_to_it(check: Run, tmp_path: Path) -> None:
    write_rules(tmp_path / "access.yaml", rule({"none": {}}))
    observed = cluster("edge")
    observed["metadata"]["annotations"] = {"clusterregistry.k8s.io/observer": "agent"}
    (tmp_path / "edge.yaml").write_text(yaml.safe_dump(observed))
    flag = f"--cluster-file={tmp_path}/edge.yaml"
    assert check(flag) == (0, "", "There is no cluster to try. 1 cluster not tried: observed by an agent.\n")
    status, printed, said = check(flag, "edge")
    assert status == 1
    assert "NoEndpoint" in printed
    assert said == "1 cluster tried, 1 with a problem.\n"


FAULTS = [
    (Fault.UNAUTHORIZED, "Unauthorized", True, True, False),
    (Fault.OTHER_CA, "TLSUntrusted", True, False, None),
    (Fault.REFUSED, "ConnectionRefused", False, None, None),
    (Fault.REDIRECT, "BadResponse", True, True, None),
]


@pytest.mark.parametrize(("fault", "reason", "reachable", "tls", "accepted"), FAULTS, ids=[each[0] for each in FAULTS])
def test_what_can_be_wrong(  # noqa: PLR0913 - a row of the table
    members: Running,
    from_file: Run,
    *,
    fault: Fault,
    reason: str,
    reachable: bool,
    tls: bool | None,
    accepted: bool | None,
) -> None:
    members.set_fault(1, fault)
    status, printed, _ = from_file("-o", "json")
    assert status == 1
    wrong = json.loads(printed)["items"][1]
    assert (wrong["ok"], wrong["reason"], wrong["rule"]) == (False, reason, "rule 1 (file)")
    assert (wrong["reachable"], wrong["tlsVerified"], wrong["credentialAccepted"]) == (reachable, tls, accepted)
    assert [each["ok"] for each in json.loads(printed)["items"]] == [True, False, True]


def test_missing_rights_are_named(members: Running, from_file: Run) -> None:
    members.set_fault(0, Fault.FORBIDDEN)
    status, printed, _ = from_file("sim-00000", "-o", "yaml")
    (wrong,) = yaml.safe_load(printed)["items"]
    assert status == 1
    assert "list nodes" in wrong["missingRights"]
    assert "the credential must be allowed to" in from_file("sim-00000")[1]


def test_no_rule_no_credential_and_an_expired_one(check: Run, tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "old.token").write_text(jwt_until(1_700_000_000))
    endpoints = {"serverEndpoints": [{"serverAddress": "127.0.0.1:1"}]}
    clusters = [cluster(name, config={}, kubernetesApiEndpoints=endpoints) for name in ("old", "new")]
    clusters.append(cluster("other", kubernetesApiEndpoints=endpoints))
    (tmp_path / "list.json").write_text(json.dumps({"kind": "List", "items": clusters}))
    write_rules(tmp_path / "access.yaml", rule({"file": {"directory": "keys"}}, provider="corp"))
    status, printed, _ = check(f"--cluster-file={tmp_path}/list.json")
    _, old, new, other = printed.splitlines()
    assert status == 1
    assert "CredentialExpired: rule 1 (file): the credential ended at 2023-11-14T22:13:20Z" in old
    assert "CredentialMissing: rule 1 (file): its folder has neither new.token" in new
    assert "none" in other
    assert "no rule of access.yaml matches" in other


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a", "b"], "b"),
        (["a", "-l", "x=y"], "cannot be combined with a NAME"),
        (["-l", "x in"], "--selector"),
        (["--concurrency=0"], "--concurrency"),
        (["--cluster-file=a", "--kubeconfig=b"], "cannot be combined with --kubeconfig"),
        (["-o", "xml"], "not one of table, json, yaml"),
    ],
)
def test_usage(check: Run, arguments: list[str], said: str) -> None:
    status, _, complaint = check(*arguments)
    assert status == 2
    assert said in complaint


def test_the_access_config_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["access", "check"], {}) == 2
    assert "--access-config: is required" in capsys.readouterr().err


def test_what_cannot_be_done(check: Run, tmp_path: Path) -> None:
    (tmp_path / "access.yaml").write_text("kind: X\n")
    status, _, said = check("--cluster-file=missing")
    assert status == 3
    assert "has 3 mistakes" in said
    write_rules(tmp_path / "access.yaml", rule({"none": {}}))
    assert check("--cluster-file=missing")[0] == 3
    assert "name another kubeconfig with --kubeconfig" in check()[2]
    for content in ("kind: Pod\n", "a: [", "--- \n- 1\n"):
        (tmp_path / "odd.yaml").write_text(content)
        assert check(f"--cluster-file={tmp_path}/odd.yaml")[0] == 3


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with live_server.running(tmp_path_factory.mktemp("registry")) as server:
        yield server


@pytest.mark.usefixtures("members")
def test_the_clusters_of_a_registry(check: Run, registry: LiveServer, tmp_path: Path) -> None:
    access = exchanges.access(registry.url, ca_file=registry.ca_file, token=live_server.ADMIN_TOKEN)
    documents: list[Any] = list(yaml.safe_load_all((tmp_path / "clusters.yaml").read_text()))
    for document in documents:
        path = "/apis/clusterregistry.k8s.io/v1beta1/clusters"
        assert exchanges.send(access, "POST", path, document, content_type="application/json").status == 201
    status, printed, _ = check(f"--kubeconfig={registry.kubeconfig}", "-o", "json", "--concurrency=2")
    assert status == 0, printed
    assert [each["name"] for each in json.loads(printed)["items"]] == ["sim-00000", "sim-00001", "sim-00002"]
    environ = {"KUBECONFIG": str(registry.kubeconfig)}
    assert check("sim-00002", environ=environ)[0] == 0
    assert len(check("-l", "env=prod", environ=environ)[1].splitlines()) == 2
    status, _, said = check("unknown", environ=environ)
    assert status == 3
    assert 'no cluster "unknown"' in said
