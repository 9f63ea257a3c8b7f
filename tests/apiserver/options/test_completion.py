from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusterregistry.apiserver.options import CompletedOptions, OptionsError
from tests.product import load


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def problems(arguments: list[str], environ: dict[str, str]) -> list[str]:
    with pytest.raises(OptionsError) as raised:
        load(arguments, environ)
    return [str(problem) for problem in raised.value.problems]


def test_no_options_at_all_are_complete(tmp_path: Path, environ: dict[str, str]) -> None:
    completed = load([], environ)
    data = tmp_path / ".local" / "share" / "clusterregistry"
    assert completed.data_dir == data
    assert completed.layout.cert_dir == data / "certs"
    assert completed.serving_certificate == data / "certs" / "serving.crt"
    assert completed.serving_key == data / "certs" / "serving.key"
    assert completed.client_ca_files == (data / "ca.crt",)
    assert completed.server_url == "https://127.0.0.1:8443"
    assert completed.makes_serving_certificate
    assert completed.warnings == ()
    assert not data.exists()


def test_the_data_directory_follows_xdg_data_home(tmp_path: Path, environ: dict[str, str]) -> None:
    assert load([], environ | {"XDG_DATA_HOME": "/x"}).data_dir == Path("/x/clusterregistry")
    relative = load([], environ | {"XDG_DATA_HOME": "x"}).data_dir
    assert relative == tmp_path / ".local" / "share" / "clusterregistry"


def test_paths_do_not_depend_on_the_working_directory_later(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("tls.crt", "tls.key", "ca.pem"):
        (tmp_path / name).write_text("x")
    completed = load(
        [
            "--data-dir=d",
            "--tls-cert-file=tls.crt",
            "--tls-private-key-file=tls.key",
            "--tls-ca-file=ca.pem",
            "--client-ca-file=ca.pem",
            "--generate-admin",
        ],
        environ,
    )
    assert completed.data_dir == tmp_path / "d"
    assert completed.serving_certificate == tmp_path / "tls.crt"
    assert completed.serving_key == tmp_path / "tls.key"
    assert completed.server_ca_file == tmp_path / "ca.pem"
    assert completed.client_ca_files == (tmp_path / "d" / "ca.crt", tmp_path / "ca.pem")
    assert not completed.makes_serving_certificate


@pytest.mark.parametrize(
    ("arguments", "url"),
    [
        (["--bind-address=0.0.0.0"], "https://127.0.0.1:8443"),
        (["--bind-address=::"], "https://[::1]:8443"),
        (["--bind-address=10.1.2.3", "--secure-port=1"], "https://10.1.2.3:1"),
        (["--bind-address=0.0.0.0", "--advertise-address=reg.example.com"], "https://reg.example.com:8443"),
        (["--advertise-address=fd00::1"], "https://[fd00::1]:8443"),
    ],
)
def test_the_url_is_where_clients_find_the_server(arguments: list[str], url: str, environ: dict[str, str]) -> None:
    assert load(arguments, environ).server_url == url


def test_all_problems_are_named_at_once(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "file").write_text("x")
    arguments = [
        "--bind-address=localhost",
        "--secure-port=70000",
        "--advertise-address=1.2.3.444",
        f"--tls-cert-file={tmp_path / 'none.crt'}",
        f"--client-ca-file={tmp_path}",
        f"--token-auth-file={tmp_path / 'none.csv'}",
        "--authorization-mode=RBAC,Rbac,RBAC,zzz",
        "--request-timeout=0",
        "--min-request-timeout=0s",
        "--watch-cache=false",
        "--storage-backend=etcd3",
        "--v=-1",
        "--tls-min-version=VersionTLS10",
        "--secret-lint=maybe",
        f"--data-dir={tmp_path / 'file'}",
        "--authorization-always-allow",
        "--kubeconfig=x",
    ]
    text = "\n".join(problems(arguments, environ))
    for expected in (
        '--bind-address: "localhost" is not an IP address',
        "--secure-port: 70000 is not a port",
        '--advertise-address: "1.2.3.444" is neither',
        "--tls-cert-file and --tls-private-key-file must be given together",
        "none.crt: No such file",
        "is a directory, not a file",
        "none.csv: No such file",
        '"Rbac" is not a mode',
        "RBAC is named more than once",
        '"zzz" is not a mode',
        "--request-timeout: must be longer",
        "--min-request-timeout: must be longer",
        "--watch-cache: false is not supported yet",
        "--storage-backend: etcd3 needs to know where etcd is",
        "--v: must not be negative",
        '"VersionTLS10" is not one of',
        '"maybe" is not one of',
        "file is not a directory",
        "--authorization-always-allow is not supported yet",
        "--kubeconfig: is only for `aggregated`",
    ):
        assert expected in text


@pytest.mark.parametrize("port", ["0", "-1", "65536"])
def test_a_port_out_of_range_is_refused(port: str, environ: dict[str, str]) -> None:
    assert len(problems([f"--secure-port={port}"], environ)) == 1


def test_no_mode_at_all_is_refused(environ: dict[str, str]) -> None:
    assert problems(["--authorization-mode=,"], environ) == ["--authorization-mode: at least one mode must be given"]


def test_all_interfaces_cannot_be_advertised(environ: dict[str, str]) -> None:
    assert "no address that a client" in problems(["--advertise-address=0.0.0.0"], environ)[0]


@contextmanager
def another_user() -> Iterator[None]:
    """Root may read every file: the test runs as another user."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_an_unreadable_file_is_refused(environ: dict[str, str]) -> None:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).chmod(0)
        with another_user():
            found = problems([f"--token-auth-file={file.name}"], environ)
    assert "Permission denied" in found[0]


def test_anonymous_requests_are_refused_where_everything_is_allowed(environ: dict[str, str]) -> None:
    completed: CompletedOptions = load(["--authorization-mode=AlwaysAllow"], environ)
    assert completed.authentication.anonymous_auth is False
    assert len(completed.warnings) == 1
    assert load(["--authorization-mode=AlwaysAllow", "--anonymous-auth=false"], environ).warnings == ()


OPEN = "every user who has signed in may do everything, from other machines too"


@pytest.mark.parametrize(
    ("address", "modes"),
    [
        ("0.0.0.0", "AlwaysAllow"),
        ("::", "RBAC,AlwaysAllow"),
        ("192.0.2.7", "AlwaysAllow"),
        ("2001:db8::7", "AlwaysAllow"),
        ("::ffff:192.0.2.7", "AlwaysAllow"),
    ],
)
def test_allowing_everything_to_other_machines_gives_a_warning(
    environ: dict[str, str], address: str, modes: str
) -> None:
    flags = [f"--authorization-mode={modes}", "--anonymous-auth=false", f"--bind-address={address}"]
    [warning] = load(flags, environ).warnings
    assert warning.startswith(f"{OPEN}: --authorization-mode has AlwaysAllow and --bind-address is {address}.")
    assert "What to do: leave --authorization-mode out" in warning


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_allowing_everything_on_this_machine_gives_none(environ: dict[str, str], address: str) -> None:
    flags = ["--authorization-mode=AlwaysAllow", "--anonymous-auth=false", f"--bind-address={address}"]
    assert load(flags, environ).warnings == ()


def test_other_modes_may_serve_other_machines(environ: dict[str, str]) -> None:
    assert load(["--authorization-mode=RBAC,AlwaysDeny", "--bind-address=0.0.0.0"], environ).warnings == ()
