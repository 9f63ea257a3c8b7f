"""Reads PEM as Go's encoding/pem does: text around the blocks and malformed blocks are skipped."""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from typing import NamedTuple

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"-----END ", b"-----"
_SPACES = b" \t\r"


class Block(NamedTuple):
    """A PEM block: its type, whether it has headers, and its decoded content."""

    label: str
    has_headers: bool
    content: bytes


def pem_blocks(data: bytes) -> Iterator[Block]:
    """The blocks of a text, in order. The caller limits the size of the text."""
    label: bytes | None = None
    lines: list[bytes] = []
    for each in data.split(b"\n"):
        line = each.rstrip(_SPACES)
        if line.startswith(_BEGIN):
            named = line.removeprefix(_BEGIN)
            label, lines = named.removesuffix(_DASHES) if named.endswith(_DASHES) else None, []
        elif line.startswith(_END):
            if label is not None and line == _END + label + _DASHES:
                yield from _decoded(label, lines)
            label = None
        elif label is not None:
            lines.append(line)


def _decoded(label: bytes, lines: list[bytes]) -> Iterator[Block]:
    """The block, or nothing if its content is not base64."""
    headers = next((count for count, line in enumerate(lines) if b":" not in line), len(lines))
    body = b"".join(lines[headers:]).translate(None, _SPACES)
    try:
        content = binascii.a2b_base64(body, strict_mode=True)
    except ValueError:
        return
    yield Block(label.decode("utf-8", "replace"), headers > 0, content)
