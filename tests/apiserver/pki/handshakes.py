"""Handshakes in memory."""

from __future__ import annotations

import ssl


def shake_hands(
    server_side: ssl.SSLContext, client_side: ssl.SSLContext, name: str | None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """The server's and the client's side of a connection. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server_side.wrap_bio(to_server, to_client, server_side=True)
    theirs = client_side.wrap_bio(to_client, to_server, server_hostname=name)
    waiting = [ours, theirs]
    for _ in range(10):
        waiting = [side for side in waiting if not _is_done(side)]
    assert waiting == []
    return ours, theirs


def _is_done(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
