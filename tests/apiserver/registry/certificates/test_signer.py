"""Approved requests of the own signer get a certificate, once, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from clusterregistry.apiserver.authn.certificates import Authorities, Recognition
from clusterregistry.apiserver.authn.x509 import recognise
from clusterregistry.apiserver.registry.certificates import signer
from clusterregistry.apiserver.registry.certificates.signer import OwnAuthority, SigningController, run_signer
from clusterregistry.apiserver.registry.deletion import DeleteOptions
from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.object_bytes import decoded, to_stored
from tests.api.certificates.signing_requests import condition, in_base64, pkcs10, signing_request
from tests.apiserver.registry.certificates.request_store import Requests, open_requests, own_authority, requests_over
from tests.apiserver.storage.etcd_engine import eventually

Object = dict[str, Any]


@pytest.fixture
async def requests(tmp_path: Path) -> AsyncIterator[Requests]:
    async with open_requests(tmp_path) as kept:
        yield kept


@pytest.fixture
def authority(tmp_path: Path) -> OwnAuthority:
    return own_authority(tmp_path, now=time.time())


def issued(request: Object) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(request["status"]["certificate"]))


async def settled(requests: Requests, authority: OwnAuthority | None) -> None:
    running = SigningController(requests.writer, authority)
    await running.settle()
    running.close()


@pytest.mark.parametrize("kind", ["rsa2048", "secp256r1", "secp384r1", "ed25519"])
async def test_an_approved_request_is_signed(requests: Requests, authority: OwnAuthority, kind: str) -> None:
    request = signing_request("a", pkcs10(kind))
    await requests.create(request | {"metadata": {"name": "a", "labels": {"b": "c"}}})
    await requests.decide("a")
    await settled(requests, authority)
    found = await requests.get("a")
    trusted = Authorities(authority.certificate.read_text())
    user = Recognition(trusted, recognise, purpose="a user").of((issued(found).public_bytes(Encoding.DER),))
    assert (user.name, user.groups) == ("jane", ("devs", "system:authenticated"))
    _, entry = found["metadata"]["managedFields"]
    assert (entry["manager"], entry["subresource"]) == (signer.MANAGER, "status")
    assert entry["fieldsV1"] == {"f:status": {"f:certificate": {}}}


async def test_other_requests_are_left_alone(requests: Requests, authority: OwnAuthority) -> None:
    await requests.create(signing_request("pending"))
    await requests.create(signing_request("denied"))
    await requests.create(signing_request("other", signerName="example.com/sig"))
    await requests.create(signing_request("failed"))
    await requests.decide("denied", "Denied")
    await requests.decide("other")
    await requests.decide("failed")
    failed = [condition("Approved"), condition("Failed")]
    await requests.update("failed", "status", conditions=failed)
    before = [await requests.get(name) for name in ("pending", "denied", "other", "failed")]
    await settled(requests, authority)
    assert [await requests.get(name) for name in ("pending", "denied", "other", "failed")] == before


async def test_a_certificate_is_never_replaced(requests: Requests, authority: OwnAuthority) -> None:
    await requests.create(signing_request("a"))
    await requests.decide("a")
    await settled(requests, authority)
    first = await requests.get("a")
    await settled(requests, authority)
    assert await requests.get("a") == first


@pytest.mark.parametrize(
    ("usages", "message"),
    [
        (["client auth", "server auth"], "invalid usage for client certificate: server auth"),
        (["digital signature"], "missing required usage for client certificate: client auth"),
    ],
)
async def test_a_request_that_does_not_fit_fails(
    requests: Requests, authority: OwnAuthority, usages: list[str], message: str
) -> None:
    await requests.create(signing_request("a", usages=usages))
    await requests.decide("a", reason="Good")
    await settled(requests, authority)
    status = (await requests.get("a"))["status"]
    approved, failed = status["conditions"]
    assert "certificate" not in status
    assert approved["reason"] == "Good"
    assert failed.pop("lastUpdateTime")
    assert failed.pop("lastTransitionTime")
    assert failed == condition("Failed", reason="SignerValidationFailure", message=message)


async def test_weak_keys_fail(requests: Requests, authority: OwnAuthority) -> None:
    for name, kind in (("a", "rsa1024"), ("b", "secp224r1")):
        await requests.create(signing_request(name, pkcs10(kind)))
        await requests.decide(name)
    await settled(requests, authority)
    messages = [(await requests.get(name))["status"]["conditions"][1]["message"] for name in ("a", "b")]
    assert messages == [
        "a key of 1024 bits is too weak for TLS: use one of 2048 bits",
        "TLS has no keys on the curve secp224r1: use secp256r1",
    ]


async def test_approvals_are_signed_as_they_come(requests: Requests, authority: OwnAuthority) -> None:
    await requests.create(signing_request("before"))
    await requests.decide("before")
    async with run_signer(requests.writer, authority):
        await eventually(lambda: has_certificate(requests, "before"), seconds=30.0)
        await requests.create(signing_request("after"))
        await requests.decide("after")
        await eventually(lambda: has_certificate(requests, "after"), seconds=30.0)


def has_certificate(requests: Requests, name: str) -> bool:
    kv = requests.store.get_cached(name)
    return kv is not None and b'"certificate"' in kv.value


async def test_two_replicas_issue_one_certificate(requests: Requests, authority: OwnAuthority) -> None:
    names = [f"a{number}" for number in range(10)]
    for name in names:
        await requests.create(signing_request(name))
        await requests.decide(name)
    before = requests.store.storage.revision
    async with requests_over(requests.store.storage) as other:
        replicas = [SigningController(requests.writer, authority), SigningController(other.writer, authority)]
        await asyncio.gather(*(each.settle() for each in replicas))
        for each in replicas:
            each.close()
        assert requests.store.storage.revision == before + len(names)
        assert all(has_certificate(requests, name) for name in names)


async def test_a_request_that_was_made_again_gets_no_certificate_of_the_former(
    requests: Requests, authority: OwnAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    await requests.create(signing_request("a"))
    await requests.decide("a")
    loop = asyncio.get_running_loop()

    async def remade() -> None:
        await requests.store.delete("a", DeleteOptions())
        await requests.create(signing_request("a"))

    def read(self: OwnAuthority) -> Any:
        asyncio.run_coroutine_threadsafe(remade(), loop).result(30)
        return original(self)

    original = OwnAuthority.read
    monkeypatch.setattr(OwnAuthority, "read", read)
    await settled(requests, authority)
    assert (await requests.get("a"))["status"] == {}


async def test_a_request_that_changes_meanwhile_is_signed_as_it_is_then(
    requests: Requests, authority: OwnAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    await requests.create(signing_request("a"))
    await requests.decide("a")
    loop, changes = asyncio.get_running_loop(), iter([condition("Own")])

    async def change(more: Object) -> None:
        before = (await requests.get("a"))["status"]["conditions"]
        await requests.update("a", "status", conditions=[*before, more])

    def read(self: OwnAuthority) -> Any:
        for each in changes:
            asyncio.run_coroutine_threadsafe(change(each), loop).result(30)
        return original(self)

    original = OwnAuthority.read
    monkeypatch.setattr(OwnAuthority, "read", read)
    await settled(requests, authority)
    status = (await requests.get("a"))["status"]
    assert [each["type"] for each in status["conditions"]] == ["Approved", "Own"]
    assert status["certificate"]


async def test_a_mistake_with_one_request_does_not_keep_others_unsigned(
    requests: Requests, authority: OwnAuthority, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        await requests.create(signing_request(name))
        await requests.decide(name)
    failures = iter([RuntimeError("a mistake")])

    def read(self: OwnAuthority) -> Any:
        for each in failures:
            raise each
        return original(self)

    original = OwnAuthority.read
    monkeypatch.setattr(OwnAuthority, "read", read)
    await settled(requests, authority)
    assert [has_certificate(requests, name) for name in ("a", "b")] == [False, True]
    assert "a mistake" in caplog.text


async def test_without_an_authority_the_log_says_so_once(requests: Requests, caplog: pytest.LogCaptureFixture) -> None:
    running = SigningController(requests.writer, None)
    await running.settle()
    assert not caplog.records
    for name in ("a", "b"):
        await requests.create(signing_request(name))
        await requests.decide(name)
    await running.settle()
    running.close()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "no authority of its own" in caplog.text


async def test_a_lost_key_is_reported_and_may_come_back(
    requests: Requests, authority: OwnAuthority, caplog: pytest.LogCaptureFixture
) -> None:
    key = authority.key.read_bytes()
    authority.key.unlink()
    await requests.create(signing_request("a"))
    await requests.decide("a")
    running = SigningController(requests.writer, authority)
    await running.settle()
    assert "ca.key is missing" in caplog.text
    authority.key.write_bytes(key)
    await requests.update("a", "approval", conditions=[condition("Approved", reason="Again")])
    await running.settle()
    running.close()
    assert has_certificate(requests, "a")


async def test_signing_goes_on_after_a_failure_of_the_storage(
    requests: Requests, authority: OwnAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signer, "_RETRY_INTERVAL", 0.01)
    await requests.create(signing_request("a"))
    await requests.decide("a")
    update = requests.store.storage.update
    failures: list[Any] = []

    async def fails_first(*arguments: Any, **keywords: Any) -> int:
        if len(failures) < 2:
            failures.append(arguments)
            raise StorageUnavailable("the disk is full")
        return await update(*arguments, **keywords)

    monkeypatch.setattr(requests.store.storage, "update", fails_first)
    async with run_signer(requests.writer, authority):
        await eventually(lambda: has_certificate(requests, "a"), seconds=30.0)
    assert len(failures) == 2


async def test_a_request_that_validation_would_refuse_is_skipped(
    requests: Requests, authority: OwnAuthority, caplog: pytest.LogCaptureFixture
) -> None:
    await requests.create(signing_request("a"))
    await requests.decide("a")
    kv = await requests.store.get("a")
    broken = decoded(kv)
    broken["spec"]["request"] = in_base64(b"junk")
    await requests.store.storage.update(kv.key, to_stored(broken), expected=kv.revision)
    await settled(requests, authority)
    # No write to such a request is valid, not even that of the signer.
    assert not has_certificate(requests, "a")
    assert "is not stored" in caplog.text
