"""The command line of ``clusterregistry controller``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.cli import exit_status
from clusterregistry.controllers.command import ControllerOptions, load, registry_config, settings_of
from clusterregistry.crinit.manifests.controller import DEFAULT_ACCESS_CONFIG

Output = pytest.CaptureFixture[str]


def call(*arguments: str) -> int:
    return load().call("clusterregistry controller", arguments, {})


def test_every_mistake_is_named_at_once(capsys: Output) -> None:
    assert call("--interval=100ms", "--client-addresses=here", "--leader-elect-renew-deadline=20s") == exit_status.USAGE
    said = capsys.readouterr().err
    for flag in (
        "--access-config: is required",
        "--interval",
        "--client-addresses",
        "lease-duration must be above --leader-elect-renew-deadline",
    ):
        assert flag in said


def test_a_kubeconfig_and_rules_that_cannot_be_used_are_explained(tmp_path: Path, capsys: Output) -> None:
    access = tmp_path / "access.yaml"
    assert call(f"--access-config={access}", "--kubeconfig=missing") == exit_status.STARTUP
    assert "access.yaml" in capsys.readouterr().err
    access.write_text(DEFAULT_ACCESS_CONFIG)
    assert call(f"--access-config={access}", f"--kubeconfig={tmp_path / 'missing'}") == exit_status.STARTUP
    said = capsys.readouterr().err
    assert "there is no file" in said
    assert "What to do: name a kubeconfig of the registry by --kubeconfig" in said


def test_help_teaches_by_examples(capsys: Output) -> None:
    assert call("--help") == 0
    said = capsys.readouterr().out
    assert "clusterregistry controller --kubeconfig" in said
    assert "kind: AccessConfiguration" in said
    assert "--leader-elect-lease-duration" in said


def test_pauses_follow_the_interval() -> None:
    settings = settings_of(ControllerOptions(access_config=Path("access.yaml"), interval=60.0))

    assert settings.observer.breaker_pause == 120
    assert settings.observer.breaker_longest_pause == 600
    assert settings.writer.heartbeat == settings.status.interval == 60
    assert settings.election is not None
    assert settings_of(ControllerOptions(access_config=Path("x"), leader_elect=False)).election is None


def test_the_registry_is_that_of_the_flag_of_the_variable_or_of_the_pod(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "https://registry.example"}}
    file.write_text(
        json.dumps({
            "clusters": [cluster], "contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c",
        })
    )  # fmt: skip
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    assert registry_config(ControllerOptions(kubeconfig=file), pod).server == "https://registry.example"
    assert registry_config(ControllerOptions(), {**pod, "KUBECONFIG": str(file)}).server == "https://registry.example"
    assert registry_config(ControllerOptions(), pod).server == "https://10.0.0.1:443"
    with pytest.raises(OperatorError, match='has no context "other"'):
        registry_config(ControllerOptions(kubeconfig=file, context="other"), {})
