"""Which address of a cluster a client uses.

A cluster lists server addresses by the networks of their clients (``clientCIDR``). The most specific network that has
an address of the client wins, of equal ones the first. An entry without a network, or with all of IPv4 or IPv6, is
for everybody else. Addresses with ``http://`` are never used, since a credential would be sent in the clear.

Pure functions over wire objects of any version.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from clusterregistry.api.clusterregistry.v1alpha1.validation import server_address_error

HTTPS_PORT = 443
MAX_ENDPOINTS = 100
"""Entries of a cluster that are looked at."""

Addresses = Callable[[str], Iterable[str]]
"""The addresses that a client has for a server, by the URL of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEndpoints:
    """The entries of a cluster that can be used: pairs of a network, which may be empty, and a URL."""

    usable: Sequence[tuple[str, str]]
    refused: str = ""
    """The first address that cannot be used; empty: there is none."""


def server_endpoints(cluster: Mapping[str, Any]) -> ServerEndpoints:
    """The first entries of a cluster, MAX_ENDPOINTS at most. Entries of a wrong form are left out."""
    entries = part(part(cluster, "spec"), "kubernetesApiEndpoints").get("serverEndpoints")
    usable, refused = [], ""
    for entry in entries[:MAX_ENDPOINTS] if isinstance(entries, list) else []:
        address = entry.get("serverAddress") if isinstance(entry, dict) else None
        cidr = entry.get("clientCIDR") or "" if isinstance(entry, dict) else ""
        if not isinstance(address, str) or not address or not isinstance(cidr, str):
            continue
        url = server_url(address)
        if url is not None:
            usable.append((cidr, url))
        else:
            refused = refused or address
    return ServerEndpoints(usable=usable, refused=refused)


def choose_url(entries: Iterable[tuple[str, str]], addresses: Addresses) -> str | None:
    """The URL of the best entry for a client with these addresses."""
    best, others = None, None
    longest = 0
    for cidr, url in entries:
        network = _network(cidr) if cidr else None
        if network is None and cidr:
            continue
        if network is None or network.prefixlen == 0:
            others = others or url
        elif network.prefixlen > longest and _has_any(network, addresses(url)):
            best, longest = url, network.prefixlen
    return best or others


def server_url(address: str) -> str | None:
    """``https://HOST:PORT/PATH`` of a ``serverAddress``; None for what is no address, and for http."""
    if server_address_error(address):
        return None
    parts = urlsplit(address if "://" in address else f"https://{_bracketed(address)}")
    if parts.scheme != "https" or not parts.hostname:
        return None
    return f"https://{_bracketed(parts.hostname.rstrip('.'))}:{parts.port or HTTPS_PORT}{parts.path.rstrip('/')}"


def is_address(text: str) -> bool:
    """Whether a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def part(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object in a field; an empty one where there is none."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _bracketed(host: str) -> str:
    """A host as a URL has it: an IPv6 address in brackets."""
    return f"[{host}]" if is_address(host) and ":" in host else host


def _has_any(network: ipaddress.IPv4Network | ipaddress.IPv6Network, addresses: Iterable[str]) -> bool:
    return any(_plain(ipaddress.ip_address(text)) in network for text in addresses if is_address(text))


def _plain(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An IPv4 address that a socket for both families shows as an IPv6 one, as it is."""
    return getattr(address, "ipv4_mapped", None) or address


def _network(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return None
