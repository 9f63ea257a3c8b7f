from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.audit.settings import AuditSettings, Rotation
from clusterregistry.apiserver.options import OptionsError
from tests.product import load


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.touch()
    return path


def problems(environ: dict[str, str], *arguments: str) -> list[str]:
    with pytest.raises(OptionsError) as raised:
        load(list(arguments), environ)
    return [str(problem) for problem in raised.value.problems]


def test_nothing_is_recorded_by_default(environ: dict[str, str]) -> None:
    completed = load([], environ)
    assert completed.audit_settings is None
    assert completed.warnings == ()


def test_a_policy_and_a_path_make_a_log(environ: dict[str, str], policy: Path, tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    completed = load([f"--audit-policy-file={policy}", f"--audit-log-path={path}"], environ)
    assert completed.audit_settings == AuditSettings(
        policy_file=policy, path=path, rotation=Rotation(most_bytes=100 * 1024 * 1024, most_backups=10, most_days=30)
    )


def test_everything_about_the_files_can_be_said(environ: dict[str, str], policy: Path) -> None:
    more = ["--audit-log-maxsize=0", "--audit-log-maxbackup=3", "--audit-log-maxage=7", "--audit-log-format=json"]
    settings = load([f"--audit-policy-file={policy}", "--audit-log-path=-", *more], environ).audit_settings
    assert settings == AuditSettings(
        policy_file=policy, path=None, rotation=Rotation(most_bytes=0, most_backups=3, most_days=7)
    )


def test_a_path_alone_makes_a_log_with_the_built_in_policy(environ: dict[str, str], tmp_path: Path) -> None:
    completed = load([f"--audit-log-path={tmp_path / 'audit.log'}"], environ)
    assert completed.audit_settings is not None
    assert completed.audit_settings.policy_file is None
    assert completed.warnings == ()


def test_the_files_are_bounded_when_nothing_is_said(environ: dict[str, str], tmp_path: Path) -> None:
    settings = load([f"--audit-log-path={tmp_path / 'audit.log'}"], environ).audit_settings
    assert settings is not None
    assert settings.rotation.most_bytes * (settings.rotation.most_backups + 1) == 1100 * 1024 * 1024


def test_what_cannot_be_is_said_at_once(environ: dict[str, str], tmp_path: Path) -> None:
    found = problems(
        environ,
        f"--audit-policy-file={tmp_path / 'absent'}",
        f"--audit-log-path={tmp_path}",
        "--audit-log-maxsize=-1",
        "--audit-log-maxbackup=-1",
        "--audit-log-maxage=-1",
    )
    assert [problem.partition(":")[0] for problem in found] == [
        "--audit-policy-file",
        "--audit-log-path",
        "--audit-log-maxsize",
        "--audit-log-maxbackup",
        "--audit-log-maxage",
    ]


def test_a_policy_without_a_log_is_refused(environ: dict[str, str], policy: Path) -> None:
    assert problems(environ, f"--audit-policy-file={policy}") == [
        "--audit-policy-file: is of no use without --audit-log-path: give both"
    ]


def test_another_format_is_refused(environ: dict[str, str]) -> None:
    assert problems(environ, "--audit-log-format=legacy") == ['--audit-log-format: "legacy" is not one of json']
