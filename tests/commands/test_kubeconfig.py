"""Kubeconfigs of registered clusters, from a registry over TLS."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterregistry.api.clusterregistry.kubeconfigs import ORIGIN
from clusterregistry.cli import exit_status
from tests.commands.desks import Desk, context, kubeconfig
from tests.registry.agents.tokens import CLUSTERS
from tools import programs
from tools.simulator import Simulator

AWS = {"exec": "aws", "clusterName": "paris"}


def register(desk: Desk, name: str, *addresses: dict[str, str], env: str = "prod", **config: str) -> None:
    cluster: dict[str, Any] = {
        "apiVersion": "clusterregistry.k8s.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": {"env": env}},
        "spec": {"kubernetesApiEndpoints": {"serverEndpoints": list(addresses)}},
    }
    if config:
        cluster["spec"]["authInfo"] = {"providers": [{"name": "cloud", "config": config}]}
    desk.admin.post(CLUSTERS, cluster).expect(201)


def at(address: str, cidr: str = "") -> dict[str, str]:
    return {"serverAddress": address, **({"clientCIDR": cidr} if cidr else {})}


@pytest.fixture
def fleet(desk: Desk) -> Desk:
    """Two clusters in production, and a test cluster that only another network reaches."""
    register(desk, "paris", at("127.0.0.1:6443", "127.0.0.0/8"), at("paris.example.com"), **AWS)
    register(desk, "oslo", at("oslo.example.com"))
    register(desk, "lima", at("192.0.2.55", "192.0.2.55/32"), env="test")
    return desk


def contexts(document: dict[str, Any]) -> list[str]:
    return [each["name"] for each in document["contexts"]]


def entry(document: dict[str, Any], plural: str, name: str) -> dict[str, Any]:
    return next(dict(each[plural[:-1]]) for each in document[plural] if each["name"] == name)


def merged_file(desk: Desk, *words: str, file: Path) -> dict[str, Any]:
    outcome = desk.run("kubeconfig", *words, f"--merge-into={file}")
    assert outcome.status == exit_status.OK, outcome.err
    loaded: dict[str, Any] = yaml.safe_load(file.read_text())
    return loaded


def test_named_clusters_become_one_kubeconfig(fleet: Desk) -> None:
    outcome = fleet.run("kubeconfig", "oslo", "paris", "oslo")
    assert outcome.status == exit_status.OK, outcome.err
    document = yaml.safe_load(outcome.out)
    assert contexts(document) == ["oslo", "paris"]
    assert document["current-context"] == ""
    assert entry(document, "clusters", "paris")["server"] == "https://127.0.0.1:6443"
    assert entry(document, "users", "paris")["exec"]["command"] == "aws"
    alone = json.loads(fleet.run("kubeconfig", "oslo", "-o", "json").out)
    assert alone["current-context"] == "oslo"


def test_a_selection_is_made_of_one_list_and_is_the_same(fleet: Desk) -> None:
    document = json.loads(fleet.run("kubeconfig", "-l", "env=prod", "-o", "json").out)
    assert contexts(document) == ["oslo", "paris"]
    named = json.loads(fleet.run("kubeconfig", "oslo", "-o", "json").out)
    assert entry(document, "clusters", "oslo") == entry(named, "clusters", "oslo")
    assert entry(document, "users", "oslo") == entry(named, "users", "oslo")


@pytest.mark.parametrize("words", [("--all",), ("lima", "oslo", "paris")])
def test_a_cluster_without_an_address_does_not_stop_the_others(fleet: Desk, words: tuple[str, ...]) -> None:
    outcome = fleet.run("kubeconfig", *words, "-o", "json")
    assert outcome.status == exit_status.FOUND
    assert sorted(contexts(json.loads(outcome.out))) == ["oslo", "paris"]
    assert "Skipped: lima" in outcome.err
    assert "clientCIDR" in outcome.err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ((), exit_status.USAGE, "one of the three"),
        (("oslo", "--all"), exit_status.USAGE, "one of the three"),
        (("-l", "a in b"), exit_status.USAGE, "--selector"),
        (("oslo", "--out=a", "--merge-into=b"), exit_status.USAGE, "cannot be combined"),
        (("oslo", "missing"), exit_status.STARTUP, "kubectl get clusters"),
        (("lima",), exit_status.STARTUP, "no cluster has a kubeconfig for you"),
        (("-l", "env=none"), exit_status.STARTUP, "no cluster is selected"),
    ],
)
def test_what_cannot_be_made_is_said_with_a_remedy(
    fleet: Desk, words: tuple[str, ...], status: int, message: str
) -> None:
    outcome = fleet.run("kubeconfig", *words)
    assert (outcome.status, outcome.out) == (status, "")
    assert message in outcome.err


def test_a_new_file_is_for_its_owner_alone_and_is_not_overwritten(fleet: Desk) -> None:
    file = fleet.directory / "new" / "config"
    outcome = fleet.run("kubeconfig", "--selector=env=prod", f"--out={file}")
    assert outcome.status == exit_status.OK, outcome.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    again = fleet.run("kubeconfig", "oslo", f"--out={file}")
    assert again.status == exit_status.STARTUP
    assert "--merge-into" in again.err
    assert file.read_bytes() == before


def test_a_merge_keeps_what_others_have_in_the_file(fleet: Desk) -> None:
    own = kubeconfig(context("mine", user={"token": "t"})) | {
        "current-context": "mine",
        "preferences": {"colors": True},
    }
    file = fleet.write("config", own)
    file.chmod(0o644)
    document = merged_file(fleet, "paris", "oslo", file=file)
    assert contexts(document) == ["mine", "paris", "oslo"]
    assert document["current-context"] == "mine"
    assert document["preferences"] == {"colors": True}
    assert entry(document, "users", "u-mine") == {"token": "t"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    backup = file.with_name("config.backup")
    assert yaml.safe_load(backup.read_text()) == own
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


def test_a_merge_again_changes_nothing_and_follows_the_registry(fleet: Desk) -> None:
    file = fleet.directory / "config"
    merged_file(fleet, "paris", "oslo", file=file)
    assert not file.with_name("config.backup").exists()
    before = file.stat().st_mtime_ns
    report = json.loads(fleet.run("kubeconfig", "paris", "oslo", f"--merge-into={file}", "-o", "json").out)
    assert (report["unchanged"], report["backup"]) == (["paris", "oslo"], None)
    assert file.stat().st_mtime_ns == before
    spec = {"kubernetesApiEndpoints": {"serverEndpoints": [at("new.example.com")]}}
    fleet.admin.patch(f"{CLUSTERS}/oslo", {"spec": spec}).expect(200)
    report = json.loads(fleet.run("kubeconfig", "paris", "oslo", f"--merge-into={file}", "-o", "json").out)
    assert (report["changed"], report["unchanged"]) == (["oslo"], ["paris"])
    document = yaml.safe_load(file.read_text())
    assert entry(document, "clusters", "oslo")["server"] == "https://new.example.com:443"


def test_what_the_user_has_added_to_entries_stays(fleet: Desk) -> None:
    file = fleet.directory / "config"
    document = merged_file(fleet, "oslo", file=file)
    document["users"][0]["user"]["token"] = "own"
    document["contexts"][0]["context"]["namespace"] = "team"
    document["clusters"][0]["cluster"]["proxy-url"] = "http://proxy.example.com:3128"
    file.write_text(yaml.safe_dump(document))
    again = merged_file(fleet, "oslo", file=file)
    assert entry(again, "users", "oslo")["token"] == "own"
    assert entry(again, "contexts", "oslo")["namespace"] == "team"
    assert entry(again, "clusters", "oslo")["proxy-url"] == "http://proxy.example.com:3128"


def test_an_entry_of_others_with_the_name_is_never_replaced(fleet: Desk) -> None:
    own = kubeconfig(context("mine"))
    own["contexts"].append({"name": "oslo", "context": {"cluster": "c-mine", "user": ""}})
    file = fleet.write("config", own)
    before = file.read_bytes()
    outcome = fleet.run("kubeconfig", "oslo", f"--merge-into={file}")
    assert outcome.status == exit_status.STARTUP
    assert 'context "oslo"' in outcome.err
    assert "--name-prefix" in outcome.err
    assert file.read_bytes() == before
    assert {each.name for each in fleet.directory.iterdir()} == {"config"}
    document = merged_file(fleet, "oslo", "--name-prefix=reg-", file=file)
    assert contexts(document) == ["mine", "oslo", "reg-oslo"]
    assert entry(document, "contexts", "reg-oslo")["cluster"] == "reg-oslo"
    assert any(each["name"] == ORIGIN for each in entry(document, "users", "reg-oslo")["extensions"])


def test_a_file_that_is_no_kubeconfig_or_is_being_changed_stays(fleet: Desk) -> None:
    file = fleet.directory / "config"
    file.write_text("clusters: 5\n")
    outcome = fleet.run("kubeconfig", "oslo", f"--merge-into={file}")
    assert (outcome.status, file.read_text()) == (exit_status.STARTUP, "clusters: 5\n")
    file.write_text("{}\n")
    lock = file.with_name("config.lock")
    lock.touch()
    outcome = fleet.run("kubeconfig", "oslo", f"--merge-into={file}")
    assert outcome.status == exit_status.STARTUP
    assert "another program is changing" in outcome.err
    assert file.read_text() == "{}\n"


def test_clusters_of_a_kubeconfig_come_back_from_the_registry(desk: Desk) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "gke-gcloud-auth-plugin"}
    authority = {"certificate-authority-data": desk.authority}
    file = desk.write(
        "config", kubeconfig(*(context(f"c{number}", cluster=authority, user={"exec": plugin}) for number in range(5)))
    )
    desk.import_kubeconfig(file)
    document = json.loads(desk.run("kubeconfig", "--all", "-o", "json").out)
    assert contexts(document) == [f"c{number}" for number in range(5)]
    for number in range(5):
        cluster = entry(document, "clusters", f"c{number}")
        assert cluster["server"] == f"https://c{number}.example.com:6443"
        assert cluster["certificate-authority-data"] == desk.authority
        assert entry(document, "users", f"c{number}")["exec"]["command"] == plugin["command"]


async def test_kubectl_uses_a_merged_context_on_a_member(desk: Desk, tmp_path: Path) -> None:
    async with Simulator(1, directory=tmp_path / "certificates") as simulator:
        await asyncio.to_thread(use_member, desk, simulator, tmp_path / "config")


def use_member(desk: Desk, simulator: Simulator, file: Path) -> None:
    member = simulator.members[0]
    desk.admin.post(CLUSTERS, member.cluster()).expect(201)
    merged_file(desk, member.name, file=file)
    kubectl = [str(programs.fetch(programs.find("kubectl-1.36"))), f"--kubeconfig={file}"]

    def run(*words: str) -> str:
        done = subprocess.run(
            [*kubectl, *words],
            env={**os.environ, "HOME": str(file.parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("config", "set-credentials", member.name, f"--token={member.token}")
    merged_file(desk, member.name, file=file)
    assert json.loads(run("get", "--raw", "/api/v1/namespaces/kube-system"))["metadata"]["name"] == "kube-system"
