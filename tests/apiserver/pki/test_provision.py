from __future__ import annotations

import base64
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from clusterregistry.apiserver.authn.x509 import recognise
from clusterregistry.apiserver.pki import provision
from clusterregistry.apiserver.pki.own_certificate import OwnCertificate
from clusterregistry.apiserver.pki.provision import ProvisionResult
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
    document = yaml.safe_load(layout.kubeconfig.read_text())
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    assert cluster["server"] == "https://127.0.0.1:8443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == layout.ca_certificate.read_bytes()
    assert base64.b64decode(user["client-certificate-data"]) == layout.admin_certificate.read_bytes()
    assert base64.b64decode(user["client-key-data"]) == layout.admin_key.read_bytes()
    context = document["contexts"][0]
    assert document["current-context"] == context["name"]
    assert (context["context"]["cluster"], context["context"]["user"]) == (
        document["clusters"][0]["name"],
        document["users"][0]["name"],
    )


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
