"""Options about the serving certificate and the administrator."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from clusterregistry.apimachinery import certificates
from clusterregistry.apiserver.options import CompletedOptions, OptionsError, checks
from tests.product import load


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name in ("tls.crt", "tls.key", "ca.pem", "users.pem"):
        (tmp_path / name).write_text("x")
    return tmp_path


def own(files: Path) -> list[str]:
    return [f"--tls-cert-file={files / 'tls.crt'}", f"--tls-private-key-file={files / 'tls.key'}"]


def loaded(files: Path, *arguments: str, aggregated: bool = False) -> CompletedOptions:
    return load([*arguments, f"--data-dir={files / 'data'}"], {}, aggregated=aggregated)


def problems(files: Path, *arguments: str, aggregated: bool = False) -> list[str]:
    with pytest.raises(OptionsError) as raised:
        loaded(files, *arguments, aggregated=aggregated)
    return [str(problem) for problem in raised.value.problems]


def test_names_can_be_given_several_times_and_several_at_once(files: Path) -> None:
    given = loaded(files, "--tls-san=a.example.com,10.0.0.5", "--tls-san", "*.b.example.com", "--tls-san=::1")
    assert given.serving.tls_san == ("a.example.com", "10.0.0.5", "*.b.example.com", "::1")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("https://registry.example.com", "without https://"),
        ("registry.example.com:8443", "without the port"),
        ("10.0.0.5:8443", "without the port"),
        ("[fd00::1]:8443", "without the port"),
        ("10.0.0.0/8", "a network cannot be in a certificate"),
        ("*", "a wildcard is the whole first part"),
        ("reg*.example.com", "a wildcard is the whole first part"),
        ("a.*.example.com", "a wildcard is the whole first part"),
        ("*.*.example.com", "a wildcard is the whole first part"),
        ("-x", "such as registry.example.com"),
        ("300.1.2.3", "such as registry.example.com"),
        ("a" * 64, "such as registry.example.com"),
        ("0.0.0.0", "name the addresses"),
        ("::", "name the addresses"),
    ],
)
def test_what_cannot_be_in_a_certificate_is_a_problem_with_a_hint(files: Path, name: str, hint: str) -> None:
    (problem,) = problems(files, f"--tls-san=good.example.com,{name}")
    assert problem.startswith("--tls-san: ")
    assert name in problem
    assert hint in problem


def test_more_names_than_clients_accept_in_a_certificate_are_one_problem(files: Path) -> None:
    names = [f"host_{number}" for number in range(checks.MAX_CERTIFICATE_NAMES + 1)]
    (problem,) = problems(files, f"--tls-san={','.join(names)}")
    assert problem.startswith("--tls-san: 201 names are more than the 200 that")
    assert "*.example.com" in problem


def test_as_many_of_the_longest_names_as_allowed_fit_into_one_message_of_tls(files: Path) -> None:
    longest = ".".join(["a" * 63] * 3 + ["a" * 56])
    names = [f"{longest}.{number:03}a" for number in range(checks.MAX_CERTIFICATE_NAMES)]
    assert {len(name) for name in names} == {253}
    given = loaded(files, *(f"--tls-san={name}" for name in names)).serving.tls_san
    authority = certificates.new_authority(certificates.new_key(), now=0)
    certificate = certificates.serving_certificate(authority, certificates.new_key(), names=given, now=0)
    # The most that Go takes before 1.22; OpenSSL takes 100 KiB.
    assert len(ssl.PEM_cert_to_DER_cert(certificate.decode())) < 64 * 1024


def test_a_name_without_end_is_shown_in_part(files: Path) -> None:
    (problem,) = problems(files, f"--tls-san={'a' * 100_000}")
    assert len(problem) < 500
    assert 'aaa..."' in problem


def test_names_for_a_certificate_of_the_operators_are_refused(files: Path) -> None:
    (problem,) = problems(files, *own(files), "--tls-san=registry.example.com")
    assert "--tls-san: is for the generated certificate" in problem


def test_an_authority_without_a_certificate_is_refused(files: Path) -> None:
    (problem,) = problems(files, f"--tls-ca-file={files / 'ca.pem'}")
    assert "--tls-ca-file: is for a certificate of your own, and --tls-cert-file is not given" in problem


def test_an_authority_that_is_not_there_is_refused(files: Path) -> None:
    (problem,) = problems(files, *own(files), "--tls-ca-file=/nowhere/ca.pem")
    assert "--tls-ca-file: /nowhere/ca.pem: No such file" in problem


@pytest.mark.parametrize(
    ("own_serving", "own_users", "given", "made"),
    [
        (False, False, (), True),
        (True, False, (), True),
        (False, True, (), True),
        (True, True, (), False),
        (True, True, ("--generate-admin",), True),
        (True, True, ("--generate-admin=true",), True),
        (False, True, ("--generate-admin=false",), False),
    ],
)
def test_who_brings_both_authorities_gets_no_administrator(
    files: Path, *, own_serving: bool, own_users: bool, given: tuple[str, ...], made: bool
) -> None:
    users = [f"--client-ca-file={files / 'users.pem'}"] if own_users else []
    completed = loaded(files, *(own(files) if own_serving else ()), *users, *given)
    assert completed.generate_admin is made
    assert (files / "data" / "ca.crt" in completed.client_ca_files) is made
    assert (files / "users.pem" in completed.client_ca_files) is own_users
    assert completed.warnings == ()


def test_without_an_administrator_and_anybody_else_there_is_a_warning(files: Path) -> None:
    (warning,) = loaded(files, "--generate-admin=false").warnings
    assert "no user can sign in" in warning
    assert loaded(files, "--generate-admin=false", f"--token-auth-file={files / 'users.pem'}").warnings == ()


def test_an_administrator_is_no_matter_of_aggregated_mode(files: Path) -> None:
    flags = (f"--kubeconfig={files / 'ca.pem'}",)
    assert not loaded(files, *flags, aggregated=True).generate_admin
    assert not loaded(files, *flags, "--generate-admin=false", aggregated=True).generate_admin
    (problem,) = problems(files, *flags, "--generate-admin", aggregated=True)
    assert "--generate-admin: is only for `standalone`" in problem
