"""Heads that are large, or small and costly, are refused before they take much work."""

from __future__ import annotations

import pytest

from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.apiserver.api.objects import CLUSTERS
from tests.system.attacks.raw import Raw

PATH = CLUSTERS.encode()
MEBIBYTE = 1024 * 1024
AFFORDABLE = 2.0
"""CPU seconds that one head may cost; without limits these cost up to four."""


@pytest.mark.parametrize(
    "headers",
    [
        [b"a:"] * 260_000,
        [b"%x:" % number for number in range(100_000)],
        [b"a: b"] * 100_000,
        [b"X-Remote-Group: group-%d" % number for number in range(30_000)],
        [b"A: " + b"x" * 2 * MEBIBYTE],
        [b"x" * 2 * MEBIBYTE + b": a"],
    ],
    ids=["two bytes", "all different", "all the same", "groups", "one value", "one name"],
)
def test_too_many_headers_are_refused(raw: Raw, headers: list[bytes]) -> None:
    before = raw.program.cpu_seconds()
    assert raw.ask(PATH, headers=headers).statuses in ([431], [])
    assert raw.program.cpu_seconds() - before < AFFORDABLE


def test_as_many_headers_as_a_proxy_sends_are_taken(raw: Raw) -> None:
    groups = [b"X-Remote-Group: group-%d" % number for number in range(1500)]
    assert raw.ask(PATH, token=ADMIN_TOKEN, headers=groups).status == 200


@pytest.mark.parametrize(
    "target",
    [
        PATH + b"?" + b"a&" * 400_000,
        PATH + b"?" + b"%41=%42&" * 100_000,
        PATH + b"?labelSelector=" + b"a," * 300_000 + b"b",
        PATH + b"?labelSelector=a+in+(" + b"b," * 300_000 + b"b)",
        PATH + b"?fieldSelector=" + b"%5C%2C" * 100_000,
        b"/" + b"a/" * 400_000,
        b"/" + b"%41" * 300_000,
        b"/" + b"../" * 300_000,
    ],
    ids=["parameters", "escapes", "selectors", "sets", "fields", "segments", "escaped path", "dots"],
)
def test_a_url_that_is_too_long_is_refused(raw: Raw, target: bytes) -> None:
    before = raw.program.cpu_seconds()
    assert raw.ask(target, token=ADMIN_TOKEN).statuses in ([414], [])
    assert raw.program.cpu_seconds() - before < AFFORDABLE


@pytest.mark.parametrize("length", [1000, 16_000, 60_000])
def test_a_long_url_is_no_mistake(raw: Raw, length: int) -> None:
    selector = b"labelSelector=a+in+(" + b"b" * 63 + b",b" * (length // 2) + b")"
    assert raw.ask(PATH + b"?" + selector, token=ADMIN_TOKEN).status == 200


@pytest.mark.parametrize(
    "header",
    [
        b"Accept: " + b"a/b," * 250_000,
        b"Accept: a/b" + b";q=1" * 250_000,
        b"Accept: " + b"*/*;q=0." + b"1" * 900_000,
        b"Accept-Encoding: " + b"a," * 450_000,
        b"If-None-Match: " + b'"a",' * 200_000,
        b"Content-Type: application/json" + b";a=b" * 200_000,
        b"User-Agent: " + b"\xff" * 900_000,
        b"Cookie: " + b"a=b;" * 200_000,
    ],
    ids=["ranges", "parameters", "quality", "encodings", "tags", "content type", "agent", "cookies"],
)
def test_a_long_header_costs_little(raw: Raw, header: bytes) -> None:
    for token in (ADMIN_TOKEN, "", "wrong"):
        before = raw.program.cpu_seconds()
        assert raw.ask(PATH, token=token, headers=[header]).status in {200, 401, 403, 406}
        assert raw.program.cpu_seconds() - before < AFFORDABLE
