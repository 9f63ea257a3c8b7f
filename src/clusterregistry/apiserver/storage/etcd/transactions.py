"""The transactions of writes, as bytes.

There is one for each write, and it consists of eight messages: protobuf takes twice as long to make them as this does.
Messages that follow each other count as one (their repeated fields are joined), so conditions that stay the same are
made once and put behind. The numbers are those of ``messages``; a test compares both.
"""

from __future__ import annotations

from functools import lru_cache

_UNSIGNED = (1 << 64) - 1
"""Numbers below zero are written as those that are as much below this one."""


def put(key: bytes, value: bytes) -> bytes:
    """A RequestOp that sets a key."""
    # PutRequest: key 1, value 2
    content = b"".join((b"\x0a", _length(len(key)), key, b"\x12", _length(len(value)), value))
    return b"".join((b"\x12", _length(len(content)), content))  # request_put 2


def delete(key: bytes) -> bytes:
    """A RequestOp that removes a key."""
    content = b"".join((b"\x0a", _length(len(key)), key))  # DeleteRangeRequest: key 1
    return b"".join((b"\x1a", _length(len(content)), content))  # request_delete_range 3


def write(key: bytes, change: bytes, *, at: int) -> bytes:
    """A TxnRequest that makes a change, a RequestOp, if the key's last one was at a revision, and else reads the key.

    Revision 0 is that of a key which is not there.
    """
    named = _length(len(key)) + key
    # Compare: target 2 is MOD, key 3, mod_revision 6
    compare = b"".join((b"\x10\x02\x1a", named, b"\x30", _number(at & _UNSIGNED)))
    # RequestOp: request_range 1, of that RangeRequest: key 1
    read = b"".join((b"\x0a", _length(len(named) + 1), b"\x0a", named))
    # TxnRequest: compare 1, success 2, failure 3
    parts = (b"\x0a", _length(len(compare)), compare, b"\x12", _length(len(change)), change)
    return b"".join((*parts, b"\x1a", _length(len(read)), read))


def _number(value: int) -> bytes:
    """As protobuf writes it: seven bits a byte, the lowest first."""
    made = bytearray()
    while value >= 0x80:  # noqa: PLR2004 - seven bits a byte
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


_length = lru_cache(maxsize=4096)(_number)
"""The same for what is seldom new."""
