from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.webhooks import config_file
from clusterregistry.apiserver.webhooks.errors import ConfigFileError
from tests.remote_servers import Authority, kubeconfig

SERVER = "https://hook.example.com/review"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def mistakes(path: Path) -> tuple[str, ...]:
    with pytest.raises(ConfigFileError) as raised:
        config_file.load(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert raised.value.remedy
    return raised.value.mistakes


def wrong(tmp_path: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Any:
    """The mistakes of a file that would be good but for these."""
    return mistakes(kubeconfig(tmp_path / "hook.kubeconfig", SERVER, cluster=cluster, user=user))


def test_the_plainest_file_trusts_the_system_and_sends_nothing_of_us(tmp_path: Path) -> None:
    endpoint = config_file.load(kubeconfig(tmp_path / "hook.kubeconfig", SERVER))
    assert (endpoint.url, endpoint.server_name, endpoint.token.read()) == (SERVER, "", "")


def test_files_are_found_beside_the_configuration(tmp_path: Path, authority: Authority) -> None:
    authority.client("us")
    (tmp_path / "token").write_text("secret\n")
    endpoint = config_file.load(
        kubeconfig(
            tmp_path / "hook.kubeconfig",
            SERVER,
            cluster={"certificate-authority": "authority.crt", "tls-server-name": "hook", "extensions": []},
            user={"client-certificate": "client.crt", "client-key": "client.key", "tokenFile": "token"},
        )
    )
    assert (endpoint.server_name, endpoint.token.read()) == ("hook", "secret")
    assert len(endpoint.tls.get_ca_certs()) == 1


def test_everything_may_be_in_the_file_itself(tmp_path: Path, authority: Authority) -> None:
    certificate, key = authority.client("us")
    endpoint = config_file.load(
        kubeconfig(
            tmp_path / "hook.kubeconfig",
            SERVER,
            # What is in the file counts before a file that it names.
            cluster={"certificate-authority-data": data(authority.file), "certificate-authority": "nowhere"},
            user={"client-certificate-data": data(certificate), "client-key-data": data(key), "token": "secret"},
        )
    )
    assert endpoint.token.read() == "secret"
    assert len(endpoint.tls.get_ca_certs()) == 1


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def test_a_file_may_be_yaml_and_name_no_user(tmp_path: Path) -> None:
    path = tmp_path / "hook.kubeconfig"
    path.write_text(
        "current-context: a\n"
        "contexts: [{name: b, context: {}}, x, {name: a, context: {cluster: c}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{SERVER}'}}}}]\n"
    )
    assert config_file.load(path).url == SERVER


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a: [", "this is not YAML"),
        (b"- a", "this is no kubeconfig"),
        (b"", "this is no kubeconfig"),
        (b"{}", "current-context: must name the context to use"),
        (b"current-context: 1", "current-context: must be text"),
        (b"current-context: a", "contexts: there is none with the name 'a'"),
        (b"current-context: a\ncontexts: [{name: a}]", "contexts[a].context: must be a mapping"),
        (b"current-context: a\ncontexts: [{name: a, context: {user: b}}]", "contexts[a].cluster: must name"),
        (b"#" * (config_file.MAX_BYTES + 1), "larger than"),
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "hook.kubeconfig"
    path.write_bytes(content)
    assert mistakes(path)[0].startswith(expected)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert mistakes(tmp_path / "none") == ("No such file or directory",)


@pytest.mark.parametrize(
    "server",
    ["http://h", "h:443", "https://", "https://u:p@h/x", "https://h/#x", "https://h:port", "https://[::1"],
)
def test_only_an_https_url_is_a_webhook(tmp_path: Path, server: str) -> None:
    found = mistakes(kubeconfig(tmp_path / "hook.kubeconfig", server))
    assert found == ("cluster.server: must be a URL like https://HOST:PORT/PATH, without user and fragment",)


@pytest.mark.parametrize("server", ["", None])
def test_a_cluster_without_a_server_is_refused(tmp_path: Path, server: Any) -> None:
    found = mistakes(kubeconfig(tmp_path / "hook.kubeconfig", server))
    assert found == ("cluster.server: must be the URL of the webhook",)


def test_nobody_may_switch_off_verification(tmp_path: Path) -> None:
    assert wrong(tmp_path, cluster={"insecure-skip-tls-verify": True})[0].startswith(
        "cluster.insecure-skip-tls-verify:"
    )
    config_file.load(kubeconfig(tmp_path / "x", SERVER, cluster={"insecure-skip-tls-verify": False}))


def test_what_is_not_supported_is_named_and_not_ignored(tmp_path: Path) -> None:
    found = wrong(tmp_path, cluster={"proxy-url": "http://p"}, user={"exec": {}, "username": "a"})
    assert found == (
        "cluster.proxy-url: is not supported here",
        "user.exec: is not supported here",
        "user.username: is not supported here",
    )


def test_all_mistakes_are_named_at_once(tmp_path: Path, authority: Authority) -> None:
    certificate, _ = authority.client("us")
    (tmp_path / "empty").write_text("")
    found = wrong(
        tmp_path,
        cluster={"certificate-authority": "empty", "tls-server-name": 3, "server": 4},
        user={"client-certificate": str(certificate), "client-key": "none", "tokenFile": "empty"},
    )
    assert found == (
        "cluster.server: must be text",
        "cluster.server: must be the URL of the webhook",
        f"cluster.certificate-authority: {tmp_path}/empty: is empty or larger than 1048576 bytes",
        f"user.client-key: {tmp_path}/none: No such file or directory",
        "user.client-certificate: certificate and key must be given together",
        "cluster.tls-server-name: must be text",
        f"user.tokenFile: {tmp_path}/empty: there is no token in it",
    )


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({"certificate-authority-data": "%%"}, "cluster.certificate-authority-data: is not base64"),
        ({"certificate-authority-data": "é"}, "cluster.certificate-authority-data: is not base64"),
        ({"certificate-authority-data": "YWJj"}, "cluster.certificate-authority: must be certificates in PEM"),
        ({"certificate-authority-data": "/w=="}, "cluster.certificate-authority: must be certificates in PEM"),
    ],
)
def test_an_authority_must_be_certificates(tmp_path: Path, cluster: dict[str, Any], expected: str) -> None:
    assert wrong(tmp_path, cluster=cluster) == (expected,)


def test_certificate_and_key_must_belong_together(tmp_path: Path, authority: Authority) -> None:
    certificate, _ = authority.client("us")
    _, other = authority.serving("h")
    user = {"client-certificate": str(certificate), "client-key": str(other)}
    assert wrong(tmp_path, user=user) == (
        "user.client-certificate: certificate and key must be PEM, belong together and have no passphrase",
    )


@pytest.mark.parametrize("token", ["a b", "a\nb", "é", "x" * 70000])
def test_a_token_that_no_header_can_hold_is_refused(tmp_path: Path, token: str) -> None:
    assert wrong(tmp_path, user={"token": token}) == (
        "user.token: token: holds other characters than a token can, or too many",
    )


def test_a_token_file_with_other_characters_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"\xff")
    expected = f"user.tokenFile: {tmp_path}/token: holds other characters than a token can"
    assert wrong(tmp_path, user={"tokenFile": "token"}) == (expected,)


def test_mistakes_hold_no_secret(tmp_path: Path) -> None:
    found = wrong(tmp_path, user={"token": "very secret", "password": "hidden", "client-key-data": "c2VjcmV0"})
    assert "secret" not in json.dumps(found)
    assert "hidden" not in json.dumps(found)
