"""Responses of the requests between brokers; the requests are in `test_requests`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster_state import EpochStart
from broker.errors import ProtocolError
from broker.protocol import cluster_requests, replica_requests
from broker.protocol.codec import BatchScan, Fault, Record, encode, encode_batch, stamp_batches
from broker.protocol.primitives import INT32, Reader
from broker.protocol.replica_requests import (
    NOTHING_DIVERGES,
    ReplicaPart,
    ReplicaParts,
    ReplicaPiece,
    encode_replica_part_header,
)
from broker.topic import TopicPartition
from tests.strategies import (
    ISR_DECISIONS,
    OUTCOMES,
    REASSIGNMENTS,
    REPLICA_PARTS,
    REPLICATED_PARTITION,
    SHUTDOWN_PROGRESS,
)
from tests.support.replica_parts import read_replica_parts


def encode_parts(parts: list[ReplicaPart]) -> bytes:
    """The body of the response to a replica fetch, as a broker puts it together."""
    return INT32.pack(len(parts)) + b"".join(
        encode_replica_part_header(part, len(part.data)) + part.data for part in parts
    )


RESPONSES = [
    (st.lists(REPLICA_PARTS, max_size=3), encode_parts, read_replica_parts),
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


PARTITION = TopicPartition("events", 0, 0)
ENTRIES = [encode([b"x" * size]) for size in (3, 80, 0, 11)]


def arrive(parts: list[ReplicaPart], step: int) -> list[ReplicaPiece]:
    """What is made of the parts if they come with so many bytes at a time."""
    body = encode_parts(parts)
    reader = Reader(body)
    arriving = ReplicaParts(reader)
    position, end, found = len(body) - reader.remaining, INT32.size, []
    while not arriving.is_complete:
        assert end < len(body)
        end = min(end + step, len(body))
        rest = memoryview(body)[position:end]
        pieces, taken = arriving.take(rest, is_end=end == len(body))
        found += pieces
        position += taken
    assert position == len(body)
    return found


@pytest.mark.parametrize("step", [1, 7, 50, 1000])
def test_parts_when_they_arrive_in_pieces_then_each_has_whole_entries_and_the_last_may_be_cut(
    step: int,
) -> None:
    data = b"".join(ENTRIES)
    head = ReplicaPart(PARTITION, 0, 17, 3, NOTHING_DIVERGES, (EpochStart(1, 5),), b"")
    parts = [head._replace(data=data + ENTRIES[0][:-1]), head, head._replace(data=data)]

    pieces = arrive(parts, step)

    for number, part in enumerate(parts):
        own = [pieces.pop(0)]
        while pieces and pieces[0].start:
            own.append(pieces.pop(0))
        assert b"".join(one.part.data for one in own) == part.data
        assert all(one.part._replace(data=part.data) == part for one in own)
        assert [one.start for one in own] == [
            sum(len(one.part.data) for one in own[:count]) for count in range(len(own))
        ]
        assert all(one.found.valid_bytes == len(one.part.data) for one in own[:-1])
        assert [one.is_cut for one in own] == [False] * (len(own) - 1) + [number == 0]


BATCHES = [
    stamp_batches(encode_batch([Record(n, -1, None, bytes(9)) for n in range(count)]), at, 3)[0]
    for at, count in ((40, 1), (41, 3), (60, 2))
]


@pytest.mark.parametrize("step", [1, 50, 100, 1000])
def test_parts_when_they_are_of_a_kafka_topic_then_pieces_are_batches_and_tell_their_offsets(
    step: int,
) -> None:
    head = ReplicaPart(TopicPartition("events", -1, 0), 0, 60, 3, NOTHING_DIVERGES, (), b"")
    parts = [
        head._replace(data=b"".join(BATCHES) + BATCHES[0][:-1]),
        head._replace(data=BATCHES[0]),
    ]

    *pieces, other = arrive(parts, step)

    assert b"".join(one.part.data for one in pieces) == parts[0].data
    assert [one.is_cut for one in pieces] == [False] * (len(pieces) - 1) + [True]
    offset = 40
    for piece in pieces:
        assert isinstance(piece.found, BatchScan)
        assert piece.offset(40) == offset
        offset = piece.found.batches[-1].next_offset if piece.found.batches else offset
    assert offset == 62
    assert (other.offset(40), bytes(other.part.data)) == (40, BATCHES[0])


@pytest.mark.parametrize("step", [7, 50, 1000])
def test_parts_when_one_is_damaged_then_nothing_of_it_follows_but_the_others_do(step: int) -> None:
    head = ReplicaPart(PARTITION, 0, 17, 3, NOTHING_DIVERGES, (), b"")
    damaged = bytearray(ENTRIES[1])
    damaged[-1] ^= 1
    parts = [
        head._replace(data=ENTRIES[0] + bytes(damaged) + 40 * ENTRIES[2]),
        head._replace(data=ENTRIES[3]),
    ]

    *before, last, other = arrive(parts, step)

    assert last.found.fault is Fault.CRC
    assert last.start + last.found.valid_bytes == len(ENTRIES[0])
    assert all(one.found.fault is not Fault.CRC for one in before)
    assert other.part == parts[1]
