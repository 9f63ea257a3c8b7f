from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.options import OptionsError
from tests.product import load


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "hook.kubeconfig"
    path.write_text("")
    return f"--authorization-webhook-config-file={path}"


def modes(tmp_path: Path, *flags: str) -> tuple[str, ...]:
    return load(["--data-dir", str(tmp_path), *flags], {}).authorization.authorization_mode


def problems(tmp_path: Path, *flags: str) -> list[str]:
    with pytest.raises(OptionsError) as raised:
        load(["--data-dir", str(tmp_path), *flags], {})
    return [str(problem) for problem in raised.value.problems]


def test_the_mode_is_one_of_several_in_order(tmp_path: Path, file: str) -> None:
    assert modes(tmp_path, file, "--authorization-mode=RBAC,Webhook") == ("RBAC", "Webhook")


def test_the_older_flag_puts_the_webhook_first(tmp_path: Path, file: str) -> None:
    assert modes(tmp_path, file, "--authorization-webhook") == ("Webhook", "RBAC")
    assert modes(tmp_path, file, "--authorization-webhook", "--authorization-mode=RBAC,Webhook") == ("RBAC", "Webhook")
    assert modes(tmp_path, "--authorization-webhook=false") == ("RBAC",)


@pytest.mark.parametrize("flag", ["--authorization-mode=Webhook", "--authorization-webhook"])
def test_the_mode_needs_somebody_to_ask(tmp_path: Path, flag: str) -> None:
    assert problems(tmp_path, flag) == [
        "--authorization-mode: Webhook needs to know whom to ask: give --authorization-webhook-config-file"
    ]


def test_a_webhook_that_nobody_asks_is_a_mistake(tmp_path: Path, file: str) -> None:
    assert problems(tmp_path, file) == [
        "--authorization-webhook-config-file: is of no use without the mode Webhook (add it to --authorization-mode)"
    ]


def test_files_must_be_there(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        "--authentication-token-webhook-config-file=/nowhere/a",
        "--authorization-webhook-config-file=/nowhere/b",
        "--authorization-mode=Webhook",
    )
    assert found == [
        "--authentication-token-webhook-config-file: /nowhere/a: No such file or directory",
        "--authorization-webhook-config-file: /nowhere/b: No such file or directory",
    ]


def test_only_what_is_known_is_a_version_or_a_policy(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        "--authentication-token-webhook-version=v1beta1",
        "--authorization-webhook-version=v2",
        "--authorization-webhook-failure-policy=Allow",
    )
    assert found == [
        "--authentication-token-webhook-version: v1beta1 is not supported yet: use v1",
        '--authorization-webhook-version: "v2" is not one of v1',
        '--authorization-webhook-failure-policy: "Allow" is not one of NoOpinion, Deny',
    ]
