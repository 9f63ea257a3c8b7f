from __future__ import annotations

import base64
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.authn.x509 import recognise
from clusterregistry.apiserver.pki import provision
from clusterregistry.apiserver.pki.own_certificate import OwnCertificate
from clusterregistry.apiserver.pki.provision import ProvisionResult, serving_names
from clusterregistry.client.kubeconfig import load_file
from tests.apiserver.pki.own_certificates import own, self_signed
from tests.apiserver.pki.wants import DAY, NOW, contents, layout_in, wanted


def ensure(directory: Path, at: float = NOW) -> ProvisionResult:
    return provision.provision(wanted(directory), lambda: at)


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names_of(path: Path) -> set[str]:
    found = certificate(path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def test_the_first_start_makes_everything_and_says_so(tmp_path: Path) -> None:
    ensured = ensure(tmp_path)
    layout = layout_in(tmp_path)
    made = [line.split(" (")[0] for line in ensured.made]
    assert made == [
        str(layout.ca_certificate),
        str(layout.serving_certificate),
        str(layout.admin_certificate),
        str(layout.kubeconfig),
    ]
    assert ensured.warnings == ()


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    ensure(tmp_path)
    before = contents(tmp_path)
    assert ensure(tmp_path, NOW + 100 * DAY) == ProvisionResult()
    assert provision.refresh_kubeconfig(wanted(tmp_path)) == ProvisionResult()
    assert contents(tmp_path) == before


def test_a_second_start_does_not_import_cryptography(tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path))
    program = (
        "import sys; from pathlib import Path; from clusterregistry.apiserver.pki import provision; "
        "from tests.apiserver.pki.wants import wanted; "
        "assert not provision.provision(wanted(Path(sys.argv[1]))).made; "
        "assert not provision.refresh_kubeconfig(wanted(Path(sys.argv[1]))).made; "
        "sys.exit('cryptography' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_the_record_everything_is_looked_at_and_kept(tmp_path: Path) -> None:
    ensure(tmp_path)
    before = contents(tmp_path)
    layout_in(tmp_path).record.unlink()
    assert ensure(tmp_path).made == ()
    # Of the kubeconfig the record then no longer knows that it is ours: it is left alone from now on.
    after = contents(tmp_path)
    assert {name: after[name] for name in before if "record" not in name} == {
        name: before[name] for name in before if "record" not in name
    }


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b'{"facts": {"ca": 1}, "kubeconfig": ""}', b"\xff"])
def test_a_damaged_record_is_made_anew(tmp_path: Path, damaged: bytes) -> None:
    ensure(tmp_path)
    layout_in(tmp_path).record.write_bytes(damaged)
    assert ensure(tmp_path).made == ()
    assert b"not_after" in layout_in(tmp_path).record.read_bytes()


def test_secrets_are_for_their_owner_only(tmp_path: Path) -> None:
    ensure(tmp_path)
    layout = layout_in(tmp_path)
    for secret in (layout.ca_key, layout.serving_key, layout.admin_key, layout.kubeconfig):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    for directory in (layout.data_dir, layout.cert_dir):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(layout.ca_certificate.stat().st_mode) == 0o644


def test_a_key_that_is_open_to_others_gives_a_warning(tmp_path: Path) -> None:
    ensure(tmp_path)
    layout_in(tmp_path).ca_key.chmod(0o644)
    (warning,) = ensure(tmp_path).warnings
    assert "ca.key is open to other users" in warning


def test_the_certificates_are_what_they_should_be(tmp_path: Path) -> None:
    ensure(tmp_path)
    layout = layout_in(tmp_path)
    ca, serving = certificate(layout.ca_certificate), certificate(layout.serving_certificate)
    assert ca.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    serving.verify_directly_issued_by(ca)
    assert names_of(layout.serving_certificate) == {"localhost", "127.0.0.1", "::1"}
    usage = serving.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    public = serving.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert public.curve.name == "secp256r1"


def test_the_administrator_is_a_master(tmp_path: Path) -> None:
    ensure(tmp_path)
    admin = certificate(layout_in(tmp_path).admin_certificate)
    admin.verify_directly_issued_by(certificate(layout_in(tmp_path).ca_certificate))
    assert [each.value for each in admin.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["admin"]
    user = recognise(admin)
    assert user.groups == ("system:masters", "system:authenticated")


def test_the_kubeconfig_holds_all_that_kubectl_needs(tmp_path: Path) -> None:
    ensure(tmp_path)
    layout = layout_in(tmp_path)
    context = load_file(layout.kubeconfig).context()
    cluster, user = context.cluster, context.user
    assert cluster["server"] == "https://127.0.0.1:8443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == layout.ca_certificate.read_bytes()
    assert base64.b64decode(user["client-certificate-data"]) == layout.admin_certificate.read_bytes()
    assert base64.b64decode(user["client-key-data"]) == layout.admin_key.read_bytes()


def test_several_first_starts_at_once_agree_on_one_authority(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        ensured = list(pool.map(lambda _: ensure(tmp_path), range(4)))
    assert sum("certificate authority" in line for each in ensured for line in each.made) == 1
    assert ensure(tmp_path) == ProvisionResult()


def test_without_an_administrator_there_is_none(tmp_path: Path) -> None:
    needed = wanted(tmp_path, administrator=False)
    assert len(provision.provision(needed, lambda: NOW).made) == 2
    assert {path.name for path in tmp_path.rglob("*.*")} == {"ca.crt", "ca.key", "serving.crt", "serving.key",
                                                             "record.json", ".lock"}  # fmt: skip
    assert provision.provision(needed, lambda: NOW).made == ()


def test_behind_a_kube_apiserver_nothing_is_made_beside_the_operators_certificate(tmp_path: Path) -> None:
    own = OwnCertificate(certificate=tmp_path / "own.crt", key=tmp_path / "own.key")
    assert provision.provision(wanted(tmp_path, administrator=False, server_ca=False, own=own)) == ProvisionResult()
    assert list(tmp_path.iterdir()) == []


# Renewal


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


# Names of the server

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@pytest.mark.parametrize(
    ("addresses", "more"),
    [
        ((), ()),
        (("127.0.0.1", ""), ()),
        (("0.0.0.0", "::"), ()),
        (("10.0.0.1", "Reg.Example.COM"), ("10.0.0.1", "reg.example.com")),
        (("FD00:0:0::1",), ("fd00::1",)),
        (("fe80::1%eth0",), ("fe80::1",)),
        (("not a name", "-x", "a..b", "x" * 64), ()),
    ],
)
def test_a_server_has_the_names_that_lead_to_it(addresses: tuple[str, ...], more: tuple[str, ...]) -> None:
    assert serving_names(*addresses, host_name="") == LOOPBACK + more


def test_the_host_name_is_one_of_them() -> None:
    assert serving_names(host_name="Box-1") == (*LOOPBACK, "box-1")
    assert serving_names(host_name="my_box!") == LOOPBACK
