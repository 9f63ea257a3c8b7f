"""The operator's own certificate: the authorities by which clients verify it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.pki import provision
from clusterregistry.apiserver.pki.own_certificate import ServerAuthorities, server_authorities
from clusterregistry.apiserver.pki.provision import ProvisionResult
from clusterregistry.client.kubeconfig import load_file
from tests.apiserver.pki.own_certificates import own, self_signed, serving
from tests.apiserver.pki.wants import layout_in, wanted
from tests.apiserver.server.authorities import Holder, root


@pytest.fixture
def signer(tmp_path: Path) -> Holder:
    return root(tmp_path / "signer", "signer")


def trusted_by(kubeconfig: Path) -> bytes:
    return base64.b64decode(load_file(kubeconfig).context().cluster["certificate-authority-data"])


def test_the_root_at_the_end_of_the_file_is_the_authority(signer: Holder) -> None:
    between = signer.authority("between")
    found = server_authorities(own(serving(between, "leaf"), between.certificate, signer.certificate))
    assert found == ServerAuthorities(signer.certificate.read_bytes())


def test_an_intermediate_at_the_end_of_the_file_is_the_authority(signer: Holder) -> None:
    between = signer.authority("between")
    found = server_authorities(own(serving(between, "leaf"), between.certificate))
    assert found == ServerAuthorities(between.certificate.read_bytes())


def test_what_has_not_signed_the_certificate_is_no_authority_of_it(signer: Holder, tmp_path: Path) -> None:
    stranger = root(tmp_path / "stranger", "stranger")
    leaf = serving(signer, "leaf")
    found = server_authorities(own(leaf, signer.certificate, stranger.certificate))
    assert found == ServerAuthorities(signer.certificate.read_bytes())
    another = serving(signer, "another")
    found = server_authorities(own(leaf, another.certificate))
    assert found.pem == leaf.certificate.read_bytes()


def test_a_certificate_that_has_signed_itself_is_its_own_authority(tmp_path: Path) -> None:
    alone = self_signed(tmp_path)
    assert server_authorities(own(alone)) == ServerAuthorities(alone.certificate.read_bytes())


def test_a_certificate_that_comes_alone_is_trusted_with_a_warning_for_the_kubeconfig(
    signer: Holder, tmp_path: Path
) -> None:
    leaf = serving(signer, "leaf")
    assert server_authorities(own(leaf)) == ServerAuthorities(leaf.certificate.read_bytes(), until_renewal=True)
    (warning,) = provision.provision(wanted(tmp_path, own=own(leaf))).warnings
    assert "every copy of it breaks when the certificate is renewed" in warning
    assert "--tls-ca-file" in warning
    assert provision.provision(wanted(tmp_path, own=own(leaf), administrator=False)).warnings == ()


def test_the_authorities_that_are_named_count(signer: Holder, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    next_one = root(tmp_path / "next", "next")
    bundle.write_text("Ours:\n" + signer.certificate.read_text() + "And soon:\n" + next_one.certificate.read_text())
    found = server_authorities(own(serving(signer, "leaf"), authorities=bundle))
    assert found == ServerAuthorities(signer.certificate.read_bytes() + next_one.certificate.read_bytes())


def test_named_authorities_that_do_not_verify_the_certificate_give_a_warning(signer: Holder, tmp_path: Path) -> None:
    stranger = root(tmp_path / "stranger", "stranger")
    found = server_authorities(own(serving(signer, "leaf"), authorities=stranger.certificate))
    (warning,) = found.warnings
    assert "stranger.crt (--tls-ca-file) does not verify" in warning
    assert "clients that trust it refuse this server" in warning


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_of_authorities_without_any_is_an_error(signer: Holder, tmp_path: Path, content: str | None) -> None:
    bundle = tmp_path / "ca.pem"
    if content is not None:
        bundle.write_text(content)
    with pytest.raises(CertificateError, match=r"ca\.pem (is missing|holds no certificate)"):
        server_authorities(own(serving(signer, "leaf"), authorities=bundle))


def test_the_kubeconfig_and_the_file_to_hand_out_hold_the_authority_alone(signer: Holder, tmp_path: Path) -> None:
    needed, layout = wanted(tmp_path, own=own(serving(signer, "leaf"), signer.certificate)), layout_in(tmp_path)
    assert f"{layout.server_ca} (what clients verify this server by)" in provision.provision(needed).made
    assert layout.server_ca.read_bytes() == trusted_by(layout.kubeconfig) == signer.certificate.read_bytes()
    assert provision.provision(needed) == provision.refresh_kubeconfig(needed) == ProvisionResult()


def test_the_authority_of_the_operator_never_becomes_one_of_users(signer: Holder, tmp_path: Path) -> None:
    provision.provision(wanted(tmp_path, own=own(serving(signer, "leaf"), signer.certificate)))
    assert layout_in(tmp_path).ca_certificate.read_text().count("BEGIN CERTIFICATE") == 1
    assert signer.certificate.read_text() not in layout_in(tmp_path).ca_certificate.read_text()


def test_the_kubeconfig_follows_another_authority(signer: Holder, tmp_path: Path) -> None:
    layout = layout_in(tmp_path)
    provision.provision(wanted(tmp_path, own=own(serving(signer, "leaf"), signer.certificate)))
    later = root(tmp_path / "later", "later")
    needed = wanted(tmp_path, own=own(serving(later, "leaf"), later.certificate))
    assert len(provision.provision(needed).made) == 1
    assert len(provision.refresh_kubeconfig(needed).made) == 1
    assert layout.server_ca.read_bytes() == trusted_by(layout.kubeconfig) == later.certificate.read_bytes()


def test_an_edited_kubeconfig_that_trusts_the_former_authority_gives_a_warning(signer: Holder, tmp_path: Path) -> None:
    layout = layout_in(tmp_path)
    needed = wanted(tmp_path, own=own(serving(signer, "leaf"), signer.certificate))
    provision.provision(needed)
    layout.kubeconfig.write_text(layout.kubeconfig.read_text() + "# mine\n")
    edited = layout.kubeconfig.read_bytes()
    assert provision.refresh_kubeconfig(needed) == ProvisionResult()
    later = root(tmp_path / "later", "later")
    needed = wanted(tmp_path, own=own(serving(later, "leaf"), later.certificate))
    provision.provision(needed)
    assert "was edited" in provision.refresh_kubeconfig(needed).warnings[0]
    assert layout.kubeconfig.read_bytes() == edited
    layout.kubeconfig.write_bytes(b"\n".join(line for line in edited.splitlines() if b"authority-data" not in line))
    assert provision.refresh_kubeconfig(needed) == ProvisionResult()


def test_without_the_operators_certificate_the_generated_authority_is_handed_out(
    signer: Holder, tmp_path: Path
) -> None:
    layout = layout_in(tmp_path)
    provision.provision(wanted(tmp_path, own=own(serving(signer, "leaf"), signer.certificate)))
    provision.provision(wanted(tmp_path))
    provision.refresh_kubeconfig(wanted(tmp_path))
    assert layout.server_ca.read_bytes() == layout.ca_certificate.read_bytes() == trusted_by(layout.kubeconfig)


def test_without_an_administrator_only_what_clients_verify_by_is_written(signer: Holder, tmp_path: Path) -> None:
    needed = wanted(tmp_path, own=own(serving(signer, "leaf"), signer.certificate), administrator=False)
    ensured = provision.provision(needed)
    assert len(ensured.made) == 1
    assert [path.name for path in layout_in(tmp_path).data_dir.rglob("*")] == ["server-ca.crt"]
    assert provision.refresh_kubeconfig(needed) == ProvisionResult()


def test_a_server_without_an_administrator_runs_also_where_nothing_can_be_written(
    signer: Holder, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("a file is in the way")
    needed = wanted(tmp_path, own=own(serving(signer, "leaf"), signer.certificate), administrator=False)
    ensured = provision.provision(needed)
    assert ensured.made == ()
    assert "cannot be written" in ensured.warnings[0]


def test_files_of_a_former_administrator_are_named_once_with_the_flag_that_keeps_them(
    signer: Holder, tmp_path: Path
) -> None:
    provision.provision(wanted(tmp_path))
    layout, brought = layout_in(tmp_path), own(serving(signer, "leaf"), signer.certificate)
    (warning,) = provision.leftovers(wanted(tmp_path, own=brought, administrator=False))
    assert all(str(path) in warning for path in (layout.ca_key, layout.ca_certificate, layout.kubeconfig))
    assert "--generate-admin=true" in warning
    (warning,) = provision.leftovers(wanted(tmp_path, administrator=False))
    assert str(layout.ca_key) not in warning
    assert str(layout.admin_key) in warning
    assert provision.leftovers(wanted(tmp_path, own=brought)) == ()
    assert provision.leftovers(wanted(tmp_path / "elsewhere", own=brought, administrator=False)) == ()
