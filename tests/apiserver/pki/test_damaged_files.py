from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.pki import files, provision
from clusterregistry.apiserver.pki.files import Layout
from tests.apiserver.pki.wants import DAY, NOW, contents, layout_in, wanted

Damage = Callable[[Layout, Layout], object]


def _foreign(name: str) -> Damage:
    return lambda ours, theirs: getattr(ours, name).write_bytes(getattr(theirs, name).read_bytes())


def _garbage(name: str) -> Damage:
    return lambda ours, _: getattr(ours, name).write_bytes(b"garbage")


def _removed(name: str) -> Damage:
    return lambda ours, _: getattr(ours, name).unlink()


def _directory(name: str) -> Damage:
    def damage(ours: Layout, _: Layout) -> None:
        getattr(ours, name).unlink()
        getattr(ours, name).mkdir()

    return damage


def _serving_for_ca(ours: Layout, _: Layout) -> None:
    ours.ca_certificate.write_bytes(ours.serving_certificate.read_bytes())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_garbage("ca_certificate"), "ca.crt is damaged"),
        (_removed("ca_certificate"), "ca.crt is missing, and"),
        (_garbage("ca_key"), "ca.key is damaged"),
        (_foreign("ca_key"), "ca.crt and its key do not belong together"),
        (
            lambda ours, _: ours.ca_certificate.write_bytes(ours.serving_certificate.read_bytes()),
            "not the certificate of",
        ),
        (_garbage("serving_certificate"), "serving.crt is damaged"),
        (_garbage("serving_key"), "serving.key is damaged"),
        (_removed("serving_key"), "serving.key is missing"),
        (_foreign("serving_key"), "serving.crt and its key do not belong together"),
        (_garbage("admin_certificate"), "admin.crt is damaged"),
        (_directory("ca_certificate"), "ca.crt cannot be read: Is a directory"),
    ],
)
def test_a_damaged_or_foreign_file_is_an_error_with_a_remedy(tmp_path: Path, damage: Damage, message: str) -> None:
    for name in ("ours", "theirs"):
        provision.provision(wanted(tmp_path / name), lambda: NOW)
    damage(layout_in(tmp_path / "ours"), layout_in(tmp_path / "theirs"))
    before = contents(tmp_path)
    with pytest.raises(CertificateError, match=message) as raised:
        provision.provision(wanted(tmp_path / "ours"), lambda: NOW)
    assert "remove" in raised.value.remedy or "make it readable" in raised.value.remedy
    assert contents(tmp_path) == before


def test_a_certificate_of_another_authority_is_foreign(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        provision.provision(wanted(tmp_path / name), lambda: NOW)
    ours, theirs = layout_in(tmp_path / "ours"), layout_in(tmp_path / "theirs")
    for name in ("serving_certificate", "serving_key"):
        _foreign(name)(ours, theirs)
    with pytest.raises(CertificateError, match=r"serving\.crt is foreign"):
        provision.provision(wanted(tmp_path / "ours"), lambda: NOW)


def test_the_remedy_works(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path), lambda: NOW)
    layout = layout_in(tmp_path)
    layout.serving_certificate.write_bytes(b"garbage")
    with pytest.raises(CertificateError):
        provision.provision(wanted(tmp_path), lambda: NOW)
    layout.serving_certificate.unlink()
    layout.serving_key.unlink()
    assert len(provision.provision(wanted(tmp_path), lambda: NOW).made) == 1


@pytest.mark.parametrize("name", ["ca_certificate", "serving_certificate", "admin_certificate"])
def test_a_start_that_was_cut_short_after_a_key_is_completed(tmp_path: Path, name: str) -> None:
    layout = layout_in(tmp_path)
    provision.provision(wanted(tmp_path), lambda: NOW)
    key = getattr(layout, name.replace("certificate", "key"))
    content = key.read_bytes()
    for path in (*layout.cert_dir.iterdir(), layout.ca_certificate, layout.ca_key, layout.kubeconfig):
        path.unlink()
    key.write_bytes(content)
    provision.provision(wanted(tmp_path), lambda: NOW)
    assert key.read_bytes() == content


def day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def test_without_the_authoritys_key_a_server_runs_until_it_needs_it(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path), lambda: NOW)
    layout_in(tmp_path).ca_key.unlink()
    ensured = provision.provision(wanted(tmp_path), lambda: NOW)
    assert ensured.made == ()
    (warning,) = ensured.warnings
    assert "ca.key is missing: nothing can be signed or renewed" in warning
    assert f"goes on until {day(NOW + 365 * DAY)}" in warning
    assert f"from {day(NOW + 275 * DAY)} on none starts" in warning
    assert "restore" in warning
    assert provision.provision(wanted(tmp_path), lambda: NOW + 274 * DAY).made == ()
    with pytest.raises(CertificateError, match=r"ca\.key is missing"):
        provision.provision(wanted(tmp_path), lambda: NOW + 275 * DAY)
    with pytest.raises(CertificateError, match=r"ca\.key is missing"):
        provision.provision(wanted(tmp_path), lambda: NOW + 300 * DAY)


def test_an_authority_of_the_operators_own_is_used(tmp_path: Path) -> None:
    layout = layout_in(tmp_path)
    layout.data_dir.mkdir(parents=True)
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1000 -subj /CN=mine -addext keyUsage=keyCertSign"
    done = subprocess.run(
        [*command.split(), "-keyout", layout.ca_key, "-out", layout.ca_certificate], check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    mine = layout.ca_certificate.read_bytes()
    provision.provision(wanted(tmp_path))
    assert layout.ca_certificate.read_bytes() == mine
    verified = subprocess.run(
        ["openssl", "verify", "-CAfile", layout.ca_certificate, layout.serving_certificate, layout.admin_certificate],
        check=False,
        capture_output=True,
    )
    assert verified.returncode == 0, verified.stderr


def test_a_file_without_end_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(b"-" * (files.MAX_BYTES + 1))
    for each in (path, Path("/dev/zero")):
        with pytest.raises(CertificateError, match=r"is larger than 10 MiB") as raised:
            files.read(each)
        assert "certificates or a key in PEM" in raised.value.remedy


def test_a_place_that_cannot_be_written_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file is in the way")
    with pytest.raises(CertificateError, match="cannot be written") as raised:
        provision.provision(wanted(tmp_path), lambda: NOW)
    assert "--data-dir" in raised.value.remedy


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CertificateError, match="No space left"):
        files.write(path, b"new", mode=0o600)
    assert contents(tmp_path) == {"file": b"old"}
