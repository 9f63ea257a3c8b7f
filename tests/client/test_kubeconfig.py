from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.client import kubeconfig, rest_config
from clusterregistry.client.errors import ConfigError
from clusterregistry.client.kubeconfig import Paths
from clusterregistry.client.rest_config import RestConfig
from tests.client.hostile_servers import AGENT


def write(path: Path, **document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **document}))
    return path


def one(path: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Path:
    """A file with the context ``it``."""
    return write(
        path,
        clusters=[{"name": "c", "cluster": {"server": "https://c.example.com", **(cluster or {})}}],
        users=[{"name": "u", "user": user or {}}],
        contexts=[{"name": "it", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        **{"current-context": "it"},
    )


def config(path: Path) -> RestConfig:
    return rest_config.from_context(kubeconfig.load_file(path).context(), user_agent=AGENT)


def test_the_flag_wins_over_the_variable_and_the_variable_over_the_home_directory() -> None:
    environ = {"KUBECONFIG": "/a:/b::/a", "HOME": "/home/jane"}
    assert kubeconfig.paths(environ, explicit="/c").files == (Path("/c"),)
    assert kubeconfig.paths(environ).files == (Path("/a"), Path("/b"))
    assert kubeconfig.paths({"HOME": "/home/jane"}).files == (Path("/home/jane/.kube/config"),)


def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "1", clusters=[{"name": "a", "cluster": {"server": "https://first"}}])
    second = write(
        tmp_path / "2",
        clusters=[{"name": "a", "cluster": {"server": "https://second"}}, {"name": "b", "cluster": {"server": "x"}}],
        contexts=[{"name": "k", "context": {"cluster": "a", "user": "u"}}],
        users=[{"name": "u", "user": {"token": "t"}}],
        **{"current-context": "k"},
    )
    third = write(tmp_path / "3", **{"current-context": "other"})
    merged = kubeconfig.load(Paths((first, tmp_path / "missing", second, third), "$KUBECONFIG"))
    found = merged.context()
    assert (found.name, found.cluster["server"], found.user["token"]) == ("k", "https://first", "t")
    assert sorted(merged.clusters) == ["a", "b"]


def test_new_entries_go_into_the_first_file_that_exists_else_into_the_last(tmp_path: Path) -> None:
    there, missing = write(tmp_path / "there"), tmp_path / "missing"
    assert Paths((missing, there)).target() == there
    assert Paths((missing, tmp_path / "too")).target() == tmp_path / "too"


def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    user = {"client-certificate": "u.crt", "client-key": "/abs/u.key", "tokenFile": "../token"}
    user["exec"] = {"command": "bin/plugin"}  # type: ignore[assignment]
    path = one(tmp_path / "sub" / "config", cluster={"certificate-authority": "ca.crt"}, user=user)
    found = kubeconfig.load_file(path).context()
    assert found.cluster["certificate-authority"] == str(tmp_path / "sub" / "ca.crt")
    assert found.user["client-certificate"] == str(tmp_path / "sub" / "u.crt")
    assert found.user["client-key"] == "/abs/u.key"
    assert Path(found.user["tokenFile"]).resolve() == tmp_path / "token"
    assert found.user["exec"]["command"] == str(tmp_path / "sub" / "bin/plugin")
    assert kubeconfig._absolute({"exec": {"command": "aws"}}, tmp_path)["exec"]["command"] == "aws"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]", "must be a mapping"),
        ("a: [", "not YAML"),
        ("clusters: {}\nusers: 3", "users must be a list"),
        ("a: &a [*a]", "not YAML"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_refused_with_its_name(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message) as raised:
        kubeconfig.load_file(path)
    assert str(path) in str(raised.value)


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"#" * (kubeconfig.MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger"):
        kubeconfig.load_file(path)


def test_what_is_missing_is_named_beside_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--kubeconfig names no file that exists: .*missing"):
        kubeconfig.load(Paths((tmp_path / "missing",), "--kubeconfig"))
    merged = kubeconfig.load_file(one(tmp_path / "config"))
    with pytest.raises(ConfigError, match='no context "other"; it has: it'):
        merged.context("other")
    dangling = write(tmp_path / "d", contexts=[{"name": "d", "context": {"cluster": "gone"}}])
    with pytest.raises(ConfigError, match='no cluster "gone"; it has: none'):
        kubeconfig.load_file(dangling).context("d")
    with pytest.raises(ConfigError, match="no current context; contexts: d"):
        kubeconfig.load_file(dangling).context()


def test_a_context_becomes_a_configuration(tmp_path: Path) -> None:
    authority = base64.b64encode(b"PEM").decode()
    cluster = {
        "certificate-authority-data": authority,
        "certificate-authority": "ignored.crt",
        "tls-server-name": "other",
        "proxy-url": "http://proxy:3128",
    }
    user = {"token": "t", "as": "jane", "as-groups": ["g"], "as-user-extra": {"k": ["v"]}}
    found = config(one(tmp_path / "config", cluster=cluster, user=user))
    assert (found.server, found.namespace, found.token) == ("https://c.example.com", "n", "t")
    assert (found.certificate_authority.data, found.tls_server_name) == (b"PEM", "other")
    assert found.proxy_url == "http://proxy:3128"
    assert (found.impersonation.user, found.impersonation.groups) == ("jane", ("g",))
    assert "'t'" not in repr(found)


def test_every_problem_of_a_context_is_reported_at_once(tmp_path: Path) -> None:
    cluster = {"server": 5, "certificate-authority-data": "!", "insecure-skip-tls-verify": "yes"}
    user = {"token": "two words", "auth-provider": {"name": "gcp"}, "exec": {"apiVersion": "v1alpha1"}}
    with pytest.raises(ConfigError) as raised:
        config(one(tmp_path / "config", cluster=cluster, user=user))
    reported = "\n".join(raised.value.problems)
    for name in (
        "server",
        "certificate-authority-data",
        "insecure-skip",
        "user.token",
        "auth-provider",
        "exec.command",
    ):
        assert name in reported
    assert "two words" not in reported


@pytest.mark.parametrize(
    "server", ["", "ftp://c", "https://", "https://user@c", "https://c#f", "c.example.com:6443", "https://c:port"]
)
def test_a_server_that_is_no_url_is_refused(server: str) -> None:
    with pytest.raises(ConfigError, match="server: must be a URL"):
        RestConfig(server=server, user_agent=AGENT)


def test_other_configurations_that_cannot_be_meant_are_refused() -> None:
    pem = rest_config.Pem(data=b"x")
    with pytest.raises(ConfigError, match="excludes"):
        RestConfig(server="https://c", user_agent=AGENT, certificate_authority=pem, insecure_skip_tls_verify=True)
    with pytest.raises(ConfigError, match="SOCKS"):
        RestConfig(server="https://c", user_agent=AGENT, proxy_url="socks5://p:1080")
    with pytest.raises(ConfigError, match="user_agent"):
        RestConfig(server="https://c", user_agent="")


def test_a_pod_uses_the_files_of_its_service_account(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("mine\n")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    found = rest_config.in_cluster(environ, user_agent=AGENT, files=tmp_path)
    assert found is not None
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "mine")
    assert (found.token_file, found.certificate_authority.file) == (tmp_path / "token", tmp_path / "ca.crt")
    assert rest_config.in_cluster({}, user_agent=AGENT) is None


def test_reading_a_kubeconfig_does_not_import_the_http_library() -> None:
    script = (
        "import sys, clusterregistry.client.kubeconfig, clusterregistry.client.rest_config;"
        "print(*sorted({'aiohttp', 'yarl', 'clusterregistry.client.transport'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == ""
