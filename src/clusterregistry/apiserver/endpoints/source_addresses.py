"""Where a request comes from: the client, as proxies name it, and the proxies themselves."""

from __future__ import annotations

import ipaddress

_MOST_PROXIES = 32
"""The most proxies in a list: the client chooses the length of the header."""


def source_addresses(*, forwarded_for: str, real_ip: str, peer: str) -> list[str]:
    """The addresses of ``X-Forwarded-For`` and ``X-Real-Ip``, which any client can forge, then that of the peer.

    Other texts are left out. The peer's address is not repeated if the last proxy has named it.
    """
    if not forwarded_for and not real_ip:
        return [peer] if peer else []
    found = [address for part in forwarded_for.split(",", _MOST_PROXIES)[:_MOST_PROXIES] if (address := _address(part))]
    real = _address(real_ip)
    if real and real not in found:
        found.append(real)
    if peer and found[-1:] != [peer]:
        found.append(peer)
    return found


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        return ""
