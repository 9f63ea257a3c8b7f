"""Getting into an etcd: certificates, users and passwords, and what an operator is told when it does not work."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterregistry.apimachinery import certificates
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.etcd import client
from clusterregistry.apiserver.storage.etcd.member import Member
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.apiserver.storage.etcd.store import EtcdStorage
from tests.apiserver.storage.engines import settled
from tests.apiserver.storage.etcd_access import authority_in
from tests.apiserver.storage.etcd_engine import eventually, settings_for
from tests.apiserver.storage.etcd_servers import NEEDS_ETCD, EtcdCluster, Settings

pytestmark = NEEDS_ETCD

PASSWORD = "registry-password"
YEAR = 365 * 86400.0
IN_TIME = 25.0
"""Seconds: far more than the few that it takes, since the machine may be busy, and far less than never."""


@pytest.fixture
def impatient_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has what cannot succeed be given up soon."""
    monkeypatch.setattr(client, "PATIENCE_SECONDS", 0.3)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """An etcd that asks for client certificates."""
    directory = tmp_path_factory.mktemp("secured")
    prepared = EtcdCluster(directory, Settings(client_certificates=True))
    issue_certificates(directory)
    with prepared as etcd:
        yield etcd


def issue_certificates(directory: Path) -> None:
    """In place of those that are there: with one more, for a client, that expired a year ago."""
    now, key = time.time(), certificates.new_key()
    authority = certificates.new_authority(certificates.new_key(), now=now - 3 * YEAR)
    written = {
        "ca": certificates.certificate_pem(authority.certificate),
        "server": certificates.serving_certificate(authority, key, names=("127.0.0.1",), now=now),
        "client": certificates.client_certificate(authority, key, user="registry", group="", now=now),
        "expired": certificates.client_certificate(authority, key, user="registry", group="", now=now - 2 * YEAR),
        **dict.fromkeys(("server-key", "client-key"), certificates.key_pem(key)),
    }
    for name, content in written.items():
        (directory / f"{name}.pem").write_bytes(content)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[EtcdCluster]:
    """An etcd that asks for a user."""
    with EtcdCluster(tmp_path, Settings(user="registry", password=PASSWORD)) as etcd:
        yield etcd


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return path


async def is_usable(settings: EtcdSettings) -> bool:
    storage = await EtcdStorage.open(settings)
    revision = await storage.create(f"/{await storage.current_revision()}", b"1")
    await settled(storage)
    found = await storage.history("/", after=revision - 1)
    await storage.close()
    return [event.revision for event in found] == [revision]


async def refusal(settings: EtcdSettings) -> StorageUnavailable:
    """What opening a store is answered with; nothing may be left of it."""
    before = asyncio.all_tasks()
    with pytest.raises(StorageUnavailable) as caught:
        await EtcdStorage.open(settings)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    return caught.value


async def test_with_certificates_a_store_works(secured: EtcdCluster) -> None:
    assert await is_usable(settings_for(secured))


@pytest.mark.usefixtures("impatient_calls")
async def test_a_server_that_we_do_not_trust_is_not_used(secured: EtcdCluster, tmp_path: Path) -> None:
    stranger = authority_in(tmp_path).access
    for ca_file in (stranger.ca, None):
        error = await refusal(replace(settings_for(secured), ca_file=ca_file))
        assert "its certificate is not from an authority that we trust" in str(error)
        assert "--etcd-cafile" in error.remedy


@pytest.mark.usefixtures("impatient_calls")
async def test_a_missing_a_foreign_and_an_expired_certificate_are_told_of(secured: EtcdCluster, tmp_path: Path) -> None:
    settings, stranger = settings_for(secured), authority_in(tmp_path).access
    assert settings.ca_file is not None
    expired = settings.ca_file.with_name("expired.pem")
    for certificate, key in ((None, None), (stranger.certificate, stranger.key), (expired, settings.key_file)):
        error = await refusal(replace(settings, certificate_file=certificate, key_file=key))
        assert "it does not accept our certificate, or we have none to show" in str(error)
        assert "--etcd-certfile" in error.remedy


@pytest.mark.usefixtures("impatient_calls")
async def test_files_that_are_no_certificates_are_told_of(secured: EtcdCluster, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    settings = settings_for(secured)
    other_key = authority_in(tmp_path).access.key
    for wrong in (
        replace(settings, ca_file=nonsense),
        replace(settings, certificate_file=nonsense),
        replace(settings, key_file=other_key),
    ):
        assert "--etcd-cafile, --etcd-certfile, --etcd-keyfile" in (await refusal(wrong)).remedy
    error = await refusal(replace(settings, key_file=tmp_path / "absent"))
    assert "absent cannot be read" in str(error)


@pytest.mark.usefixtures("impatient_calls")
async def test_tls_on_one_side_only_is_told_of(secured: EtcdCluster, guarded: EtcdCluster) -> None:
    assert "https://" in (await refusal(replace(settings_for(secured), tls=False))).remedy
    assert "http://" in (await refusal(replace(settings_for(guarded), tls=True))).remedy


async def test_where_nobody_listens_opening_ends_soon_with_cause_and_remedy() -> None:
    begun = time.monotonic()
    error = await refusal(EtcdSettings(endpoints=("127.0.0.1:1", "127.0.0.1:2")))
    assert time.monotonic() - begun < IN_TIME
    assert "etcd at 127.0.0.1:1, 127.0.0.1:2: it cannot be reached" in str(error)
    assert "Connection refused" in str(error)
    assert "--etcd-servers" in error.remedy


async def test_a_frozen_server_is_waited_for_not_for_ever(guarded: EtcdCluster, password_file: Path) -> None:
    guarded.members[0].pause()
    begun = time.monotonic()
    error = await refusal(settings_for(guarded, password_file=password_file))
    assert time.monotonic() - begun < IN_TIME
    assert "it did not answer in time" in str(error)


@pytest.mark.usefixtures("impatient_calls")
async def test_a_name_that_cannot_be_found_is_told_of() -> None:
    error = await refusal(EtcdSettings(endpoints=("etcd.invalid:2379",)))
    assert "etcd.invalid" in str(error)
    assert "--etcd-servers" in error.remedy


async def test_with_a_password_a_store_works(guarded: EtcdCluster, password_file: Path) -> None:
    assert await is_usable(settings_for(guarded, password_file=password_file))


async def test_who_may_not_in_is_told_why(guarded: EtcdCluster, password_file: Path, tmp_path: Path) -> None:
    settings, wrong = settings_for(guarded, password_file=password_file), tmp_path / "wrong"
    wrong.write_text("wrong")
    error = await refusal(replace(settings, password_file=wrong))
    assert "does not accept our user and password" in str(error)
    assert "--etcd-password-file" in error.remedy
    error = await refusal(replace(settings, user="", password_file=None))
    assert "it asks for a user" in str(error)
    assert "--etcd-username" in error.remedy
    error = await refusal(replace(settings, prefix="/other"))
    assert "may not use the keys under --etcd-prefix" in str(error)
    assert "etcdctl role grant-permission" in error.remedy
    error = await refusal(replace(settings, password_file=tmp_path / "absent"))
    assert "cannot be read" in str(error)
    assert "--etcd-password-file" in error.remedy


async def test_a_user_for_an_etcd_that_asks_for_none_is_left_out(
    tmp_path: Path, password_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As etcd's own client does."""
    with EtcdCluster(tmp_path) as etcd:
        assert await is_usable(replace(settings_for(etcd, password_file=password_file), user="registry"))
    assert "etcd does not ask for users (etcdctl auth enable)" in caplog.text


async def test_users_can_be_switched_off_and_on_under_a_running_store(
    guarded: EtcdCluster, password_file: Path
) -> None:
    settings = settings_for(guarded, password_file=password_file)
    store = await EtcdStorage.open(settings)
    await store.create("/with-users", b"")
    await asyncio.to_thread(guarded.etcdctl, "auth", "disable")
    store._endpoints.session.forget(store._endpoints.session.token)  # as when it is refused
    await store.create("/without-users", b"")
    assert await is_usable(settings)
    await asyncio.to_thread(guarded.etcdctl, "auth", "enable")
    await store.create("/with-users-again", b"")
    await settled(store)
    assert store.problem() == ""
    await store.close()


async def test_a_token_that_etcd_does_not_know_is_replaced_once_for_all(
    guarded: EtcdCluster, password_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await EtcdStorage.open(settings_for(guarded, password_file=password_file))
    session, signed_in = store._endpoints.session, 0
    sign_in = session._sign_in

    async def counted(member: Member) -> str:
        nonlocal signed_in
        signed_in += 1
        return await sign_in(member)

    monkeypatch.setattr(session, "_sign_in", counted)
    session.token = "expired.1"
    revisions = await asyncio.gather(*(store.create(f"/{n}", b"") for n in range(20)))
    assert signed_in == 1
    await settled(store)
    session.token = "expired.2"
    found = await store.history("/", after=min(revisions) - 1)
    assert sorted(event.revision for event in found) == sorted(revisions)
    assert signed_in == 2
    await store.close()


async def test_a_token_that_expires_is_replaced_and_neither_watch_nor_writes_notice(
    tmp_path: Path, password_file: Path
) -> None:
    wanted = Settings(user="registry", password=PASSWORD, flags=("--auth-token-ttl=1",))
    with EtcdCluster(tmp_path, wanted) as etcd:
        store = await EtcdStorage.open(settings_for(etcd, password_file=password_file))
        received, written = list[int](), list[int]()
        store.subscribe("/", lambda events: received.extend(event.revision for event in events))
        first = store._endpoints.session.token
        async with asyncio.timeout(60):
            while store._endpoints.session.token == first:
                await asyncio.sleep(2.2)  # each use keeps it valid: only who is idle finds it expired
                written.append(await store.create(f"/{len(written)}", b""))
        written.append(await store.update("/0", b"1", expected=written[0]))
        await settled(store)
        assert received == written
        assert store.problem() == ""
        await store.close()


async def test_a_watch_that_has_to_begin_anew_with_a_token_of_no_use_signs_in_by_itself(
    guarded: EtcdCluster, password_file: Path
) -> None:
    store = await EtcdStorage.open(settings_for(guarded, password_file=password_file))
    received, written = list[int](), [await store.create("/before", b"")]
    await settled(store)
    store.subscribe("/", lambda events: received.extend(event.revision for event in events))
    (member,) = guarded.members
    for turn in range(2):
        token = store._endpoints.session.token
        for command in ("disable", "enable"):  # etcd then forgets all tokens; a restart alone brings them back
            await asyncio.to_thread(guarded.etcdctl, "auth", command)
        member.kill()
        await asyncio.to_thread(member.start)
        await eventually(lambda token=token: store._endpoints.session.token not in ("", token))  # type: ignore[misc]
        written.append(await store.create(f"/{turn}", b""))
    await settled(store)
    assert received == written[1:]
    await store.close()


@pytest.mark.usefixtures("impatient_calls")
async def test_a_write_that_does_not_get_beyond_the_sign_in_was_not_done(
    guarded: EtcdCluster, password_file: Path
) -> None:
    store = await EtcdStorage.open(settings_for(guarded, password_file=password_file))
    store._endpoints.session.token = ""
    guarded.members[0].pause()
    with pytest.raises(StorageUnavailable, match="it did not answer in time") as caught:
        await store.create("/a", b"")
    assert "not known" not in str(caught.value)
    guarded.members[0].resume()
    await store.close()


async def test_a_password_may_change_while_a_store_is_open(guarded: EtcdCluster, password_file: Path) -> None:
    store = await EtcdStorage.open(settings_for(guarded, password_file=password_file))
    received: list[int] = []
    store.subscribe("/", lambda events: received.extend(event.revision for event in events))
    for command in (["delete", "registry"], ["add", "registry:new"], ["grant-role", "registry", "registry"]):
        await asyncio.to_thread(guarded.etcdctl, "user", *command)
    with pytest.raises(StorageUnavailable, match="does not accept our user and password"):
        await store.create("/a", b"1")
    await asyncio.to_thread(password_file.write_text, "new")
    revision = await store.create("/a", b"1")
    await settled(store)
    assert received == [revision]
    await store.close()


async def test_rights_that_are_taken_away_and_given_back_stop_a_store_only_meanwhile(
    guarded: EtcdCluster, password_file: Path
) -> None:
    store = await EtcdStorage.open(settings_for(guarded, password_file=password_file))
    await asyncio.to_thread(guarded.etcdctl, "role", "revoke-permission", "registry", "/registry/", "--prefix=true")
    with pytest.raises(StorageUnavailable, match="may not use the keys"):
        await store.create("/a", b"1")
    assert "may not use the keys" in store.problem()
    grant = ("role", "grant-permission", "registry", "readwrite", "/registry/", "--prefix=true")
    await asyncio.to_thread(guarded.etcdctl, *grant)
    await store.create("/a", b"1")
    assert store.problem() == ""
    await store.close()
