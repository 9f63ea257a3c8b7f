"""--print-config: what it prints is what counts, where it comes from, and a file that means the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterregistry.apiserver.options import Options, effective_config, scope
from clusterregistry.apiserver.options.host_cluster import DEFAULTS
from clusterregistry.cli.options.value_types import DURATION
from clusterregistry.registry.main import main
from tests.product import OPTIONS, resolve

Output = pytest.CaptureFixture[str]


def printed(capsys: Output, *arguments: str, environ: dict[str, str] | None = None, status: int = 0) -> str:
    command, *rest = arguments
    assert main([command, *rest, "--print-config"], {"HOME": "/nowhere", **(environ or {})}) == status
    return capsys.readouterr().out


def line(text: str, flag: str) -> str:
    (found,) = [each for each in text.splitlines() if each.removeprefix("# ").startswith(f"{flag}:")]
    return " ".join(found.split())


def test_each_value_has_its_source(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text("# ours\nrequest-timeout: 90\nsecure-port: 1\n")
    environ = {"CLUSTERREGISTRY_BIND_ADDRESS": "0.0.0.0"}
    text = printed(capsys, "standalone", f"--config={path}", "--secure-port=2", environ=environ)
    assert line(text, "secure-port") == "secure-port: 2 # flag --secure-port"
    assert line(text, "bind-address") == "bind-address: 0.0.0.0 # environment CLUSTERREGISTRY_BIND_ADDRESS"
    assert line(text, "request-timeout") == f"request-timeout: 1m30s # file {path}:2"
    assert line(text, "secret-lint") == "secret-lint: warn # default"
    assert line(text, "token-auth-file") == "# token-auth-file: # default: no tokens"
    assert "\n#   server: https://127.0.0.1:2\n" in text


def test_what_follows_from_the_values_is_told_in_comments(tmp_path: Path, capsys: Output) -> None:
    text = printed(capsys, "standalone", f"--data-dir={tmp_path}", "--authorization-mode=AlwaysAllow")
    assert line(text, "cert-dir") == f"# cert-dir: # default; in effect: {tmp_path}/certs"
    assert line(text, "storage-backend") == "# storage-backend: # default; in effect: sqlite"
    assert f"#   administrator's kubeconfig: {tmp_path}/admin.kubeconfig\n" in text
    assert line(text, "generate-admin") == "# generate-admin: # default; in effect: true"
    assert "#   anonymous requests: refused\n" in text
    assert "# Warning: anonymous requests are refused" in text
    assert list(tmp_path.iterdir()) == [], "nothing was started"


def given(tmp_path: Path) -> list[list[str]]:
    for name in ("tokens.csv", "a file: #1.pem", "kubeconfig"):
        (tmp_path / name).write_text("{}")
    odd = tmp_path / "a file: #1.pem"
    return [
        ["standalone"],
        ["standalone", "-v=3", "--logging-format=json", "--anonymous-auth=false", "--enable-watch=false"],
        ["standalone", f"--token-auth-file={tmp_path / 'tokens.csv'}", f"--client-ca-file={odd}"],
        ["standalone", "--data-dir=~root/x", "--advertise-address=registry.example.com"],
        ["standalone", "--data-dir=null", "--generate-admin=false", "--tls-san=a.example.com", "--tls-san=*.b.c"],
        ["standalone", "--data-dir=/d/\n\t\x07\x85\u2028\U0001f600\udcff\"'\\"],
        ["standalone", "--authorization-mode=RBAC,AlwaysDeny", "--tls-min-version=VersionTLS13"],
        ["standalone", "--etcd-servers=https://etcd-0:2379,https://[::1]:2379", "--etcd-prefix=/a b: c#"],
        ["standalone", "--request-timeout=1h1m1.000000001s", "--etcd-compaction-interval=1us"],
        [
            "standalone",
            "--oidc-issuer-url=https://issuer.example.com",
            "--oidc-client-id=registry",
            "--oidc-required-claim=a=b",
            "--oidc-required-claim=c=d",
            "--oidc-username-prefix=-",
        ],
        ["standalone", "--authorization-webhook", f"--authorization-webhook-config-file={odd}"],
        [
            "aggregated",
            f"--kubeconfig={tmp_path / 'kubeconfig'}",
            f"--requestheader-client-ca-file={odd}",
            "--requestheader-uid-headers=",
        ],
    ]


@pytest.mark.parametrize("number", range(12))
def test_a_printed_configuration_means_the_same_as_what_was_given(number: int, tmp_path: Path, capsys: Output) -> None:
    command, *arguments = given(tmp_path)[number]
    first = printed(capsys, command, *arguments)
    path = tmp_path / "printed.yaml"
    path.write_text(first, encoding="utf-8")
    second = printed(capsys, command, f"--config={path}")
    assert values(second) == values(first)
    assert options_of(command, f"--config={path}") == options_of(command, *arguments)
    path.write_text(second, encoding="utf-8")
    assert printed(capsys, command, f"--config={path}") == second


def values(text: str) -> dict[str, Any]:
    return dict(yaml.load(text, Loader=yaml.BaseLoader))


def options_of(command: str, *arguments: str) -> Options:
    """All but the name of the file itself."""
    found = resolve(arguments, {}, defaults=DEFAULTS if command == "aggregated" else None)
    assert found.problems == ()
    return replace(found.options, general=replace(found.options.general, config=None))


def test_every_option_of_the_command_is_printed(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "kubeconfig").write_text("{}")
    for command, flags in (("standalone", []), ("aggregated", [f"--kubeconfig={tmp_path / 'kubeconfig'}"])):
        text = printed(capsys, command, *flags)
        for options in scope.by_group(OPTIONS, aggregated=command == "aggregated").values():
            for option in options:
                assert option.flag == "config" or line(text, option.flag)


def test_a_wrong_configuration_is_not_printed(capsys: Output) -> None:
    assert printed(capsys, "standalone", "--secure-port=x", status=2) == ""
    assert main(["standalone", "--print-config=maybe"], {"HOME": "/nowhere"}) == 2
    assert '"maybe" is not a boolean' in capsys.readouterr().err


def test_a_source_cannot_end_its_comment(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "a\nsecure-port: 1\n.yaml"
    path.write_text("secure-port: 2\n")
    assert values(printed(capsys, "standalone", f"--config={path}"))["secure-port"] == "2"


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 0.000001, 59.123456789, 3599.999, 3600.5, 86400.0, 1e9])
def test_a_duration_is_shown_so_that_it_can_be_read_again(seconds: float) -> None:
    assert DURATION.parse(DURATION.show(seconds)) == pytest.approx(seconds, abs=1e-9)


@pytest.mark.parametrize("text", ["", "a", "null", "~", "- a", "a: b", "#", "true", "0x1", "'", '"', "\\", "\x00\x7f"])
def test_any_text_is_itself_after_reading(text: str) -> None:
    assert yaml.load(f"[{effective_config.scalar(text)}]", Loader=yaml.BaseLoader) == [text]
