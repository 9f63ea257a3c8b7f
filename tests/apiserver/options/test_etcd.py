from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apiserver.options import OptionsError
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from tests.product import ETCD_PREFIX, load


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


def problems(environ: dict[str, str], *arguments: str) -> list[str]:
    with pytest.raises(OptionsError) as raised:
        load(list(arguments), environ)
    return [str(problem) for problem in raised.value.problems]


@pytest.mark.parametrize("arguments", [[], ["--storage-backend=sqlite"]])
def test_without_servers_there_is_no_etcd(environ: dict[str, str], arguments: list[str]) -> None:
    assert load(arguments, environ).etcd is None


@pytest.mark.parametrize("more", [[], ["--storage-backend=etcd3"]])
def test_servers_are_enough(environ: dict[str, str], more: list[str]) -> None:
    completed = load(["--etcd-servers=http://10.0.0.1:2379,10.0.0.2:2379", *more], environ)
    assert completed.etcd == EtcdSettings(endpoints=("10.0.0.1:2379", "10.0.0.2:2379"), prefix=ETCD_PREFIX)


def test_everything_that_can_be_said_about_etcd(environ: dict[str, str], tmp_path: Path) -> None:
    for name in ("ca", "crt", "key", "password"):
        (tmp_path / name).write_text(f"{name}\n")
    arguments = [
        "--etcd-servers=https://[::1]:2379",
        "--etcd-prefix=/some/where/",
        f"--etcd-cafile={tmp_path / 'ca'}",
        f"--etcd-certfile={tmp_path / 'crt'}",
        f"--etcd-keyfile={tmp_path / 'key'}",
        "--etcd-username=registry",
        f"--etcd-password-file={tmp_path / 'password'}",
        "--etcd-compaction-interval=10m",
    ]
    etcd = load(arguments, environ).etcd
    assert etcd == EtcdSettings(
        endpoints=("[::1]:2379",),
        prefix="/some/where",
        tls=True,
        ca_file=tmp_path / "ca",
        certificate_file=tmp_path / "crt",
        key_file=tmp_path / "key",
        user="registry",
        password_file=tmp_path / "password",
        compaction_seconds=600.0,
    )


def test_files_do_not_depend_on_the_working_directory_later(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca").write_text("x")
    etcd = load(["--etcd-servers=https://a:1", "--etcd-cafile=ca"], environ).etcd
    assert etcd is not None
    assert etcd.ca_file == tmp_path / "ca"


@pytest.mark.parametrize(
    "server",
    [
        "ftp://a:1",
        "http://a",
        "http://a:x",
        "http://:1",
        "http://a:1/path",
        "http://a:99999",
        "http://[::1",
        "http://me:secret@a:1",
    ],
)
def test_what_is_no_member_is_named_without_its_password(environ: dict[str, str], server: str) -> None:
    (text,) = problems(environ, f"--etcd-servers={server}")
    assert text.startswith("--etcd-servers: ")
    assert "is no member of an etcd" in text
    assert "secret" not in text


def test_options_that_contradict_each_other_are_named_at_once(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "crt").write_text("x")
    found = problems(
        environ,
        "--storage-backend=sqlite",
        "--etcd-servers=http://a:1,https://b:1",
        "--etcd-prefix=x",
        f"--etcd-certfile={tmp_path / 'crt'}",
        "--etcd-username=me",
        "--etcd-cafile=/nowhere",
    )
    for expected in (
        "--etcd-servers: some are http and some https: use one of them for all",
        "--etcd-servers: is of no use with --storage-backend=sqlite: leave one of them out",
        '--etcd-prefix: "x" must begin with a slash',
        "--etcd-certfile and --etcd-keyfile must be given together",
        "--etcd-username and --etcd-password-file must be given together",
    ):
        assert expected in found
    assert any(text.startswith("--etcd-cafile: /nowhere") for text in found)


def test_etcd_without_servers_is_refused(environ: dict[str, str]) -> None:
    assert problems(environ, "--storage-backend=etcd3") == [
        "--storage-backend: etcd3 needs to know where etcd is: give --etcd-servers"
    ]
