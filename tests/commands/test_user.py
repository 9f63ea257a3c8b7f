"""Users with client certificates, made by the commands on a registry over TLS."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterregistry.apimachinery.meta import times
from clusterregistry.cli import exit_status
from tests.apiserver.api.clients import PATIENCE
from tests.apiserver.api.group_objects import give
from tests.apiserver.api.rbac_objects import BINDINGS, binding, rule
from tests.commands.desks import Desk
from tools import programs

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CSR = "certificates.k8s.io"


@pytest.fixture
def desk_without_users(desk: Desk) -> Iterator[Desk]:
    """The server is that of other tests too."""
    yield desk
    for request in desk.admin.get(REQUESTS).expect(200)["items"]:
        desk.admin.delete(f"{REQUESTS}/{request['metadata']['name']}")
    give(desk.admin, "nobody")


def create(desk: Desk, *words: str) -> Path:
    file = desk.directory / "jane.kubeconfig"
    outcome = desk.run("user", "create", "jane", f"--out={file}", *words)
    assert outcome.status == exit_status.OK, outcome.err
    return file


def requests(desk: Desk) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = desk.admin.get(REQUESTS).expect(200)["items"]
    return listed


def as_nobody(desk: Desk) -> Path:
    """A kubeconfig of a user who may do nothing yet."""
    config = yaml.safe_load((desk.program.data / "admin.kubeconfig").read_text())
    config["users"][0]["user"] = {"token": "nobodytoken"}
    return desk.write("nobody.kubeconfig", config)


def kubectl(desk: Desk, file: Path, *words: str) -> subprocess.CompletedProcess[str]:
    program = str(programs.fetch(programs.find("kubectl-1.36")))
    environ = {**os.environ, "HOME": str(desk.directory)}
    return subprocess.run(
        [program, f"--kubeconfig={file}", *words], env=environ, capture_output=True, text=True, check=False
    )


def test_a_user_signs_in_and_has_the_rights_of_its_groups(desk_without_users: Desk) -> None:
    desk = desk_without_users
    file = create(desk, "--group=readers", "--group=team-a", "--days=7")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    who = json.loads(kubectl(desk, file, "auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]
    assert who["username"] == "jane"
    assert {"readers", "team-a"} <= set(who["groups"])
    assert kubectl(desk, file, "get", "clusters").returncode != 0
    desk.admin.post(BINDINGS, binding("readers", "view", Group="readers")).expect(201)
    try:
        assert kubectl(desk, file, "get", "clusters").returncode == 0
        assert "forbidden" in kubectl(desk, file, "delete", "cluster", "x").stderr.lower()
    finally:
        desk.admin.delete(f"{BINDINGS}/readers")


def test_the_list_has_users_and_the_end_of_their_certificates(desk_without_users: Desk) -> None:
    desk = desk_without_users
    create(desk, "--group=readers", "--days=7")
    found = json.loads(desk.run("user", "list", "-o", "json").out)["items"]
    assert [(each["user"], each["groups"], each["state"]) for each in found] == [("jane", ["readers"], "Issued")]
    left = times.parse(found[0]["expires"]).timestamp() - time.time()
    assert 6 * 86400 < left <= 7 * 86400
    table = desk.run("user", "list").out.splitlines()
    assert table[0].split() == ["USER", "GROUPS", "STATE", "EXPIRES", "REQUEST", "REQUESTED", "BY"]
    assert table[1].split()[:3] == ["jane", "readers", "Issued"]


def test_no_users_are_said_to_be_none(desk_without_users: Desk) -> None:
    outcome = desk_without_users.run("user", "list")
    assert (outcome.status, outcome.out) == (exit_status.OK, "")
    assert "no requests" in outcome.err


def test_a_file_that_is_there_stays_and_nothing_is_requested(desk_without_users: Desk) -> None:
    desk = desk_without_users
    file = desk.directory / "jane.kubeconfig"
    file.write_text("mine")
    outcome = desk.run("user", "create", "jane", f"--out={file}")
    assert outcome.status == exit_status.STARTUP
    assert "already" in outcome.err
    assert file.read_text() == "mine"
    outcome = desk.run("user", "create", "jane", f"--out={desk.directory}/no/folder")
    assert outcome.status == exit_status.STARTUP
    assert not requests(desk)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("jane", "--days=0"), "--days"),
        (("jane", "--days=366"), "--days"),
        (("jane", "--group=a\tb"), "--group"),
        (("a\nb",), "printable"),
        ((), "name the user"),
    ],
)
def test_mistakes_in_the_command_line_are_named(desk: Desk, words: tuple[str, ...], message: str) -> None:
    outcome = desk.run("user", "create", *words)
    assert outcome.status == exit_status.USAGE
    assert message in outcome.err


def test_no_administrator_is_made(desk_without_users: Desk) -> None:
    desk = desk_without_users
    file = desk.directory / "root.kubeconfig"
    outcome = desk.run("user", "create", "root", "--group=system:masters", f"--out={file}")
    assert outcome.status == exit_status.STARTUP
    assert "system:masters" in outcome.err
    assert not file.exists()


def test_who_may_not_approve_is_told_who_may(desk_without_users: Desk) -> None:
    desk = desk_without_users
    nobody, file = as_nobody(desk), desk.directory / "jane.kubeconfig"
    words = ("user", "create", "jane", f"--out={file}", f"--kubeconfig={nobody}")
    outcome = desk.run(*words)
    assert outcome.status == exit_status.STARTUP
    assert "create, get and list certificatesigningrequests" in outcome.err
    resource = "certificatesigningrequests"
    give(desk.admin, "nobody", rule("create", "get", "delete", resource=resource, group=CSR))
    outcome = desk.run(*words)
    assert outcome.status == exit_status.STARTUP
    assert "--wait=1h" in outcome.err
    assert not requests(desk)
    assert not file.exists()


def test_an_approval_by_another_user_is_waited_for(desk_without_users: Desk) -> None:
    desk = desk_without_users
    nobody = as_nobody(desk)
    give(desk.admin, "nobody", rule("create", "get", resource="certificatesigningrequests", group=CSR))
    problems: list[str] = []

    def approve() -> None:
        config, limit = desk.program.data / "admin.kubeconfig", time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            done = kubectl(desk, config, "get", "csr", "-o", "name")
            if name := done.stdout.strip():
                problems.append(kubectl(desk, config, "certificate", "approve", name.partition("/")[2]).stderr)
                return
            time.sleep(0.1)

    approving = threading.Thread(target=approve)
    approving.start()
    try:
        file = create(desk, f"--kubeconfig={nobody}", f"--wait={int(PATIENCE)}s")
    finally:
        approving.join()
    assert problems == [""]
    assert (
        json.loads(kubectl(desk, file, "auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]["username"]
        == "jane"
    )


def test_a_wait_that_is_over_leaves_no_file(desk_without_users: Desk) -> None:
    desk = desk_without_users
    nobody, file = as_nobody(desk), desk.directory / "jane.kubeconfig"
    give(desk.admin, "nobody", rule("create", "get", resource="certificatesigningrequests", group=CSR))
    outcome = desk.run("user", "create", "jane", f"--out={file}", f"--kubeconfig={nobody}", "--wait=1s")
    assert outcome.status == exit_status.STARTUP
    assert "was not signed within 1 s" in outcome.err
    assert not file.exists()
    assert not list(desk.directory.glob(".jane*"))
