"""The transactions of writes that are made by hand are those that protobuf makes."""

import pytest

from clusterregistry.apiserver.storage.etcd import messages, writer

KEY = b"/registry/clusters/a"
LARGEST = (1 << 63) - 1


@pytest.mark.parametrize("at", [0, 1, 127, 128, 123_456_789, LARGEST, -1])
@pytest.mark.parametrize("size", [0, 1, 99, 127, 128, 16_383, 16_384, 1_500_000])
@pytest.mark.parametrize("key", [KEY, b"", b"\xff" * 300])
def test_a_put_is_the_message_that_protobuf_reads_from_it(key: bytes, size: int, at: int) -> None:
    value = b"x" * size
    made = writer.write(key, writer.put(key, value), at=at)
    assert messages.TxnRequest.FromString(made) == messages.TxnRequest(
        compare=[messages.modified_at(key, at)],
        success=[{"request_put": {"key": key, "value": value}}],
        failure=[{"request_range": {"key": key}}],
    )


def test_a_deletion_is_too() -> None:
    made = writer.write(KEY, writer.delete(KEY), at=7)
    assert messages.TxnRequest.FromString(made) == messages.TxnRequest(
        compare=[messages.modified_at(KEY, 7)],
        success=[{"request_delete_range": {"key": KEY}}],
        failure=[{"request_range": {"key": KEY}}],
    )


def test_what_is_put_behind_a_transaction_belongs_to_it() -> None:
    condition = messages.without_lease(b"/claim")
    along = messages.TxnRequest(compare=[condition], failure=[{"request_range": {"key": b"/claim"}}])
    made = writer.write(KEY, writer.put(KEY, b"{}"), at=0) + along.SerializeToString()
    read = messages.TxnRequest.FromString(made)
    assert [compare.key for compare in read.compare] == [KEY, b"/claim"]
    assert [operation.request_range.key for operation in read.failure] == [KEY, b"/claim"]
    assert len(read.success) == 1
