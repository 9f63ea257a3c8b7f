"""How many connections there may be, and who gets the last ones. Pure: knows no sockets."""

from __future__ import annotations

import ipaddress

_RESERVE = 10
"""One part in so many is kept for addresses that hold little."""


class Places:
    """One place for each connection, from before its handshake to its end.

    Behind a proxy or a gateway all clients have one address, so an address may hold nearly all places. The last tenth
    is only for addresses that hold less than that themselves: no single one can lock out all others.
    """

    __slots__ = ("_held", "_limit", "_small", "taken")

    def __init__(self, limit: int) -> None:
        """``limit`` is at least 1."""
        self._limit = limit
        self._small = max(limit // _RESERVE, 1)
        self._held: dict[str, int] = {}
        self.taken = 0

    def take(self, holder: str) -> bool:
        """Takes a place for a holder, if there is one for it."""
        held = self._held.get(holder, 0)
        free = self._limit - self.taken
        if free <= 0 or (free <= self._small and held >= self._small):
            return False
        self._held[holder] = held + 1
        self.taken += 1
        return True

    def give_back(self, holder: str) -> None:
        """A place that was taken is free again."""
        self.taken -= 1
        held = self._held[holder] - 1
        if held:
            self._held[holder] = held
        else:
            del self._held[holder]  # or else each address that ever came would stay


def holder_of(address: str) -> str:
    """Who an IP address counts as: with IPv6 a whole network of 64 bits, since hosts have as many as they like."""
    if ":" not in address:
        return address
    parsed = ipaddress.IPv6Address(address)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, 64), strict=False))
