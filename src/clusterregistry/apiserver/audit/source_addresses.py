"""Where a request came from, as kube-apiserver tells it: what proxies say first, whom we see ourselves last."""

from __future__ import annotations

import ipaddress

_MOST = 32
"""Proxies that are named at most: the header is the client's, and so is its length."""


def source_addresses(*, forwarded_for: str, real_ip: str, peer: str) -> list[str]:
    """The addresses of ``X-Forwarded-For`` and ``X-Real-Ip``, which anybody can forge, then the peer's.

    What is no IP address is left out. The peer's is not repeated when the last proxy has named it.
    """
    if not forwarded_for and not real_ip:
        return [peer] if peer else []
    found = [address for part in forwarded_for.split(",", _MOST)[:_MOST] if (address := _address(part))]
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
