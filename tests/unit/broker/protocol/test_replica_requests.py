"""Responses of the requests between brokers; the requests are in `test_requests`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ProtocolError
from broker.protocol import cluster_requests, replica_requests
from broker.protocol.primitives import INT32, Reader
from broker.protocol.replica_requests import (
    ReplicaPart,
    decode_replica_fetch_response,
    encode_replica_part_header,
)
from tests.strategies import (
    ISR_DECISIONS,
    OUTCOMES,
    REASSIGNMENTS,
    REPLICA_PARTS,
    REPLICATED_PARTITION,
    SHUTDOWN_PROGRESS,
)


def encode_parts(parts: list[ReplicaPart]) -> bytes:
    """The body of the response to a replica fetch, as a broker puts it together."""
    return INT32.pack(len(parts)) + b"".join(
        encode_replica_part_header(part, len(part.data)) + part.data for part in parts
    )


RESPONSES = [
    (st.lists(REPLICA_PARTS, max_size=3), encode_parts, decode_replica_fetch_response),
    (
        st.lists(ISR_DECISIONS, max_size=3),
        replica_requests.ISR_DECISIONS.encode,
        replica_requests.ISR_DECISIONS.decode,
    ),
    (
        st.lists(OUTCOMES, max_size=3),
        cluster_requests.OUTCOMES.encode,
        cluster_requests.OUTCOMES.decode,
    ),
    (REASSIGNMENTS, cluster_requests.REASSIGNMENTS.encode, cluster_requests.REASSIGNMENTS.decode),
    (
        SHUTDOWN_PROGRESS,
        replica_requests.SHUTDOWN_PROGRESS.encode,
        replica_requests.SHUTDOWN_PROGRESS.decode,
    ),
    (
        st.lists(REPLICATED_PARTITION, max_size=3).map(tuple),
        replica_requests.PARTITIONS.encode,
        replica_requests.PARTITIONS.decode,
    ),
]


@pytest.mark.parametrize(("values", "encode", "decode"), RESPONSES)
@given(data=st.data())
def test_response_when_encoded_and_decoded_then_is_the_same(
    values: st.SearchStrategy[Any],
    encode: Callable[[Any], bytes],
    decode: Callable[[Reader], Any],
    data: st.DataObject,
) -> None:
    value = data.draw(values)
    reader = Reader(encode(value))

    assert decode(reader) == value
    assert reader.remaining == 0


@pytest.mark.parametrize(("values", "encode", "decode"), RESPONSES)
@given(data=st.data())
def test_response_when_cut_then_raises_protocol_error(
    values: st.SearchStrategy[Any],
    encode: Callable[[Any], bytes],
    decode: Callable[[Reader], Any],
    data: st.DataObject,
) -> None:
    body = encode(data.draw(values))
    end = data.draw(st.integers(0, len(body) - 1))

    with pytest.raises(ProtocolError):
        decode(Reader(body[:end]))
