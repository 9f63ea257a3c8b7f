"""The hand-encoded transactions of writes equal those that protobuf encodes."""

from hypothesis import given
from hypothesis import strategies as st

from clusterregistry.apiserver.storage.etcd import messages

KEY = b"/registry/clusters/a"
LENGTHS = st.sampled_from([0, 1, 127, 128, 16_383, 16_384, 1_500_000])
"""Around those at which a varint takes one more byte."""

REVISIONS = st.sampled_from([-1, 0, 127, 128, (1 << 63) - 1]) | st.integers(0, (1 << 63) - 1)


@given(key=st.binary(max_size=300), length=LENGTHS, expected=REVISIONS)
def test_a_put_is_what_protobuf_encodes(key: bytes, length: int, expected: int) -> None:
    value = b"x" * length
    encoded = messages.encode_write(key, messages.encode_put(key, value), expected=expected)
    assert messages.TxnRequest.FromString(encoded) == messages.TxnRequest(
        compare=[messages.modified_at(key, expected)],
        success=[{"request_put": {"key": key, "value": value}}],
        failure=[{"request_range": {"key": key}}],
    )


@given(key=st.binary(max_size=300), expected=REVISIONS)
def test_a_delete_is_what_protobuf_encodes(key: bytes, expected: int) -> None:
    encoded = messages.encode_write(key, messages.encode_delete(key), expected=expected)
    assert messages.TxnRequest.FromString(encoded) == messages.TxnRequest(
        compare=[messages.modified_at(key, expected)],
        success=[{"request_delete_range": {"key": key}}],
        failure=[{"request_range": {"key": key}}],
    )


def test_a_condition_appended_to_a_transaction_belongs_to_it() -> None:
    condition = messages.without_lease(b"/lease")
    appended = messages.TxnRequest(compare=[condition], failure=[{"request_range": {"key": b"/lease"}}])
    encoded = messages.encode_write(KEY, messages.encode_put(KEY, b"{}"), expected=0) + appended.SerializeToString()
    decoded = messages.TxnRequest.FromString(encoded)
    assert [compare.key for compare in decoded.compare] == [KEY, b"/lease"]
    assert [operation.request_range.key for operation in decoded.failure] == [KEY, b"/lease"]
    assert len(decoded.success) == 1
