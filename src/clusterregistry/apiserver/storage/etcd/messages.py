"""The messages of etcd's API that are used here. The numbers are those of etcd's rpc.proto and kv.proto.

The transaction of a write is encoded by hand (``encode_write``): there is one per write, and protobuf makes eight
message objects of it, which takes twice as many instructions. A test compares the bytes with those of protobuf.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from clusterregistry.apimachinery.codecs.protobuf_tables import message_classes

_TABLE = {
    "ResponseHeader": "etcd_id:1:uint64 revision:3:int64",  # etcd_id is etcd's cluster_id
    "KeyValue": "key:1:bytes create_revision:2:int64 mod_revision:3:int64 version:4:int64 value:5:bytes lease:6:int64",
    "Event": "type:1:int32 kv:2:KeyValue prev_kv:3:KeyValue",
    "RangeRequest": "key:1:bytes range_end:2:bytes limit:3:int64 revision:4:int64 keys_only:8:bool count_only:9:bool",
    "RangeResponse": "header:1:ResponseHeader kvs:2:[]KeyValue more:3:bool count:4:int64",
    "PutRequest": "key:1:bytes value:2:bytes lease:3:int64",
    "PutResponse": "header:1:ResponseHeader",
    "DeleteRangeRequest": "key:1:bytes",
    "DeleteRangeResponse": "header:1:ResponseHeader",
    "RequestOp": "request_range:1:RangeRequest request_put:2:PutRequest request_delete_range:3:DeleteRangeRequest",
    "ResponseOp": "response_range:1:RangeResponse",
    "Compare": "result:1:int32 target:2:int32 key:3:bytes mod_revision:6:int64 lease:8:int64",
    "TxnRequest": "compare:1:[]Compare success:2:[]RequestOp failure:3:[]RequestOp",
    "TxnResponse": "header:1:ResponseHeader succeeded:2:bool responses:3:[]ResponseOp",
    "CompactionRequest": "revision:1:int64 physical:2:bool",
    "CompactionResponse": "header:1:ResponseHeader",
    "WatchRequest": "create_request:1:WatchCreateRequest progress_request:3:WatchProgressRequest",
    "WatchCreateRequest": "key:1:bytes range_end:2:bytes start_revision:3:int64 progress_notify:4:bool prev_kv:6:bool "
    "fragment:8:bool",
    "WatchProgressRequest": "",
    "WatchResponse": "header:1:ResponseHeader created:3:bool canceled:4:bool compact_revision:5:int64 cancel_reason:6 "
    "fragment:7:bool events:11:[]Event",
    "LeaseGrantRequest": "ttl:1:int64",
    "LeaseGrantResponse": "id:2:int64 ttl:3:int64",
    "LeaseRevokeRequest": "id:1:int64",
    "LeaseRevokeResponse": "",
    "LeaseKeepAliveRequest": "id:1:int64",
    "LeaseKeepAliveResponse": "id:2:int64 ttl:3:int64",
    "AuthenticateRequest": "name:1 password:2",
    "AuthenticateResponse": "token:2",
    "StatusRequest": "",
    "StatusResponse": "header:1:ResponseHeader version:2",
}

# The classes are made at run time, so their fields are known to the table alone.
_classes: dict[str, Any] = {**message_classes("etcdserverpb", _TABLE)}

RangeRequest = _classes["RangeRequest"]
RangeResponse = _classes["RangeResponse"]
TxnRequest = _classes["TxnRequest"]
TxnResponse = _classes["TxnResponse"]
CompactionRequest = _classes["CompactionRequest"]
CompactionResponse = _classes["CompactionResponse"]
WatchRequest = _classes["WatchRequest"]
WatchResponse = _classes["WatchResponse"]
LeaseGrantRequest = _classes["LeaseGrantRequest"]
LeaseGrantResponse = _classes["LeaseGrantResponse"]
LeaseRevokeRequest = _classes["LeaseRevokeRequest"]
LeaseRevokeResponse = _classes["LeaseRevokeResponse"]
LeaseKeepAliveRequest = _classes["LeaseKeepAliveRequest"]
LeaseKeepAliveResponse = _classes["LeaseKeepAliveResponse"]
AuthenticateRequest = _classes["AuthenticateRequest"]
AuthenticateResponse = _classes["AuthenticateResponse"]
StatusRequest = _classes["StatusRequest"]
StatusResponse = _classes["StatusResponse"]

DELETE = 1
"""The type of an event; any other type is a put."""

LESS = 2
"""The result of a comparison; without one, both sides are equal."""

MOD = 2
"""The target of a comparison: the revision of a key's last change, 0 for a key that does not exist."""

LEASE = 4
"""The target of a comparison: the lease that a key is attached to, 0 for none or for a key that does not exist."""

_UINT64 = (1 << 64) - 1
"""Negative numbers are encoded as their two's complement."""


def modified_at(key: bytes, revision: int) -> dict[str, Any]:
    """The condition that a key's last change was at a revision (0: the key does not exist)."""
    return {"target": MOD, "key": key, "mod_revision": revision}


def not_modified_after(key: bytes, revision: int) -> dict[str, Any]:
    """The condition that a key's last change was not after a revision, or that the key does not exist."""
    return {"result": LESS, "target": MOD, "key": key, "mod_revision": revision + 1}


def without_lease(key: bytes) -> dict[str, Any]:
    """The condition that a key does not exist or is attached to no lease."""
    return {"target": LEASE, "key": key, "lease": 0}


def encode_write(key: bytes, change: bytes, *, expected: int) -> bytes:
    """A TxnRequest that executes a RequestOp if the key is at revision ``expected``, and otherwise reads the key.

    Revision 0 is that of a key which does not exist.
    """
    named = _length(len(key)) + key
    # Compare: target 2 is MOD, key 3, mod_revision 6
    compare = b"".join((b"\x10\x02\x1a", named, b"\x30", _varint(expected & _UINT64)))
    # RequestOp: request_range 1, of that RangeRequest: key 1
    read = b"".join((b"\x0a", _length(len(named) + 1), b"\x0a", named))
    # TxnRequest: compare 1, success 2, failure 3
    parts = (b"\x0a", _length(len(compare)), compare, b"\x12", _length(len(change)), change)
    return b"".join((*parts, b"\x1a", _length(len(read)), read))


def encode_put(key: bytes, value: bytes) -> bytes:
    """A RequestOp that sets a key."""
    # PutRequest: key 1, value 2
    content = b"".join((b"\x0a", _length(len(key)), key, b"\x12", _length(len(value)), value))
    return b"".join((b"\x12", _length(len(content)), content))  # request_put 2


def encode_delete(key: bytes) -> bytes:
    """A RequestOp that deletes a key."""
    content = b"".join((b"\x0a", _length(len(key)), key))  # DeleteRangeRequest: key 1
    return b"".join((b"\x1a", _length(len(content)), content))  # request_delete_range 3


def _varint(value: int) -> bytes:
    """A number in protobuf's encoding: seven bits a byte, the lowest first."""
    encoded = bytearray()
    while value >= 0x80:  # noqa: PLR2004 - seven bits a byte
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_length = lru_cache(maxsize=4096)(_varint)
"""For lengths, which repeat."""
