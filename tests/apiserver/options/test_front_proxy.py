from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.options import OptionsError
from tests.product import load


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    path = tmp_path / "proxies.crt"
    path.write_text("a certificate")
    return path


def problems(directory: Path, *arguments: str) -> list[str]:
    with pytest.raises(OptionsError) as raised:
        load(list(arguments), {"HOME": str(directory)})
    return [str(problem) for problem in raised.value.problems]


def test_without_authorities_there_is_no_front_proxy(tmp_path: Path) -> None:
    assert load([], {"HOME": str(tmp_path)}).proxy_ca_files == ()


def test_the_authorities_are_enough(tmp_path: Path, ca: Path) -> None:
    completed = load([f"--requestheader-client-ca-file={ca}"], {"HOME": str(tmp_path)})
    assert completed.proxy_ca_files == (ca,)
    options = completed.front_proxy
    assert options.requestheader_allowed_names == ()
    assert options.requestheader_username_headers == ("X-Remote-User",)
    assert options.requestheader_uid_headers == ("X-Remote-Uid",)
    assert options.requestheader_group_headers == ("X-Remote-Group",)
    assert options.requestheader_extra_headers_prefix == ("X-Remote-Extra-",)


def test_other_options_of_a_proxy_need_its_authorities(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "--requestheader-allowed-names=front-proxy")
    assert "without --requestheader-client-ca-file" in problem


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, f"--requestheader-client-ca-file={tmp_path / 'nothing'}", "--client-ca-file=")
    assert "--requestheader-client-ca-file" in problem
    assert "No such file" in problem


def test_all_that_is_wrong_is_said(tmp_path: Path, ca: Path) -> None:
    found = problems(
        tmp_path,
        f"--requestheader-client-ca-file={ca}",
        "--requestheader-username-headers=",
        "--requestheader-group-headers=X-Group,X Group",
        "--requestheader-extra-headers-prefix=X-Extra:",
    )
    assert len(found) == 3
    assert "at least one header" in found[0]
    assert '"X Group" is no name of a header' in found[1]
    assert '"X-Extra:" is no name of a header' in found[2]


def test_the_users_authority_is_for_proxies_only_with_names(tmp_path: Path, ca: Path) -> None:
    both = [f"--requestheader-client-ca-file={ca}", f"--client-ca-file={ca}"]
    (problem,) = problems(tmp_path, *both)
    assert "every user's certificate could pose as the front proxy" in problem
    assert load([*both, "--requestheader-allowed-names=proxy"], {"HOME": str(tmp_path)}).proxy_ca_files == (ca,)
    other = tmp_path / "users.crt"
    other.write_text("another certificate")
    assert load([both[0], f"--client-ca-file={other}"], {"HOME": str(tmp_path)}).proxy_ca_files == (ca,)
    missing = problems(tmp_path, both[0], f"--client-ca-file={tmp_path / 'nothing'}")
    assert len(missing) == 1


def test_suites_that_are_not_safe_are_refused_with_those_that_are(tmp_path: Path) -> None:
    good = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    (problem,) = problems(tmp_path, f"--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA,{good}")
    assert "TLS_RSA_WITH_AES_128_CBC_SHA" in problem
    assert good in problem
    assert load([f"--tls-cipher-suites={good}"], {"HOME": str(tmp_path)}).serving.tls_cipher_suites == (good,)
