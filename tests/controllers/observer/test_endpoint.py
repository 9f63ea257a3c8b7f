"""The choice of an address of a cluster, and of what is trusted there."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.api.clusterregistry.server_endpoints import MAX_ENDPOINTS, server_url
from clusterregistry.controllers.observer.endpoint import EndpointError, choose_endpoint, source_addresses
from clusterregistry.controllers.observer.failure import MAX_MESSAGE
from clusterregistry.controllers.observer.observation import Reason

INSIDE, OUTSIDE = "10.1.2.3", "198.51.100.7"


def endpoints(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"spec": {"kubernetesApiEndpoints": {"serverEndpoints": list(entries), **more}}}


def at(address: Any, cidr: Any = None) -> dict[str, Any]:
    return {"serverAddress": address, **({} if cidr is None else {"clientCIDR": cidr})}


def chosen(*entries: Any, by: str = OUTSIDE) -> str:
    return choose_endpoint(endpoints(*entries), addresses=[by]).url


def refusal(cluster: dict[str, Any], by: str = OUTSIDE) -> str:
    with pytest.raises(EndpointError) as caught:
        choose_endpoint(cluster, addresses=[by])
    assert caught.value.failure.reason is Reason.NO_ENDPOINT
    message = caught.value.failure.message
    assert len(message) <= MAX_MESSAGE
    assert message.isprintable()
    return message


@pytest.mark.parametrize(
    ("by", "expected"),
    [(INSIDE, "https://deep:443"), ("10.9.9.9", "https://wide:443"), (OUTSIDE, "https://public:443")],
)
def test_the_most_specific_network_with_an_address_of_the_observer_wins(by: str, expected: str) -> None:
    entries = at("public", "0.0.0.0/0"), at("wide", "10.0.0.0/8"), at("deep", "10.1.0.0/16"), at("other", "10.2.0.0/24")
    assert chosen(*entries, by=by) == expected


def test_of_equal_networks_the_first_one_wins() -> None:
    assert chosen(at("first", "10.0.0.0/8"), at("second", "10.0.0.0/8"), by=INSIDE) == "https://first:443"
    assert chosen(at("first"), at("second", "0.0.0.0/0"), at("third", "::/0")) == "https://first:443"


def test_networks_of_ipv6_are_for_observers_with_ipv6() -> None:
    entries = at("everybody", "::/0"), at("six", "2001:db8::/32"), at("four", "10.0.0.0/8")
    assert chosen(*entries, by="2001:db8::7") == "https://six:443"
    assert chosen(*entries, by=INSIDE) == "https://four:443"
    assert chosen(*entries, by="2001:db9::7") == "https://everybody:443"


def test_host_bits_in_a_network_do_not_count() -> None:
    assert chosen(at("a", "10.1.2.99/8"), by=INSIDE) == "https://a:443"


def test_a_network_that_is_none_is_passed_over() -> None:
    assert chosen(at("a", "10.0.0.0/99"), at("b", 7), at("c", "all of them"), at("d"), by=INSIDE) == "https://d:443"


def test_own_addresses_are_those_of_the_route_to_the_server() -> None:
    assert source_addresses("https://127.0.0.9:6443") == ["127.0.0.1"]
    cluster = endpoints(at("127.0.0.9:6443", "127.0.0.0/8"), at("elsewhere", "0.0.0.0/0"))
    assert choose_endpoint(cluster).url == "https://127.0.0.9:6443"
    assert choose_endpoint(endpoints(at("127.0.0.9", "10.99.0.0/16"), at("elsewhere"))).url == "https://elsewhere:443"


def test_without_a_route_there_are_no_own_addresses() -> None:
    assert not source_addresses("https://255.255.255.255:1")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("host", "https://host:443"),
        ("host.example.com:6443", "https://host.example.com:6443"),
        ("HOST.", "https://host:443"),
        ("192.0.2.7", "https://192.0.2.7:443"),
        ("192.0.2.7:6443", "https://192.0.2.7:6443"),
        ("2001:db8::1", "https://[2001:db8::1]:443"),
        ("[2001:db8::1]", "https://[2001:db8::1]:443"),
        ("[2001:db8::1]:6443", "https://[2001:db8::1]:6443"),
        ("https://host", "https://host:443"),
        ("HTTPS://host:6443/k8s/clusters/c-1/", "https://host:6443/k8s/clusters/c-1"),
        ("https://[2001:db8::1]:6443", "https://[2001:db8::1]:6443"),
    ],
)
def test_an_address_may_be_a_host_with_a_port_or_an_https_url(address: str, url: str) -> None:
    assert server_url(address) == url


@pytest.mark.parametrize(
    "address",
    [
        "http://host",
        "http://host:443",
        "ftp://host",
        "file:///etc/passwd",
        "unix:///run/api.sock",
        "//host",
        "host/path",
        "https://user:secret@host",
        "https://user@host",
        "user:secret@host:443",
        "https://host:6443@other",
        "https://host\\@other",
        "https://host/\r\nx: y",
        "https://host/a b",
        "host\nother",
        " host",
        "https://",
        "https:///p",
        "host:0",
        "host:65536",
        "host:443:1",
        "[::1",
        "fe80::1%eth0",
        "https://[fe80::1%25eth0]",
        "ho st",
        "\ud800",
        "",
        "https://" + "h" * 5000,
    ],
)
def test_hostile_and_wrong_addresses_are_not_used(address: str) -> None:
    assert server_url(address) is None
    assert chosen(at(address), at("well")) == "https://well:443"
    refusal(endpoints(at(address)))


@given(st.one_of(st.text(), st.builds("https://{}".format, st.text()), st.from_regex(r"https?://[^/]*@?[^/]*:\d*/.*")))
def test_any_text_is_an_https_url_without_user_information_or_no_address(text: str) -> None:
    url = server_url(text)
    if url is not None:
        parts = urlsplit(url)
        assert parts.scheme == "https"
        assert parts.hostname
        assert parts.port
        assert "@" not in parts.netloc
        assert url.isprintable()
        assert not parts.query
        assert not parts.fragment


def test_http_is_told_as_the_reason() -> None:
    assert "http://" in refusal(endpoints(at("http://host")))


def test_what_may_hold_a_password_is_not_told() -> None:
    message = refusal(endpoints(at("https://user:secret@host")))
    assert "secret" not in message
    assert "serverAddress" in message


def test_a_wrong_address_is_told_in_one_bounded_line() -> None:
    assert "'ho st'" in refusal(endpoints(at("ho\nst")))
    assert len(refusal(endpoints(at("x y" * 100_000)))) < MAX_MESSAGE


@pytest.mark.parametrize(
    "cluster",
    [
        {},
        {"spec": None},
        {"spec": {"kubernetesApiEndpoints": []}},
        endpoints(),
        endpoints(None, 7, "host", {}, at(""), at(7)),
        {"spec": {"kubernetesApiEndpoints": {"serverEndpoints": {"a": 1}}}},
    ],
)
def test_without_an_address_there_is_no_endpoint(cluster: dict[str, Any]) -> None:
    assert "no entry" in refusal(cluster)


def test_networks_of_others_alone_are_told_as_the_reason() -> None:
    assert "clientCIDR" in refusal(endpoints(at("host", "10.0.0.0/8")))


def test_only_so_many_entries_are_looked_at() -> None:
    assert "no entry" in refusal(endpoints(*[at("")] * MAX_ENDPOINTS, at("beyond")))


def test_the_bundle_of_authorities_is_decoded() -> None:
    pem = b"-----BEGIN CERTIFICATE-----\n"
    found = choose_endpoint(endpoints(at("host"), caBundle=base64.b64encode(pem).decode()))
    assert found.authorities == pem
    assert "BEGIN" not in repr(found)
    for absent in ("", None, 7):
        assert choose_endpoint(endpoints(at("host"), caBundle=absent)).authorities == b""


@pytest.mark.parametrize("bundle", ["-----BEGIN CERTIFICATE-----", "abc", "a===", "é"])
def test_a_bundle_that_is_not_base64_is_told(bundle: str) -> None:
    """Never the authorities of the system instead."""
    assert "caBundle" in refusal(endpoints(at("host"), caBundle=bundle))
