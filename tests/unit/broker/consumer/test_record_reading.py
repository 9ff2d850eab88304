"""Reading of topics of format `kafka`: batches in chunks, cut where a response ends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.consumer.chunk import Chunk
from broker.consumer.fetch_session import FetchSession
from broker.consumer.partition_reader import PartitionReader
from broker.errors import InvalidMessageError
from broker.producer.accumulator import Accumulator
from broker.producer.delivery import QueuedDelivery
from broker.producer.encoder import Packer
from broker.producer.settings import BatchRules, ProducerSettings
from broker.protocol.client_requests import ReadRequest
from broker.protocol.codec import NEW_BATCH, Record, encode_batch, scan_batches, stamp_batches
from broker.protocol.compression import Codec
from broker.protocol.primitives import INT32, Reader
from broker.protocol.responses import ReadPart, encode_read_part_header
from broker.topic import NO_HOME, MessagePosition, TopicPartition

PARTITION = TopicPartition("orders", NO_HOME, 1)
_CONTROL = NEW_BATCH._replace(attributes=0x30)


class Log:
    """The batches of a partition, which a broker reads from the one that holds an offset."""

    def __init__(self) -> None:
        self.data = b""
        self.end = 0
        self.ends: list[tuple[int, int]] = []  # offset and position behind each batch

    def append(self, batch: bytes) -> None:
        stamped, self.end = stamp_batches(batch, self.end, 0)
        self.data += stamped
        self.ends.append((self.end, len(self.data)))

    def read(self, request: ReadRequest) -> Reader:
        ((partition, offset, max_bytes),) = request.positions
        start = max((position for end, position in self.ends if end <= offset), default=0)
        found = self.data[start : start + max_bytes]
        part = ReadPart(partition, 0, self.end, 0, found)
        header = encode_read_part_header(part, len(found))
        return Reader(INT32.pack(1) + header + found)


def read_all(log: Log, start: int, end: int | None, fetch_bytes: int) -> list[Record]:
    """Return the records of a range, read with requests of so many bytes."""
    until = log.end if end is None else end
    reader = PartitionReader(PARTITION, MessagePosition(start), MessagePosition(until))
    session = FetchSession({PARTITION: start}, fetch_bytes=fetch_bytes)
    found: list[Record] = []
    for _ in range(10_000):
        if reader.is_done:
            return found
        request = session.request(lambda _: True)
        assert isinstance(request, ReadRequest)
        for chunk in session.take(log.read(request)):
            reader.add(chunk)
            while reader.has_batches:
                found += reader.take_records()
    raise AssertionError("reading does not end")


_bytes = st.binary(max_size=30) | st.none()
_headers = st.lists(st.tuples(st.text(max_size=5), _bytes), max_size=3).map(tuple)
_records = st.builds(Record, st.just(0), st.integers(0, 2**50), _bytes, _bytes, _headers)


@settings(max_examples=150)
@given(
    sent=st.lists(_records, max_size=40),
    codec=st.sampled_from(list(Codec)),
    fetch_bytes=st.integers(1, 400),
    batch_bytes=st.integers(1, 800),
    range_=st.tuples(st.integers(0, 45), st.integers(0, 45)),
)
def test_records_when_queued_and_read_in_any_pieces_then_come_back_as_they_were_sent(
    sent: list[Record], codec: Codec, fetch_bytes: int, batch_bytes: int, range_: tuple[int, int]
) -> None:
    log, packer = Log(), Packer(ProducerSettings(codec=codec))
    queue = Accumulator(BatchRules(100, batch_bytes=batch_bytes))
    deliveries = []
    for one in sent:
        template = one._replace(value=None if one.value is None else b"")
        deliveries.append(QueuedDelivery(PARTITION, left_count=1, record=template))
        queue.add(PARTITION, [one.value or b""], deliveries[-1], 0.0)
    while taken := queue.take(1e9):
        (outgoing,) = taken
        outgoing.encode(packer)
        base_offset = log.end
        log.append(bytes(outgoing.message_set))
        if base_offset % 3 == 0:  # a mark of a transaction takes an offset, and nobody gets it
            log.append(encode_batch([Record(0, 0, bytes(4), bytes(6))], _CONTROL))
        outgoing.complete_batches(base_offset, None, None, logs=False)
        queue.finish(outgoing)
    expected = [
        one._replace(offset=delivery.base_offset)
        for one, delivery in zip(sent, deliveries, strict=True)
    ]
    assert read_all(log, 0, None, fetch_bytes) == expected
    start, end = sorted(min(one, log.end) for one in range_)
    inside = [one for one in expected if start <= one.offset < end]
    assert read_all(log, start, end, fetch_bytes) == inside


def log_of(*counts: int) -> Log:
    log = Log()
    for count in counts:
        records = [Record(one, 1, None, b"%d" % (log.end + one)) for one in range(count)]
        log.append(encode_batch(records))
    return log


def reader_of(log: Log, offset: int = 0) -> PartitionReader:
    reader = PartitionReader(PARTITION, MessagePosition(offset))
    reader.add(Chunk(PARTITION, offset, log.data, high_watermark=log.end, records_end=log.end))
    return reader


def test_take_records_when_compaction_left_a_gap_then_reading_goes_on_behind_it() -> None:
    log = Log()
    kept = [Record(2, 1, None, b"2"), Record(5, 1, None, b"5")]
    log.append(encode_batch(kept, NEW_BATCH._replace(last_offset_delta=9)))
    reader = reader_of(log, 3)
    assert [one.offset for one in reader.take_records()] == [5]
    assert reader.offset == 10


@pytest.mark.parametrize("damaged_at", [0, 1, 2])
def test_take_records_when_a_batch_is_damaged_then_those_before_it_come_first(
    damaged_at: int,
) -> None:
    log = log_of(3, 3, 3)
    head = scan_batches(log.data).batches[damaged_at]
    data = bytearray(log.data)
    data[head.end - 2] ^= 1
    log.data = bytes(data)
    reader = PartitionReader(PARTITION, MessagePosition(1))
    session = FetchSession({PARTITION: 1})
    request = session.request(lambda _: True)
    assert isinstance(request, ReadRequest)
    (chunk,) = session.take(log.read(request))
    assert reader.add(chunk)
    if damaged_at:
        assert [one.offset for one in reader.take_records()] == list(range(1, 3 * damaged_at))
    offset = max(1, 3 * damaged_at)
    with pytest.raises(InvalidMessageError, match=rf"^orders\[1\]: .* at {offset} .*CRC"):
        reader.take_records()
    assert reader.after_damage() == 3 * damaged_at + 3


def test_take_records_when_a_batch_is_longer_than_the_log_then_it_is_corrupt() -> None:
    log = log_of(3)
    log.data = log.data[:-1]
    with pytest.raises(InvalidMessageError, match=r"orders\[1\]: the message at 0 is larger"):
        read_all_of_broken(log)


def read_all_of_broken(log: Log) -> None:
    reader = PartitionReader(PARTITION, MessagePosition(0))
    session = FetchSession({PARTITION: 0})
    for _ in range(10):
        request = session.request(lambda _: True)
        assert isinstance(request, ReadRequest)
        data = log.data
        part = ReadPart(PARTITION, 0, log.end, 0, data)
        body = Reader(INT32.pack(1) + encode_read_part_header(part, len(data)) + data)
        for chunk in session.take(body):
            reader.add(chunk)
            while reader.has_batches:
                reader.take_records()


def test_give_back_when_not_all_is_used_then_reading_goes_on_there() -> None:
    reader = reader_of(log_of(3, 3))
    reader.take_records()
    reader.give_back(4)
    assert (reader.offset, reader.has_batches) == (4, False)
    assert not reader.add(Chunk(PARTITION, 6, b"", records_end=6))


def test_add_when_a_chunk_was_requested_before_a_seek_then_refused() -> None:
    log = log_of(3)
    reader = reader_of(log)
    reader.restart_at(1)
    assert not reader.add(Chunk(PARTITION, 3, log.data, records_end=3))
    assert reader.add(Chunk(PARTITION, 1, log.data, records_end=3))
    assert [one.offset for one in reader.take_records()] == [1, 2]


def test_take_records_when_batches_unfold_to_much_then_they_come_in_parts() -> None:
    log = Log()
    for _ in range(5):
        records = [Record(one, 1, None, bytes(1 << 20)) for one in range(5)]
        log.append(encode_batch(records, NEW_BATCH._replace(attributes=4)))
    assert len(log.data) < 1 << 20
    reader, counts = reader_of(log), []
    while reader.has_batches:
        counts.append(len(reader.take_records()))
    assert counts == [5] * 5
    assert reader.offset == 25
