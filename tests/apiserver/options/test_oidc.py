from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.authn.oidc.settings import IssuerSettings
from clusterregistry.apiserver.options import OptionsError, oidc
from tests.product import load

ISSUER = "--oidc-issuer-url=https://login.example.com"
CLIENT = "--oidc-client-id=registry"


def settings(tmp_path: Path, *flags: str) -> IssuerSettings:
    found = oidc.settings(load(["--data-dir", str(tmp_path), ISSUER, CLIENT, *flags], {}).oidc)
    assert found is not None
    return found


def problems(tmp_path: Path, *flags: str) -> list[str]:
    with pytest.raises(OptionsError) as raised:
        load(["--data-dir", str(tmp_path), *flags], {})
    return [str(problem) for problem in raised.value.problems]


def test_without_flags_there_is_no_issuer(tmp_path: Path) -> None:
    assert oidc.settings(load(["--data-dir", str(tmp_path)], {}).oidc) is None


def test_issuer_and_client_are_enough(tmp_path: Path) -> None:
    assert settings(tmp_path) == IssuerSettings(
        url="https://login.example.com",
        client_id="registry",
        username_claim="sub",
        username_prefix="https://login.example.com#",
        algorithms=("RS256",),
    )


@pytest.mark.parametrize(
    ("flags", "prefix"),
    [
        (["--oidc-username-claim=email"], ""),
        (["--oidc-username-claim=upn"], "https://login.example.com#"),
        (["--oidc-username-prefix=-"], ""),
        (["--oidc-username-prefix=oidc:"], "oidc:"),
        (["--oidc-username-claim=email", "--oidc-username-prefix=oidc:"], "oidc:"),
        (["--oidc-username-claim=email", "--oidc-username-prefix=-"], ""),
    ],
)
def test_names_have_a_prefix_unless_they_need_none(tmp_path: Path, flags: list[str], prefix: str) -> None:
    assert settings(tmp_path, *flags).username_prefix == prefix


def test_all_required_claims_count(tmp_path: Path) -> None:
    flags = ["--oidc-required-claim=a=1", "--oidc-required-claim", "b=x=y", "--oidc-required-claim=c=,d=4"]
    assert settings(tmp_path, *flags).required_claims == {"a": "1", "b": "x=y", "c": "", "d": "4"}


def test_required_claims_of_a_stronger_source_take_the_place_of_others(tmp_path: Path) -> None:
    environ = {"CLUSTERREGISTRY_OIDC_REQUIRED_CLAIM": "a=1,b=2"}
    arguments = ["--data-dir", str(tmp_path), ISSUER, CLIENT]
    assert load(arguments, environ).oidc.oidc_required_claim == (("a", "1"), ("b", "2"))
    arguments += ["--oidc-required-claim=c=3"]
    assert load(arguments, environ).oidc.oidc_required_claim == (("c", "3"),)
    assert load([*arguments, "--oidc-required-claim="], environ).oidc.oidc_required_claim == ()


@pytest.mark.parametrize("flags", [[ISSUER], [CLIENT], ["--oidc-groups-claim=groups"]])
def test_issuer_and_client_go_together(tmp_path: Path, flags: list[str]) -> None:
    assert problems(tmp_path, *flags) == [
        "--oidc-issuer-url and --oidc-client-id must be given together, before any other --oidc-*"
    ]


@pytest.mark.parametrize(
    "url",
    ["http://h", "h", "https://", "https://u@h", "https://h?a", "https://h/#", "https://h:x", "https://[::1"],
)
def test_an_issuer_is_an_https_url(tmp_path: Path, url: str) -> None:
    (problem,) = problems(tmp_path, f"--oidc-issuer-url={url}", CLIENT)
    assert problem.startswith(f'--oidc-issuer-url: "{url}" is no issuer')


def test_everything_wrong_is_named_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        ISSUER,
        CLIENT,
        "--oidc-signing-algs=none,RS256,HS256",
        "--oidc-required-claim=a",
        "--oidc-required-claim=b=1,c=2,b=3",
        "--oidc-ca-file=/nowhere/ca.crt",
    )
    assert [problem.partition(" (")[0] for problem in found] == [
        '--oidc-required-claim: "a" is no assignment: write name=value',
        "--oidc-ca-file: /nowhere/ca.crt: No such file or directory",
        '--oidc-signing-algs: "none" is not supported',
        '--oidc-signing-algs: "HS256" is not supported',
        "--oidc-required-claim: b is required more than once",
    ]


def test_at_least_one_algorithm_is_needed(tmp_path: Path) -> None:
    assert problems(tmp_path, ISSUER, CLIENT, "--oidc-signing-algs=,") == [
        "--oidc-signing-algs: at least one must be given"
    ]


def warnings(tmp_path: Path, *flags: str) -> tuple[str, ...]:
    return load(["--data-dir", str(tmp_path), ISSUER, CLIENT, *flags], {}).warnings


@pytest.mark.parametrize("prefix", ["", "s", "system:", "system:masters"])
def test_groups_that_could_be_those_of_administrators_give_a_warning(tmp_path: Path, prefix: str) -> None:
    [warning] = warnings(tmp_path, "--oidc-groups-claim=groups", f"--oidc-groups-prefix={prefix}")
    assert warning.startswith("whoever can make groups at https://login.example.com can become an administrator here")
    assert "What to do: give --oidc-groups-prefix=oidc:" in warning


@pytest.mark.parametrize(
    "flags",
    [[], ["--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:"], ["--oidc-groups-prefix=system:"]],
    ids=["no groups", "prefix", "prefix without groups"],
)
def test_other_groups_give_none(tmp_path: Path, flags: list[str]) -> None:
    assert warnings(tmp_path, *flags) == ()
