"""Agents in real members: what `join` writes is applied by kubectl, and its rights are enough, and not more."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clusterregistry.agent import identity
from clusterregistry.agent.manifest import NAME, NAMESPACE, SECRET, SECRET_KEY
from clusterregistry.agent.renewal import SecretPlace
from clusterregistry.client.certificate_request import validity
from clusterregistry.client.rest import Client
from tests.agent.sites import Site
from tests.apiserver.server.programs import Program
from tests.system.e2e.real_programs import kubectl
from tests.system.members.members import Member, Members
from tools import exchanges
from tools.processes import PATIENCE, wait_for

pytestmark = pytest.mark.e2e

Output = pytest.CaptureFixture[str]
_SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"


@pytest.fixture
def member(members: Members) -> Iterator[Member]:
    chosen = members[0]
    yield chosen
    chosen.admin.delete(f"/api/v1/namespaces/{NAMESPACE}")
    wait_for(lambda: chosen.admin.get(f"/api/v1/namespaces/{NAMESPACE}") is None, chosen.controller_manager.log_end)


@pytest.fixture
def site(program: Program, tmp_path: Path) -> Iterator[Site]:
    with Site(program, None, tmp_path) as made:
        yield made


def joined(site: Site, member: Member, capsys: Output) -> Path:
    """Joins with an administrator's kubeconfig of the member, and applies the manifest; returns the directory."""
    token = site.new_token(capsys, "edge")["token"]
    out, admin = site.directory / "out", member.kubeconfig(site.directory / "member.kubeconfig")
    words = site.join_arguments(token, f"--out={out}", f"--member-kubeconfig={admin}", "--certificate-duration=24h")
    assert site.run(*words) == 0, capsys.readouterr().err
    done = subprocess.run(
        [kubectl("1.36"), f"--kubeconfig={admin}", "apply", f"--filename={out / 'agent.yaml'}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={"HOME": str(site.directory)},
    )
    assert done.returncode == 0, done.stderr
    assert "would violate PodSecurity" not in done.stderr
    return out


def account_token(member: Member) -> str:
    """A token of the agent's service account, as its pod gets one."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    return str(member.create(path, asked)["status"]["token"])


def test_an_agent_observes_its_member_with_the_rights_of_its_manifest(
    site: Site, member: Member, capsys: Output
) -> None:
    out = joined(site, member, capsys)
    uid = (member.admin.get("/api/v1/namespaces/kube-system") or {})["metadata"]["uid"]
    assert site.cluster("edge")["spec"]["clusterID"] == uid
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    wait_for(lambda: bool(member.admin.items(pods)), member.controller_manager.log_end)
    inside = member.kubeconfig(site.directory / "account.kubeconfig", token=account_token(member))
    agent = site.agent_with(out, inside)
    status = site.wait_for_status("edge", lambda status: status.get("state") == "Ready", agent=agent)
    assert status["nodes"] == {"total": 2, "ready": 2}
    assert status["version"]["kubernetes"].startswith("v1.")


def test_the_account_of_an_agent_may_do_nothing_else(site: Site, member: Member, capsys: Output) -> None:
    joined(site, member, capsys)
    token = account_token(member)
    for method, path in (
        ("GET", _SECRETS),
        ("GET", f"{_SECRETS}/{SECRET}"),
        ("GET", "/api/v1/namespaces/kube-system/secrets"),
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/namespaces"),
        ("GET", "/api/v1/namespaces/default"),
        ("DELETE", f"{_SECRETS}/{SECRET}"),
        ("GET", "/metrics"),
    ):
        assert member.call(method, path, token=token).status == 403, (method, path)


def test_a_renewed_certificate_replaces_the_secret(site: Site, member: Member, capsys: Output) -> None:
    out = joined(site, member, capsys)
    access = exchanges.access(member.url, ca_file=member.serving.file, token=account_token(member))
    content = (out / "agent.kubeconfig").read_bytes()
    changed = content + b"# renewed\n"

    async def save() -> None:
        async with Client(access) as client:
            await SecretPlace(member=client, namespace=NAMESPACE, name=SECRET, key=SECRET_KEY).save(changed)

    asyncio.run(save())
    stored = member.admin.get(f"{_SECRETS}/{SECRET}") or {}
    assert base64.b64decode(stored["data"][SECRET_KEY]) == changed


def test_the_manifest_is_for_kubectl(site: Site, member: Member, capsys: Output) -> None:
    """``--out -`` prints it, and nothing else."""
    token = site.new_token(capsys, "edge")["token"]
    admin = member.kubeconfig(site.directory / "member.kubeconfig")
    assert site.run(*site.join_arguments(token, "--out=-", f"--member-kubeconfig={admin}")) == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [each["kind"] for each in documents] == [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Secret",
        "Deployment",
    ]
    (secret,) = [each for each in documents if each["kind"] == "Secret"]
    path = site.directory / "printed.kubeconfig"
    path.write_bytes(base64.b64decode(secret["data"][SECRET_KEY]))
    held = identity.KubeconfigIdentity(path).current()
    assert validity(held.certificate)[1] > time.time()
    assert json.dumps(documents).count("PRIVATE KEY") == 0  # it is base64, within the Secret alone
