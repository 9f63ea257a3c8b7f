from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from clusterregistry.apiserver.webhooks import config_file
from clusterregistry.apiserver.webhooks.errors import ConfigFileError
from clusterregistry.client.rest_config import Pem, RestConfig
from tests.remote_servers import Authority, kubeconfig

AGENT = "tests/1"
SERVER = "https://hook.example.com/review"
NO_URL = "cluster.server: must be a URL like https://HOST:PORT/PATH"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def load(path: Path) -> RestConfig:
    return config_file.load(path, user_agent=AGENT)


def problems(path: Path) -> tuple[str, ...]:
    with pytest.raises(ConfigFileError) as raised:
        load(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert "names the webhook as its cluster" in raised.value.remedy
    return raised.value.problems


def problems_with(
    tmp_path: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None
) -> tuple[str, ...]:
    """The problems of a file that is good but for these fields."""
    return problems(kubeconfig(tmp_path / "hook.kubeconfig", SERVER, cluster=cluster, user=user))


def test_the_plainest_file_trusts_the_system_and_has_no_credentials(tmp_path: Path) -> None:
    assert load(kubeconfig(tmp_path / "hook.kubeconfig", SERVER)) == RestConfig(server=SERVER, user_agent=AGENT)


def test_files_are_found_beside_the_configuration(tmp_path: Path, authority: Authority) -> None:
    authority.client("us")
    (tmp_path / "token").write_text("secret\n")
    config = load(
        kubeconfig(
            tmp_path / "hook.kubeconfig",
            SERVER,
            cluster={"certificate-authority": "authority.crt", "tls-server-name": "hook", "extensions": []},
            user={"client-certificate": "client.crt", "client-key": "client.key", "tokenFile": "token"},
        )
    )
    assert (config.tls_server_name, config.token_file) == ("hook", tmp_path / "token")
    assert config.certificate_authority == Pem(file=authority.file)


def test_the_file_may_hold_certificates_and_tokens(tmp_path: Path, authority: Authority) -> None:
    certificate, key = authority.client("us")
    config = load(
        kubeconfig(
            tmp_path / "hook.kubeconfig",
            SERVER,
            # Data win over a file, as in kubectl.
            cluster={"certificate-authority-data": data(authority.file), "certificate-authority": "nowhere"},
            user={"client-certificate-data": data(certificate), "client-key-data": data(key), "token": "secret"},
        )
    )
    assert (config.token, config.certificate_authority) == ("secret", Pem(data=authority.pem))


def data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def test_a_file_may_be_yaml_and_name_no_user(tmp_path: Path) -> None:
    path = tmp_path / "hook.kubeconfig"
    path.write_text(
        "current-context: a\n"
        "contexts: [{name: b, context: {}}, x, {name: a, context: {cluster: c}}]\n"
        f"clusters: [{{name: c, cluster: {{server: '{SERVER}'}}}}]\n"
    )
    assert load(path).server == SERVER


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a: [", "is no kubeconfig: it is not YAML"),
        (b"- a", "is no kubeconfig: it must be a mapping"),
        (b"", "the kubeconfig has no current context"),
        (b"current-context: 1", "the kubeconfig has no current context"),
        (b"current-context: a", 'the kubeconfig has no context "a"; there are: none at all'),
        (b"current-context: a\ncontexts: [{name: a}]", 'the kubeconfig has no cluster ""'),
    ],
)
def test_a_file_without_a_usable_context_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "hook.kubeconfig"
    path.write_bytes(content)
    (found,) = problems(path)
    assert found.startswith(expected)
    assert str(path) not in found


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    assert problems(tmp_path / "none") == (f"there is no file {tmp_path / 'none'}",)


@pytest.mark.parametrize(
    "server",
    ["", None, "http://h", "h:443", "https://", "https://u:p@h/x", "https://h/#x", "https://h:port", "https://[::1"],
)
def test_a_webhook_must_have_an_https_url(tmp_path: Path, server: Any) -> None:
    (found,) = problems(kubeconfig(tmp_path / "hook.kubeconfig", server))
    assert found.startswith(NO_URL)


def test_verification_cannot_be_switched_off(tmp_path: Path) -> None:
    (found,) = problems_with(tmp_path, cluster={"insecure-skip-tls-verify": True})
    assert found.startswith("cluster.insecure-skip-tls-verify: is refused")
    load(kubeconfig(tmp_path / "x", SERVER, cluster={"insecure-skip-tls-verify": False}))


def test_fields_that_are_not_supported_are_refused(tmp_path: Path) -> None:
    assert problems_with(tmp_path, cluster={"proxy-url": "http://p"}, user={"exec": {}, "username": "a"}) == (
        "cluster.proxy-url: is not supported here",
        "user.exec: is not supported here",
        "user.username: is not supported here",
    )


def test_all_problems_are_reported_at_once(tmp_path: Path, authority: Authority) -> None:
    certificate, _ = authority.client("us")
    (tmp_path / "empty").write_text("")
    found = problems_with(
        tmp_path,
        cluster={"certificate-authority": "empty", "tls-server-name": 3, "server": 4, "proxy-url": "http://p"},
        user={"client-certificate": str(certificate), "client-key": "none", "tokenFile": "empty"},
    )
    assert found == (
        "cluster.proxy-url: is not supported here",
        "cluster.server: must be text",
        "cluster.tls-server-name: must be text",
        f"{NO_URL}, without user and fragment",
        f"cluster.certificate-authority: {tmp_path}/empty: is empty or larger than 1048576 bytes",
        f"user.client-key: {tmp_path}/none: No such file or directory",
        f"user.tokenFile: {tmp_path}/empty: is empty or larger than 1048576 bytes",
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("%%", "cluster.certificate-authority-data: is not base64"),
        ("é", "cluster.certificate-authority-data: is not base64"),
        ("YWJj", "cluster.certificate-authority: must be certificates in PEM"),
        ("/w==", "cluster.certificate-authority: must be certificates in PEM"),
    ],
)
def test_an_authority_must_be_certificates(tmp_path: Path, content: str, expected: str) -> None:
    assert problems_with(tmp_path, cluster={"certificate-authority-data": content}) == (expected,)


def test_certificate_and_key_must_belong_together(tmp_path: Path, authority: Authority) -> None:
    certificate, _ = authority.client("us")
    _, other = authority.serving("h")
    user = {"client-certificate": str(certificate), "client-key": str(other)}
    assert problems_with(tmp_path, user=user) == (
        "user.client-certificate and client-key: must be PEM, belong together and have no passphrase",
    )


@pytest.mark.parametrize("token", ["a b", "a\nb", "é", "x" * 70000])
def test_a_token_that_no_header_can_hold_is_refused(tmp_path: Path, token: str) -> None:
    (found,) = problems_with(tmp_path, user={"token": token})
    assert found.startswith("user.token: ")


def test_problems_show_no_secret(tmp_path: Path) -> None:
    found = problems_with(tmp_path, user={"token": "very secret", "password": "hidden", "client-key-data": "c2VjcmV0"})
    assert "secret" not in json.dumps(found)
    assert "hidden" not in json.dumps(found)
