from __future__ import annotations

from pathlib import Path

import pytest

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.pki import provision
from clusterregistry.apiserver.pki.provision import ProvisionResult
from tests.apiserver.pki.own_certificates import own, self_signed
from tests.apiserver.pki.test_provision import certificate, names_of
from tests.apiserver.pki.wants import DAY, NOW, layout_in, wanted


def test_certificates_near_their_end_are_renewed_and_the_keys_stay(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path), lambda: NOW)
    layout = layout_in(tmp_path)
    key, ca = layout.serving_key.read_bytes(), layout.ca_certificate.read_bytes()
    later = NOW + 300 * DAY
    ensured = provision.provision(wanted(tmp_path), lambda: later)
    assert [line.rpartition("/")[2] for line in ensured.made] == [
        "serving.crt (serving certificate, renewed)",
        "admin.crt (client certificate of the administrator, renewed)",
    ]
    assert certificate(layout.serving_certificate).not_valid_after_utc.timestamp() == later + 365 * DAY
    assert (layout.serving_key.read_bytes(), layout.ca_certificate.read_bytes()) == (key, ca)
    assert provision.provision(wanted(tmp_path), lambda: later) == ProvisionResult()


def test_the_kubeconfig_follows_a_renewed_certificate(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path), lambda: NOW)
    provision.provision(wanted(tmp_path), lambda: NOW + 300 * DAY)
    assert provision.refresh_kubeconfig(wanted(tmp_path)).made
    assert provision.refresh_kubeconfig(wanted(tmp_path)) == ProvisionResult()


def test_a_new_address_gets_a_new_serving_certificate_only(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path), lambda: NOW)
    admin = layout_in(tmp_path).admin_certificate.read_bytes()
    moved = wanted(tmp_path, names=("localhost", "10.1.2.3", "reg.example.com"))
    assert len(provision.provision(moved, lambda: NOW).made) == 1
    assert names_of(layout_in(tmp_path).serving_certificate) == {"localhost", "10.1.2.3", "reg.example.com"}
    assert layout_in(tmp_path).admin_certificate.read_bytes() == admin
    assert provision.provision(moved, lambda: NOW) == ProvisionResult()


def test_fewer_addresses_are_no_reason_to_renew(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path), lambda: NOW)
    assert provision.provision(wanted(tmp_path, names=("localhost",)), lambda: NOW) == ProvisionResult()


def names_and(*further: str) -> dict[str, tuple[str, ...]]:
    return {"names": ("localhost", *further), "further_names": further}


def test_a_further_name_makes_a_new_serving_certificate_and_so_does_one_less(tmp_path: Path) -> None:
    layout = layout_in(tmp_path)
    provision.provision(wanted(tmp_path, names=("localhost",)), lambda: NOW)
    for further in (("*.example.com",), ("*.example.com", "10.0.0.5"), ("10.0.0.5",), ()):
        needed = wanted(tmp_path, **names_and(*further))
        assert len(provision.provision(needed, lambda: NOW).made) == 1
        assert names_of(layout.serving_certificate) == {"localhost", *further}
        assert provision.provision(needed, lambda: NOW) == ProvisionResult()
    layout.record.unlink()
    assert provision.provision(wanted(tmp_path, **names_and()), lambda: NOW).made == ()


def test_no_serving_certificate_is_made_for_an_operator_who_has_one(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path, own=own(self_signed(tmp_path / "own"))), lambda: NOW)
    layout = layout_in(tmp_path)
    assert not layout.serving_certificate.exists()
    assert layout.admin_certificate.exists()


def test_a_server_does_not_outlive_its_authority(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path), lambda: NOW)
    layout = layout_in(tmp_path)
    end = certificate(layout.ca_certificate).not_valid_after_utc
    ensured = provision.provision(wanted(tmp_path), lambda: end.timestamp() - 100 * DAY)
    assert certificate(layout.serving_certificate).not_valid_after_utc == end
    assert "the CA ends in 100 days" in ensured.warnings[0]
    with pytest.raises(CertificateError, match="has expired"):
        provision.provision(wanted(tmp_path), lambda: end.timestamp() + 1)


def test_the_kubeconfig_follows_the_address_only_when_asked(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path), lambda: NOW)
    moved = wanted(tmp_path, server_url="https://127.0.0.1:9443")
    assert provision.provision(moved, lambda: NOW) == ProvisionResult()
    assert b":8443" in layout_in(tmp_path).kubeconfig.read_bytes()
    assert provision.refresh_kubeconfig(moved).made
    assert b":9443" in layout_in(tmp_path).kubeconfig.read_bytes()


def test_an_edited_kubeconfig_is_left_alone(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path), lambda: NOW)
    path = layout_in(tmp_path).kubeconfig
    path.write_text(path.read_text() + "# mine\n")
    edited = path.read_bytes()
    assert provision.refresh_kubeconfig(wanted(tmp_path)) == ProvisionResult()
    moved = provision.refresh_kubeconfig(wanted(tmp_path, server_url="https://127.0.0.1:9443"))
    assert "was edited" in moved.warnings[0]
    assert path.read_bytes() == edited


def test_a_removed_kubeconfig_comes_back(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path), lambda: NOW)
    before = layout_in(tmp_path).kubeconfig.read_bytes()
    layout_in(tmp_path).kubeconfig.unlink()
    assert len(provision.provision(wanted(tmp_path), lambda: NOW).made) == 1
    assert layout_in(tmp_path).kubeconfig.read_bytes() == before
