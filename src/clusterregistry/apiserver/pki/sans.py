"""The names by which clients may reach this server."""

from __future__ import annotations

import ipaddress
import re
import socket

ALWAYS = ("localhost", "127.0.0.1", "::1")
_DNS_NAME = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*", re.ASCII)


def serving_names(*addresses: str, host_name: str | None = None) -> tuple[str, ...]:
    """Loopback, the host name and the given addresses, each once. "All interfaces" is no name of a server."""
    own = (host_name if host_name is not None else socket.gethostname()).lower()
    return normal_names(*ALWAYS, own, *addresses)


def normal_names(*names: str) -> tuple[str, ...]:
    """Names and addresses as a certificate has them, each once, without those that it cannot have."""
    return tuple(dict.fromkeys(name for name in map(_normal, names) if name))


def _normal(name: str) -> str:
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        lowered = name.lower()
        return lowered if len(lowered) <= 253 and _DNS_NAME.fullmatch(lowered) else ""  # noqa: PLR2004 - DNS's limit
    return "" if address.is_unspecified else str(address)
