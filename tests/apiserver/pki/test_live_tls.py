"""Certificates and authorities that change while the server runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterregistry.apimachinery import certificates
from clusterregistry.apimachinery.certificates import Authority
from clusterregistry.apimachinery.operator_error import CertificateError
from clusterregistry.apiserver.pki import live_tls, provision
from clusterregistry.apiserver.pki.live_tls import FurtherAuthorities, LiveTls, Loaded, TlsFiles, keep_current
from clusterregistry.apiserver.pki.tls import server_context
from tests.apiserver.pki.handshakes import shake_hands
from tests.apiserver.pki.wants import DAY, layout_in, wanted

LOGGER = "clusterregistry.apiserver.pki.live_tls"


class Folder:
    """The files of a server, each kind from an authority of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.names = TlsFiles(
            certificate=directory / "tls.crt",
            key=directory / "tls.key",
            client_cas=(directory / "clients.crt",),
            proxy_cas=(directory / "proxies.crt",),
            minimum="VersionTLS12",
        )
        self.serving, self.clients, self.proxies = authority(), authority(), authority()
        self.write()

    def write(self) -> None:
        """Writes a new serving certificate, and the authorities."""
        key = certificates.new_key()
        signed = certificates.serving_certificate(self.serving, key, names=("localhost",), now=time.time())
        self.names.certificate.write_bytes(signed)
        self.names.key.write_bytes(certificates.key_pem(key))
        self.names.client_cas[0].write_bytes(certificates.certificate_pem(self.clients.certificate))
        self.names.proxy_cas[0].write_bytes(certificates.certificate_pem(self.proxies.certificate))

    def client(self, signer: Authority | None = None) -> ssl.SSLContext:
        """Somebody who trusts the server as it is on disk, and may have a certificate."""
        trusted = certificates.certificate_pem(self.serving.certificate).decode()
        context = ssl.create_default_context(cadata=trusted)
        if signer is not None:
            key = certificates.new_key()
            pem = certificates.client_certificate(signer, key, user="jane", group="devs", now=time.time())
            path = self.directory / "client.pem"
            path.write_bytes(pem + certificates.key_pem(key))
            context.load_cert_chain(path)
        return context


_made = iter(range(1_000_000))


def authority() -> Authority:
    return certificates.new_authority(certificates.new_key(), now=time.time() - next(_made))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def live(folder: Folder) -> LiveTls:
    return LiveTls(folder.names)


def served(live: LiveTls, client: ssl.SSLContext, name: str | None = "localhost") -> bytes | None:
    """The certificate that a client gets to see."""
    return shake_hands(live.context, client, name)[1].getpeercert(binary_form=True)


def on_disk(path: Path) -> bytes:
    return ssl.PEM_cert_to_DER_cert(path.read_text())


def test_nothing_new_is_nothing_to_do(folder: Folder, live: LiveTls) -> None:
    before = live.loaded
    assert not live.look()
    folder.names.certificate.touch()
    assert not live.look()
    assert live.loaded is before


def test_a_new_serving_certificate_is_shown_to_those_who_come_next(folder: Folder, live: LiveTls) -> None:
    old = served(live, folder.client())
    folder.write()
    assert served(live, folder.client()) == old
    assert live.look()
    new = served(live, folder.client())
    assert new == on_disk(folder.names.certificate) != old


def test_a_client_that_names_no_server_meets_the_new_certificate_too(folder: Folder, live: LiveTls) -> None:
    folder.write()
    live.look()
    client = folder.client()
    client.check_hostname = False
    assert served(live, client, name=None) == on_disk(folder.names.certificate)


def test_open_connections_stay(folder: Folder, live: LiveTls) -> None:
    ours, theirs = shake_hands(live.context, folder.client(folder.clients), "localhost")
    folder.serving = folder.clients = authority()
    folder.write()
    assert live.look()
    assert theirs.version() == ours.version() == "TLSv1.3"
    assert ours.getpeercert(binary_form=True) is not None


@pytest.mark.parametrize("kind", ["clients", "proxies"])
def test_authorities_come_and_go(folder: Folder, live: LiveTls, kind: str) -> None:
    old, new = getattr(folder, kind), authority()
    of_old, of_new = folder.client(old), folder.client(new)
    shake_hands(live.context, of_old, "localhost")
    with pytest.raises(ssl.SSLError):
        shake_hands(live.context, of_new, "localhost")
    setattr(folder, kind, new)
    folder.write()
    assert live.look()
    of_old, of_new = folder.client(old), folder.client(new)
    shake_hands(live.context, of_new, "localhost")
    with pytest.raises(ssl.SSLError):
        shake_hands(live.context, of_old, "localhost")
    pem = {"clients": live.loaded.client_cas, "proxies": live.loaded.proxy_cas}[kind]
    assert pem == certificates.certificate_pem(new.certificate).decode()


def test_the_switch_of_a_link_is_noticed(tmp_path: Path) -> None:
    """As the kubelet exchanges a secret: a new directory, and ``..data`` led over to it in one step."""
    first, second = tmp_path / "..first", tmp_path / "..second"
    for directory in (first, second):
        directory.mkdir()
    old, new = Folder(first), Folder(second)
    (tmp_path / "..data").symlink_to("..first")
    for path in (old.names.certificate, old.names.key, *old.names.client_cas):
        (tmp_path / path.name).symlink_to(Path("..data") / path.name)
    live = LiveTls(
        TlsFiles(
            certificate=tmp_path / "tls.crt",
            key=tmp_path / "tls.key",
            client_cas=(tmp_path / "clients.crt",),
            minimum="VersionTLS12",
        )
    )
    assert served(live, old.client()) == on_disk(old.names.certificate)
    (tmp_path / "..switch").symlink_to("..second")
    (tmp_path / "..switch").replace(tmp_path / "..data")
    assert live.look()
    assert served(live, new.client()) == on_disk(new.names.certificate)


def break_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize("field", ["certificate", "key", "client_cas", "proxy_cas"])
@pytest.mark.parametrize("spoil", [Path.unlink, break_off], ids=["removed", "broken off"])
def test_what_cannot_be_used_leaves_the_former_in_use_and_is_said_once(
    folder: Folder, live: LiveTls, caplog: pytest.LogCaptureFixture, field: str, spoil: Callable[[Path], None]
) -> None:
    named = getattr(folder.names, field)
    path = named[0] if isinstance(named, tuple) else named
    before = on_disk(folder.names.certificate)
    client = folder.client(folder.clients)
    spoil(path)
    for _ in range(3):
        assert not live.look()
    (record,) = [each for each in caplog.records if each.name == LOGGER]
    assert record.levelno == logging.ERROR
    assert str(path) in record.getMessage()
    assert "What to do:" in record.getMessage()
    assert served(live, client) == before
    folder.write()
    assert live.look()
    assert served(live, folder.client(folder.clients)) == on_disk(folder.names.certificate)


def test_a_key_of_another_certificate_is_not_used(folder: Folder, live: LiveTls) -> None:
    before = on_disk(folder.names.certificate)
    folder.names.key.write_bytes(certificates.key_pem(certificates.new_key()))
    assert not live.look()
    assert served(live, folder.client()) == before


def test_a_file_that_turns_unreadable_is_said_once(
    folder: Folder, live: LiveTls, caplog: pytest.LogCaptureFixture
) -> None:
    folder.names.client_cas[0].unlink()
    folder.names.client_cas[0].mkdir()
    for _ in range(2):
        assert not live.look()
    assert len([each for each in caplog.records if each.name == LOGGER]) == 1


def test_an_exchange_that_is_under_way_is_not_complained_of(
    folder: Folder, live: LiveTls, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificate is new and the key is not, until just after it was tried."""
    former_key = folder.names.key.read_bytes()
    folder.write()
    new_key = folder.names.key.read_bytes()
    folder.names.key.write_bytes(former_key)

    def and_then_the_key(**arguments: object) -> ssl.SSLContext:
        try:
            return server_context(**arguments)  # type: ignore[arg-type]
        finally:
            folder.names.key.write_bytes(new_key)

    monkeypatch.setattr(live_tls, "server_context", and_then_the_key)
    assert not live.look()
    assert [each for each in caplog.records if each.name == LOGGER] == []
    assert live.look()


def test_a_start_with_files_that_cannot_be_used_fails(folder: Folder) -> None:
    folder.names.client_cas[0].unlink()
    with pytest.raises(CertificateError, match="missing"):
        LiveTls(folder.names)


# Going on for ever -----------------------------------------------------------------------------------------------


class Rounds:
    """Stands for the time between two looks: does something in each, and ends when there is nothing more to do."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = iter(steps)
        self.slept = 0.0

    async def __call__(self, seconds: float) -> None:
        self.slept += seconds
        step = next(self._steps, None)
        if step is None:
            raise asyncio.CancelledError
        step()


async def kept(live: LiveTls, rounds: Rounds, renew: Callable[[], None] = lambda: None) -> list[Loaded]:
    changes: list[Loaded] = []
    with contextlib.suppress(asyncio.CancelledError):
        await keep_current(live, renew=renew, on_change=changes.append, sleep=rounds)
    return changes


def nothing() -> None:
    pass


async def test_every_change_is_told(folder: Folder, live: LiveTls) -> None:
    changes = await kept(live, Rounds(nothing, folder.write, nothing, folder.write))
    assert len(changes) == 2
    assert changes[-1] is live.loaded


async def test_generated_certificates_are_renewed_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout, needed, now = layout_in(tmp_path), wanted(tmp_path), [time.time() - 300 * DAY]
    provision.provision(needed, lambda: now[0])
    live = LiveTls(
        TlsFiles(
            certificate=layout.serving_certificate,
            key=layout.serving_key,
            client_cas=(layout.ca_certificate,),
            minimum="VersionTLS12",
        )
    )
    before = on_disk(layout.serving_certificate)
    monkeypatch.setattr(live_tls, "RENEW_SECONDS", 2 * live_tls.LOOK_SECONDS)

    def ten_months_later() -> None:
        now[0] += 300 * DAY

    changes = await kept(live, Rounds(nothing, nothing, ten_months_later, nothing), _renewal(needed, now))
    assert len(changes) == 1
    client = ssl.create_default_context(cafile=layout.ca_certificate)
    assert served(live, client) == on_disk(layout.serving_certificate) != before


def _renewal(needed: provision.CertificateRequest, now: list[float]) -> Callable[[], None]:
    def renew() -> None:
        provision.provision(needed, lambda: now[0])

    return renew


async def test_a_renewal_that_fails_is_said_and_tried_again(
    live: LiveTls, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_tls, "RENEW_SECONDS", live_tls.LOOK_SECONDS)
    failures = iter([CertificateError("the disk is full", remedy="make room"), RuntimeError("a mistake of ours")])
    tried: list[None] = []

    def renew() -> None:
        tried.append(None)
        for failure in failures:
            raise failure

    assert await kept(live, Rounds(nothing, nothing, nothing), renew) == []
    assert len(tried) == 3
    messages = [each.getMessage() for each in caplog.records if each.name == LOGGER]
    assert messages == [
        "certificates could not be renewed: the disk is full. What to do: make room",
        "certificates could not be looked at",
    ]


def test_the_files_are_looked_at_often_and_certificates_renewed_long_before_they_end() -> None:
    assert live_tls.LOOK_SECONDS <= 10
    assert live_tls.RENEW_SECONDS <= 86400


def test_authorities_that_are_in_no_file_come_and_go(folder: Folder, live: LiveTls) -> None:
    further = authority()
    client = folder.client(further)
    pem = certificates.certificate_pem(further.certificate).decode()
    live.trust_also(FurtherAuthorities(origin="elsewhere", proxies=pem))
    shake_hands(live.context, client, "localhost")
    assert pem in live.loaded.proxy_cas
    assert pem not in live.loaded.client_cas
    folder.write()
    assert live.look()
    shake_hands(live.context, client, "localhost")
    live.trust_also(FurtherAuthorities())
    with pytest.raises(ssl.SSLError):
        shake_hands(live.context, client, "localhost")


def test_further_authorities_that_cannot_be_used_change_nothing(live: LiveTls) -> None:
    before = live.loaded
    with pytest.raises(CertificateError, match="elsewhere cannot be used"):
        live.trust_also(FurtherAuthorities(origin="elsewhere", clients="no certificate"))
    assert live.loaded is before
