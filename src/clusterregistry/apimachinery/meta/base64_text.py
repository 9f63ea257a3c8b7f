"""Base64 in the texts of objects, decoded once for all checks of a text."""

from __future__ import annotations

import binascii

from clusterregistry.apimachinery.bounded_cache import bounded_cache


@bounded_cache(16, longest=32 * 1024)
def content_of(text: str) -> bytes | None:
    """Decodes standard base64 with padding; None for invalid base64 and, as in go-openapi, for the empty string."""
    if len(text) % 4 or text.endswith("==="):
        return None  # a2b_base64 accepts padding after a whole number of groups
    try:
        return binascii.a2b_base64(text, strict_mode=True) or None
    except ValueError:
        return None


def is_base64(text: str) -> bool:
    return content_of(text) is not None


def canonical(text: str) -> str:
    """Base64 as Go writes it, which reads it without regard to line breaks and to bits that are left over.

    Raises ValueError in Go's words.
    """
    data = text.encode("utf-8", "surrogatepass")
    wrong = _first_wrong(data)
    if wrong is not None:
        raise ValueError(f"illegal base64 data at input byte {wrong}")
    return binascii.b2a_base64(binascii.a2b_base64(data), newline=False).decode()


_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BREAKS = b"\r\n"
_PADDING = ord("=")


def _first_wrong(data: bytes) -> int | None:
    """The position at which Go finds that bytes are not base64; None if they are."""
    digits = 0
    for at, byte in enumerate(data):
        if byte in _ALPHABET:
            digits += 1
        elif byte == _PADDING:
            return _wrong_padding(data, at, digits=digits % 4)
        elif byte not in _BREAKS:
            return at
    return None if digits % 4 == 0 else len(data) - digits % 4


def _wrong_padding(data: bytes, at: int, *, digits: int) -> int | None:
    """The same for the end of the text, whose first padding is at ``at``, after ``digits`` of a group of four."""
    if digits < 2:  # noqa: PLR2004 - a group has two, three or four digits
        return at
    end = _after_breaks(data, at + 1)
    if digits == 2:  # noqa: PLR2004 - as above
        if end == len(data):
            return end
        if data[end] != _PADDING:
            return end - 1
        end = _after_breaks(data, end + 1)
    return None if end == len(data) else end


def _after_breaks(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _BREAKS:
        at += 1
    return at
