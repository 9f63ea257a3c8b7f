"""Which address of a cluster the observer uses, and what it trusts there.

A cluster lists server addresses by the networks of their clients (``clientCIDR``). The most specific network that has
an address of the observer wins, of equal ones the first. An entry without a network, or with all of IPv4 or IPv6, is
for everybody else. Addresses with ``http://`` are never used, since a credential would be sent in the clear.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from clusterregistry.api.clusterregistry.v1alpha1.validation import server_address_error
from clusterregistry.apimachinery.meta.base64_text import content_of
from clusterregistry.client.errors import printable
from clusterregistry.controllers.observer.observation import Failure, Reason

HTTPS_PORT = 443
MAX_ENDPOINTS = 100
"""Entries of a cluster that are looked at."""

_ELSEWHERE = ("192.0.2.1", "2001:db8::1")
"""Addresses for documentation (RFC 5737, RFC 3849): the way to them is that to any other network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server and the authorities that it is verified by. Equal endpoints may share connections of one cluster."""

    url: str
    authorities: bytes = field(default=b"", repr=False)
    """PEM; empty: the authorities of the system."""
    tls_server_name: str = ""


class EndpointError(Exception):
    """The cluster has no address that can be used; ``failure`` says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(reason=Reason.NO_ENDPOINT, message=message)


def choose_endpoint(cluster: Mapping[str, Any], *, addresses: Sequence[str] = ()) -> Endpoint:
    """The endpoint of a cluster (a wire object) for the observer. Raises EndpointError.

    ``addresses`` are those of the observer; without any, the one that the route to each server has.
    """
    endpoints = _part(_part(cluster, "spec"), "kubernetesApiEndpoints")
    entries = endpoints.get("serverEndpoints")
    usable, refused = _usable(entries[:MAX_ENDPOINTS] if isinstance(entries, list) else [])
    chosen = choose_url(usable, addresses)
    if chosen is None:
        raise EndpointError(_why_none(usable, refused))
    return Endpoint(url=chosen, authorities=_authorities(endpoints.get("caBundle")))


def choose_url(entries: Iterable[tuple[str, str]], addresses: Sequence[str]) -> str | None:
    """The URL of the best entry; entries are pairs of a network, which may be empty, and a URL."""
    best, others = None, None
    longest = 0
    for cidr, url in entries:
        network = _network(cidr) if cidr else None
        if network is None and cidr:
            continue
        if network is None or network.prefixlen == 0:
            others = others or url
        elif network.prefixlen > longest and _has_any(network, addresses or source_addresses(url)):
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


def _bracketed(host: str) -> str:
    """A host as a URL has it: an IPv6 address in brackets."""
    return f"[{host}]" if _is_address(host) and ":" in host else host


def source_addresses(url: str) -> list[str]:
    """The addresses of this machine on the route to a server. Nothing is sent: connecting UDP only picks a route."""
    host = urlsplit(url).hostname or ""
    targets = [host] if _is_address(host) else _ELSEWHERE
    return [source for source in map(_source_address, targets) if source]


def _source_address(target: str) -> str:
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, HTTPS_PORT))
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _usable(entries: Sequence[Any]) -> tuple[list[tuple[str, str]], str]:
    """Networks and URLs, and the first address that cannot be used."""
    usable, refused = [], ""
    for entry in entries:
        address = entry.get("serverAddress") if isinstance(entry, dict) else None
        cidr = entry.get("clientCIDR") or "" if isinstance(entry, dict) else ""
        if not isinstance(address, str) or not address or not isinstance(cidr, str):
            continue
        url = server_url(address)
        if url is not None:
            usable.append((cidr, url))
        else:
            refused = refused or address
    return usable, refused


def _why_none(usable: Sequence[tuple[str, str]], refused: str) -> str:
    if usable:
        return "no entry of serverEndpoints has a clientCIDR with an address of the observer"
    if refused.lower().startswith("http:"):
        return "the only serverAddress is http://, over which no credential is sent: use https"
    if refused:
        shown = "" if "@" in refused else f" {printable(refused, 100)!r}"
        return f"the serverAddress{shown} is neither host, host:port nor https URL"
    return "the cluster has no entry in spec.kubernetesApiEndpoints.serverEndpoints with a serverAddress"


def _authorities(bundle: Any) -> bytes:
    if not isinstance(bundle, str) or not bundle:
        return b""
    decoded = content_of(bundle)
    if not decoded:
        raise EndpointError("spec.kubernetesApiEndpoints.caBundle is not base64")
    return decoded


def _has_any(network: ipaddress.IPv4Network | ipaddress.IPv6Network, addresses: Iterable[str]) -> bool:
    return any(_is_address(text) and ipaddress.ip_address(text) in network for text in addresses)


def _network(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _part(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = value.get(key)
    return part if isinstance(part, dict) else {}
