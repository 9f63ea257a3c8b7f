"""Which address of a cluster the observer uses, and what it trusts there.

``api.clusterregistry.server_endpoints`` chooses by the networks of clients; the addresses here are the observer's.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from clusterregistry.api.clusterregistry.server_endpoints import (
    HTTPS_PORT,
    ServerEndpoints,
    choose_url,
    is_address,
    part,
    server_endpoints,
)
from clusterregistry.apimachinery.meta.base64_text import content_of
from clusterregistry.client.errors import printable
from clusterregistry.controllers.observer.observation import Failure, Reason

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
    found = server_endpoints(cluster)
    chosen = choose_url(found.usable, lambda url: addresses or source_addresses(url))
    if chosen is None:
        raise EndpointError(_why_none(found))
    bundle = part(part(cluster, "spec"), "kubernetesApiEndpoints").get("caBundle")
    return Endpoint(url=chosen, authorities=_authorities(bundle))


def source_addresses(url: str) -> list[str]:
    """The addresses of this machine on the route to a server. Nothing is sent: connecting UDP only picks a route."""
    host = urlsplit(url).hostname or ""
    targets = [host] if is_address(host) else _ELSEWHERE
    return [source for source in map(_source_address, targets) if source]


def _source_address(target: str) -> str:
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, HTTPS_PORT))
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _why_none(found: ServerEndpoints) -> str:
    refused = found.refused
    if found.usable:
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
