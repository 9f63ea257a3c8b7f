"""Joining a registry over TLS: tokens, trust, the Cluster, the certificate, and what is written."""

from __future__ import annotations

import base64
import json
import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from clusterregistry.cli import exit_status
from tests.agent.sites import Site
from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.server.programs import Program
from tests.registry.agents.tokens import (
    CLUSTERS,
    REQUESTS,
    SECRET,
    TOKENS,
    agent_request,
    cluster,
    new_token,
    with_token,
)
from tests.remote_servers import Authority, Received, RemoteServer, Reply, reply
from tools.simulator import Simulator

Output = pytest.CaptureFixture[str]


def test_a_token_a_join_and_an_identity(site: Site, capsys: Output) -> None:
    made = site.new_token(capsys, "edge", "--label=env=lab", "--ttl=1h")
    words = shlex.split(made["command"])
    assert words[0] == "clusterregistry"
    assert any(word.startswith("--ca-hash=sha256:") for word in words)
    member, out = site.simulator[0], site.directory / "out"
    flags = [f"--out={out}", f"--member-kubeconfig={site.member_kubeconfig(member)}", "-o", "json"]
    assert site.run(*words[1:], *flags) == 0
    said = json.loads(capsys.readouterr().out)
    stored = site.cluster("edge")
    assert (said["cluster"], said["created"], said["uid"]) == ("edge", True, stored["metadata"]["uid"])
    assert stored["metadata"]["labels"] == {"env": "lab"}
    assert stored["metadata"]["annotations"]["clusterregistry.k8s.io/observer"] == "agent"
    assert stored["spec"]["clusterID"] == member.contents.kube_system_uid
    assert said["notes"] == []
    for name in ("agent.kubeconfig", "agent.yaml"):
        assert stat.S_IMODE((out / name).stat().st_mode) == 0o600


def test_the_certificate_is_that_of_the_agent(site: Site, capsys: Output) -> None:
    out = site.join(capsys, "edge", None, "--certificate-duration=24h")
    user = yaml.safe_load((out / "agent.kubeconfig").read_text())["users"][0]["user"]
    certificate, key = site.directory / "agent.crt", site.directory / "agent.key"
    for path, field in ((certificate, "client-certificate-data"), (key, "client-key-data")):
        path.write_bytes(_decoded(user[field]))
    held = x509.load_pem_x509_certificate(certificate.read_bytes())
    assert held.subject.rfc4514_string() == "CN=system:clusterregistry:agent:edge,O=system:clusterregistry:agents"
    assert 23 * 3600 < (held.not_valid_after_utc - held.not_valid_before_utc).total_seconds() <= 24 * 3600
    nothing = {"Authorization": None}
    with site.program.client(certificate, key) as agent:
        assert agent.get(f"{CLUSTERS}/edge", headers=nothing).status == 200
        agent.get(CLUSTERS, headers=nothing).refused(403, "Forbidden")
        request = agent_request("edge")
        agent.post(REQUESTS, request, headers=nothing).expect(201)
        agent.post(REQUESTS, agent_request("other"), headers=nothing).refused(403, "Forbidden")


def test_a_join_again_keeps_the_cluster(site: Site, capsys: Output) -> None:
    member = site.simulator[1]
    first = site.join(capsys, "edge", member)
    before, identity = site.cluster("edge"), (first / "agent.kubeconfig").read_text()
    site.admin.patch(f"{CLUSTERS}/edge", {"metadata": {"labels": {"env": "prod"}}}).expect(200)
    again = site.join(capsys, "edge", member)
    after = site.cluster("edge")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["metadata"]["labels"] == {"env": "prod"}
    assert (again / "agent.kubeconfig").read_text() != identity


def test_one_token_joins_until_it_ends(site: Site, capsys: Output) -> None:
    token = site.new_token(capsys, "edge")["token"]
    words = site.join_arguments(token, "--without-member", f"--out={site.directory / 'a'}")
    assert site.run(*words) == 0
    assert site.run(*words) == 0
    assert site.run("join-token", "delete", token) == 0
    capsys.readouterr()
    assert site.run(*words) == exit_status.STARTUP
    assert "does not know the token, or it has expired" in capsys.readouterr().err


def test_a_token_is_for_its_cluster_alone(site: Site, capsys: Output) -> None:
    token = site.new_token(capsys, "edge")["token"]
    words = site.join_arguments(token, "--without-member", f"--out={site.directory / 'a'}")
    assert site.run(*words, "other") == exit_status.STARTUP
    assert "the token is for cluster edge, not for other" in capsys.readouterr().err
    assert site.admin.get(f"{CLUSTERS}/other").status == 404
    headers = with_token(*token.split("."))
    site.admin.post(REQUESTS, agent_request("other"), headers=headers).refused(403, "Forbidden")


def test_another_member_does_not_take_over_a_cluster(site: Site, capsys: Output) -> None:
    site.join(capsys, "edge", site.simulator[2])
    token = site.new_token(capsys, "edge")["token"]
    another = site.member_kubeconfig(site.simulator[3])
    flags = [f"--member-kubeconfig={another}", f"--out={site.directory / 'b'}"]
    assert site.run(*site.join_arguments(token, *flags)) == exit_status.STARTUP
    assert "is another one" in capsys.readouterr().err
    assert not (site.directory / "b").exists()


def test_a_member_joins_under_one_name(site: Site, capsys: Output) -> None:
    site.join(capsys, "edge", site.simulator[4])
    token = site.new_token(capsys, "edge-2")["token"]
    flags = [f"--member-kubeconfig={site.member_kubeconfig(site.simulator[4])}", f"--out={site.directory / 'b'}"]
    assert site.run(*site.join_arguments(token, *flags)) == exit_status.STARTUP
    assert "registered under another name" in capsys.readouterr().err


def test_the_registry_is_not_taken_for_the_member(site: Site, capsys: Output) -> None:
    token = site.new_token(capsys, "edge")["token"]
    flags = [f"--out={site.directory / 'a'}"]  # $KUBECONFIG names the registry
    assert site.run(*site.join_arguments(token, *flags)) == exit_status.STARTUP
    assert "is a registry, not a member" in capsys.readouterr().err
    assert site.admin.get(f"{CLUSTERS}/edge").status == 404


def test_a_cluster_with_a_long_name(site: Site, capsys: Output) -> None:
    name = ".".join(["edge" * 15] * 4)
    site.join(capsys, name)
    assert site.cluster(name)["metadata"]["name"] == name


def test_nothing_is_sent_to_a_server_that_is_not_the_pinned_one(site: Site, capsys: Output) -> None:
    token = site.new_token(capsys, "edge")["token"]
    member = site.simulator[5]
    before = len(member.requests)
    for server in (member.url, site.url):
        words = ["join", f"--server={server}", f"--token={token}", "--ca-hash=sha256:" + "0" * 64]
        assert site.run(*words, "--without-member") == exit_status.STARTUP
        assert "presents no certificate with the pinned public key" in capsys.readouterr().err
    authority = site.directory / "other.crt"
    authority.write_bytes(member.identity.authority)
    words = ["join", f"--server={site.url}", f"--token={token}", f"--ca-file={authority}"]
    assert site.run(*words, "--without-member") == exit_status.STARTUP
    assert "is not verified" in capsys.readouterr().err
    assert len(member.requests) == before
    assert site.admin.get(f"{CLUSTERS}/edge").status == 404


def test_mistakes_are_told_at_once(site: Site, capsys: Output) -> None:
    assert site.run("join", "--server=http://x", "--token=abc", "--certificate-duration=1s") == exit_status.USAGE
    said = capsys.readouterr().err
    assert all(each in said for each in ("--server", "--token", "--ca-hash", "--certificate-duration"))
    assert site.run("join-token", "create", "edge", "--ttl=1000h") == exit_status.USAGE
    assert site.run("join-token", "create") == exit_status.USAGE
    capsys.readouterr()
    flags = ("--ttl=0s", "--server=http://x", "--label=a=1", "--label=a=2")
    assert site.run("join-token", "create", "edge", *flags) == exit_status.USAGE
    said = capsys.readouterr().err
    assert all(each in said for each in ("--ttl", "--server", '"a" is given more than once'))
    both = ("--token=abcdef.0123456789abcdef0123456789", "--token-file=x", "--out=-", "-o=json", "--timeout=0s")
    assert site.run("join", "--server=https://x", "--ca-file=x", *both) == exit_status.USAGE
    said = capsys.readouterr().err
    assert all(each in said for each in ("--token-file", "--out=-", "--timeout"))
    assert site.run("agent", "--kubeconfig=x", "--secure-port=99999") == exit_status.USAGE
    capsys.readouterr()
    assert site.run("join-token", "create", "Not_A_Name") == exit_status.STARTUP


def test_tokens_are_listed_without_their_secrets(site: Site, capsys: Output) -> None:
    token = site.new_token(capsys, "edge", "--description=for the lab", "--label=env=lab")["token"]
    name, secret = token.split(".")
    assert site.run("join-token", "list") == 0
    said = capsys.readouterr().out
    row = next(line for line in said.splitlines() if line.startswith(name))
    assert [each in row for each in ("edge", "env=lab", "for the lab", "in 23h")] == [True] * 4
    assert site.run("join-token", "list", "-o", "json") == 0
    printed = capsys.readouterr().out
    assert secret not in printed + said
    assert "managedFields" not in printed
    assert site.run("join-token", "delete", name) == 0
    assert site.admin.get(f"{TOKENS}/{name}").status == 404
    assert site.run("join-token", "delete", name) == exit_status.STARTUP


def test_requests_of_others_wait_for_a_person(site: Site, capsys: Output) -> None:
    """Also one for an agent's certificate, by a user who is no agent."""
    site.admin.post(CLUSTERS, cluster("edge")).expect(201)
    request = agent_request("edge")
    path = f"{REQUESTS}/{request['metadata']['name']}"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    site.admin.post(REQUESTS, request, headers=headers).expect(201)
    site.join(capsys, "edge")  # by then the approver has seen the request
    assert site.admin.get(path).expect(200)["status"] == {}


def test_a_registry_that_does_not_sign_is_told(simulator: Simulator, tmp_path: Path, capsys: Output) -> None:
    with (
        Program(tmp_path / "registry", "--generate-admin=false") as program,
        Site(program, simulator, tmp_path) as site,
    ):
        name = new_token(site.admin, "edge")
        words = site.join_arguments(f"{name}.{SECRET}", "--without-member", f"--out={tmp_path / 'a'}")
        assert site.run(*words, "--timeout=1s") == exit_status.STARTUP
    said = capsys.readouterr().err
    assert "was not signed within 1 s" in said
    assert "--generate-admin" in said


def test_a_server_that_is_no_registry_is_told(tmp_path: Path, capsys: Output, site: Site) -> None:
    """Also one that names a cluster to leave the directory."""
    authority = Authority(tmp_path)
    answers: list[dict[str, Any]] = [
        {},
        {"status": {"userInfo": {"extra": {"clusterregistry.k8s.io/cluster-name": ["../../outside"]}}}},
        {"status": {"userInfo": {"extra": {"clusterregistry.k8s.io/cluster-name": "edge"}}}},
    ]
    with RemoteServer(authority) as server:
        words = ["join", f"--server={server.url}", f"--token=aaaaaa.{SECRET}", f"--ca-file={authority.file}"]
        for answer in answers:
            server.answer = always(answer)
            assert site.run(*words, "--without-member") == exit_status.STARTUP
            assert "What to do:" in capsys.readouterr().err
        server.answer = lambda _: Reply(hang_up=True)
        assert site.run(*words, "--without-member") == exit_status.STARTUP
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".crt", ".crt", ".key"]


def always(document: dict[str, Any]) -> Callable[[Received], Reply]:
    return lambda _: reply(document)


def _decoded(text: str) -> bytes:
    return base64.b64decode(text)
