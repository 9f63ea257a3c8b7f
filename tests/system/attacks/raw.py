"""Requests as an attacker writes them, byte by byte."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.apiserver.server.programs import Program

SECRET = "the-hidden-cluster"
"""The name of an object that only the administrator may see."""

NOBODY = "nobodytoken"
"""The token of a user without any role."""

_STATUS_LINE = re.compile(rb"^HTTP/1\.1 (\d{3}) ", re.MULTILINE)


@dataclass(frozen=True)
class Reply:
    """All bytes until the server closed."""

    received: bytes

    @property
    def statuses(self) -> list[int]:
        return [int(status) for status in _STATUS_LINE.findall(self.received)]

    @property
    def status(self) -> int:
        """The status of the only response."""
        assert len(self.statuses) == 1, self.received[:1000]
        return self.statuses[0]

    @property
    def shows_secret(self) -> bool:
        return SECRET.encode() in self.received


class Raw:
    """One connection a request."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.trust = program.trust()

    def send(self, data: bytes, *, seconds: float = 60.0) -> Reply:
        """Sends bytes as they are and reads to the end; an early close is no error."""
        received = []
        with self.program.socket(seconds=seconds, trust=self.trust) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(data)
            with contextlib.suppress(OSError):
                while piece := connection.recv(65536):
                    received.append(piece)
        return Reply(b"".join(received))

    def ask(  # noqa: PLR0913 - the parts of a request, all but one by keyword
        self,
        target: bytes,
        *,
        method: bytes = b"GET",
        token: str = NOBODY,
        headers: Sequence[bytes] = (),
        body: bytes = b"",
        seconds: float = 60.0,
    ) -> Reply:
        """One request with the target as it is, and the end of the connection behind it."""
        lines = [method + b" " + target + b" HTTP/1.1", b"Host: registry", b"Connection: close", *headers]
        if token:
            lines.append(b"Authorization: Bearer " + token.encode())
        if body:
            lines.append(b"Content-Length: %d" % len(body))
        return self.send(b"\r\n".join(lines) + b"\r\n\r\n" + body, seconds=seconds)
