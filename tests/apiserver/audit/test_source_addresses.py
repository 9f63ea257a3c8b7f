"""Where a request came from."""

from __future__ import annotations

import pytest

from clusterregistry.apiserver.audit.event import source_addresses


@pytest.mark.parametrize(
    ("forwarded_for", "real_ip", "peer", "expected"),
    [
        ("", "", "10.0.0.1", ["10.0.0.1"]),
        ("", "", "", []),
        ("1.2.3.4, nonsense, ::1", "9.9.9.9", "10.0.0.1", ["1.2.3.4", "::1", "9.9.9.9", "10.0.0.1"]),
        ("1.2.3.4,9.9.9.9", "1.2.3.4", "9.9.9.9", ["1.2.3.4", "9.9.9.9"]),
        ("", "nonsense", "10.0.0.1", ["10.0.0.1"]),
        ("10.0.0.1, 1.2.3.4", "", "10.0.0.1", ["10.0.0.1", "1.2.3.4", "10.0.0.1"]),
    ],
)
def test_proxies_come_first_and_the_peer_last(forwarded_for: str, real_ip: str, peer: str, expected: list[str]) -> None:
    assert source_addresses(forwarded_for=forwarded_for, real_ip=real_ip, peer=peer) == expected


def test_a_client_cannot_make_the_list_long() -> None:
    found = source_addresses(forwarded_for=",".join(["1.2.3.4"] * 1000), real_ip="", peer="10.0.0.1")
    assert len(found) == 33
    assert found[-1] == "10.0.0.1"
