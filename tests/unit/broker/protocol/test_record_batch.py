"""Kafka's record batches: both engines read and write them as Kafka does, and survive all else."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import tracemalloc
from array import array
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import InvalidMessageError
from broker.protocol.codec import (
    NEW_BATCH,
    Fault,
    Record,
    RecordBatch,
    RecordColumns,
    unfold_batch,
)
from broker.protocol.compression import BATCH_CODECS, Codec, compress_batch
from tests.support.codec_engines import Engine, assert_alike, load_engine
from tests.support.record_batches import (
    BYTES,
    FIELDS,
    RECORDS,
    batch_bytes,
    old_bytes,
    records_from,
    varint,
    wrapper,
)

HEADER_BYTES = 61
CODECS = st.integers(0, len(BATCH_CODECS) - 1)
LIMIT_BYTES = 64 << 20

# as librdkafka wrote it through Apache Kafka 4.4.0
LIBRDKAFKA = bytes.fromhex(
    "0000000000000000000000a10000000002e56b7d5c0000000000000000018bcfe568000000018bcfe56800ffffff"
    "ffffffffffffffffffffff00000001dc01000000046b30b4017265636f72642030206279206c696272646b61666b"
    "613a206162636465666768696a206162636465666768696a206162636465666768696a206162636465666768696a"
    "206162636465666768696a206162636465666768696a20020a636f646563086e6f6e65"
)
# the mark of a commit, as Apache Kafka 4.4.0 wrote it
COMMIT = bytes.fromhex(
    "000000000000000a000000420000000002d48917df003000000000000001a203724488000001a203724488000000"
    "00000003ed0001ffffffff000000012000000008000000010c00000000000200"
)
# messages of formats 1 and 0, as Apache Kafka 3.9.2 wrote them
FORMAT_1 = bytes.fromhex(
    "0000000000000000000000583c224e3f01000000018bcfe56800ffffffff000000426d6573736167652030206f66"
    "2076312d6e6f6e653a2074686520717569636b2062726f776e20666f78206a756d7073206f76657220746865206c"
    "617a7920646f6720"
)
FORMAT_0 = bytes.fromhex("00000000000000630000000ea7ec68030000ffffffffffffffff")


@pytest.fixture(scope="module")
def engines() -> tuple[Engine, Engine]:
    return load_engine("python"), load_engine("compiled")


def assert_same_results(engines: tuple[Engine, Engine], data: bytes, max_bytes: int = 1000) -> None:
    """Check that both engines find the same in any bytes."""
    assert_alike(engines, lambda engine: engine.scan_batches(data))
    assert_alike(engines, lambda engine: engine.verify_batches(data))
    assert_alike(engines, lambda engine: engine.verify_batches(data, deep=False))
    assert_alike(engines, lambda engine: engine.decode_records(data, with_control=True))
    assert_alike(engines, lambda engine: engine.decode_record_columns(data, max_bytes=max_bytes))
    assert_alike(engines, lambda engine: engine.stamp_batches(data, 2**62, 7))


def test_batch_when_written_by_kafka_then_every_field_is_read(engine: Engine) -> None:
    found = engine.scan_batches(LIBRDKAFKA + COMMIT)

    assert found.batches == [
        RecordBatch(
            position=0,
            size=173,
            leader_epoch=0,
            crc=0xE56B7D5C,
            last_offset_delta=0,
            base_timestamp=1700000000000,
            max_timestamp=1700000000000,
            record_count=1,
        ),
        RecordBatch(
            position=173,
            size=78,
            base_offset=10,
            leader_epoch=0,
            crc=0xD48917DF,
            attributes=0x30,
            last_offset_delta=0,
            base_timestamp=1795354150024,
            max_timestamp=1795354150024,
            producer_id=1005,
            producer_epoch=1,
            record_count=1,
        ),
    ]
    assert found[1:] == (251, Fault.NONE)
    plain, commit = found.batches
    assert (plain.codec, plain.is_control, plain.is_transactional) == (Codec.NONE, False, False)
    assert (commit.is_control, commit.is_transactional, commit.last_offset) == (True, True, 10)


def test_records_when_written_by_kafka_then_control_records_come_only_if_asked_for(
    engine: Engine,
) -> None:
    value = b"record 0 by librdkafka: " + b"abcdefghij " * 6
    record = Record(0, 1700000000000, b"k0", value, (("codec", b"none"),))
    mark = Record(10, 1795354150024, b"\0\0\0\1", b"\0\0\0\0\0\2")

    found = engine.decode_records(LIBRDKAFKA + COMMIT)
    marked = engine.decode_records(LIBRDKAFKA + COMMIT, with_control=True)

    assert found == ([record], 251, Fault.NONE)
    assert marked.records == [record, mark]


def test_messages_when_of_old_formats_then_are_read(engine: Engine) -> None:
    found = engine.decode_records(FORMAT_1 + FORMAT_0)

    text = b"message 0 of v1-none: the quick brown fox jumps over the lazy dog "
    assert found.records == [Record(0, 1700000000000, None, text), Record(99, -1, None, None)]
    assert [one.magic for one in engine.scan_batches(FORMAT_1 + FORMAT_0).batches] == [1, 0]


@pytest.mark.parametrize("data", [LIBRDKAFKA, COMMIT])
def test_batch_when_encoded_again_then_is_the_same(engine: Engine, data: bytes) -> None:
    (batch,) = engine.scan_batches(data).batches
    records = engine.decode_records(data, with_control=True).records

    assert engine.encode_batch(records, batch) == data


@given(RECORDS, FIELDS)
def test_batch_when_encoded_and_decoded_then_is_the_same(
    engines: tuple[Engine, Engine], found: list[Any], fields: RecordBatch
) -> None:
    records = records_from(fields.base_offset, found)
    first, second = (engine.encode_batch(records, fields) for engine in engines)

    assert first == second
    ((batch,), valid_bytes, fault) = engines[1].scan_batches(first)
    assert (valid_bytes, fault, batch.record_count) == (len(first), Fault.NONE, len(records))
    assert engines[1].decode_records(first, with_control=True).records == records
    places = (3, 4, 6, 10, 11, 12)  # base offset, leader epoch, attributes, producer
    assert [batch[n] for n in places] == [fields[n] for n in places]
    deltas = [one.offset - fields.base_offset for one in records]
    assert batch.last_offset_delta == max([fields.last_offset_delta, *deltas])
    if records:
        assert batch.max_timestamp == max(one.timestamp for one in records)
    assert_same_results(engines, first)


def test_batch_when_compressed_then_kafkas_other_readers_can_open_it(engine: Engine) -> None:
    records = [Record(n, n, b"key", b"value %d " % n * 9) for n in range(3000)]
    plain = engine.encode_batch(records)[HEADER_BYTES:]

    def content(codec: int) -> bytes:
        return engine.encode_batch(records, RecordBatch(attributes=codec))[HEADER_BYTES:]

    assert bytes(cramjam.gzip.decompress(content(1))) == plain
    assert content(2)[:16] == b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1"  # the container of xerial
    assert bytes(cramjam.lz4.decompress(content(3))) == plain
    # Java's reader takes no blocks that depend on each other, which bit 5 rules out
    assert content(3)[:7] == bytes.fromhex("04224d18604082")
    assert bytes(cramjam.zstd.decompress(content(4))) == plain


@given(st.integers(0, 1), st.integers(0, 2**40), st.lists(BYTES, min_size=1), st.integers(1, 3))
def test_wrapper_when_of_an_old_format_then_its_messages_have_their_offsets(
    engines: tuple[Engine, Engine], magic: int, base: int, values: list[bytes], codec: int
) -> None:
    start = 0 if magic else base  # format 1 counts from the first inner message
    inner = [old_bytes(magic, start + n, one, timestamp=n) for n, one in enumerate(values)]
    data = wrapper(magic, base + len(values) - 1, codec, b"".join(inner), timestamp=99)

    for engine in engines:
        found = engine.decode_records(data)
        times = range(len(values)) if magic else [-1] * len(values)
        assert found.records == [
            Record(base + n, time, None, one)
            for n, (time, one) in enumerate(zip(times, values, strict=True))
        ]
    assert_same_results(engines, data)


def test_wrapper_when_it_has_append_time_then_its_time_is_that_of_all(engine: Engine) -> None:
    inner = old_bytes(1, 0, b"a", timestamp=5) + old_bytes(1, 1, b"b", timestamp=6)

    found = engine.decode_records(wrapper(1, 8, 1 | 8, inner, timestamp=77)).records

    assert [(one.offset, one.timestamp) for one in found] == [(7, 77), (8, 77)]


def test_wrapper_when_lz4_has_the_checksum_of_early_kafka_then_is_read(engine: Engine) -> None:
    messages = old_bytes(0, 0, b"x" * 200) + old_bytes(0, 1, b"y")
    frame = bytearray(compress_batch(Codec.LZ4, messages))
    frame[6] ^= 0xFF

    early = engine.decode_records(old_bytes(0, 1, bytes(frame), attributes=3))
    later = engine.decode_records(old_bytes(1, 1, bytes(frame), attributes=3))

    assert [one.value for one in early.records] == [b"x" * 200, b"y"]
    assert later.fault is Fault.COMPRESSED


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (LIBRDKAFKA[:11], Fault.PARTIAL),
        (LIBRDKAFKA[:-1], Fault.PARTIAL),
        (LIBRDKAFKA[:16] + b"\3" + LIBRDKAFKA[17:], Fault.MAGIC),
        (bytes(100), Fault.SIZE),  # what a file has that room was made for
        (LIBRDKAFKA[:-1] + b"x", Fault.CRC),
        (FORMAT_1[:-1] + b"x", Fault.CRC),
        (b"\xff" + LIBRDKAFKA[1:], Fault.OFFSETS),
        (batch_bytes(b"", RecordBatch(attributes=5, last_offset_delta=0)), Fault.CODEC),
        (old_bytes(1, 0, b"", attributes=4), Fault.CODEC),
        (batch_bytes(b"", RecordBatch(last_offset_delta=-1)), Fault.OFFSETS),
        (batch_bytes(b"", RecordBatch(last_offset_delta=0, record_count=2)), Fault.OFFSETS),
        (
            batch_bytes(b"", RecordBatch(base_offset=2**63 - 1, last_offset_delta=0)),
            Fault.OFFSETS,
        ),
        (batch_bytes(b"x", RecordBatch(last_offset_delta=0)), Fault.RECORDS),
        (
            batch_bytes(b"", RecordBatch(last_offset_delta=2**31 - 1, record_count=2**31 - 1)),
            Fault.RECORDS,
        ),
        (batch_bytes(b"", RecordBatch(attributes=1, last_offset_delta=0)), Fault.COMPRESSED),
        (wrapper(1, 1, 1, b""), Fault.COMPRESSED),
        (wrapper(1, 1, 1, old_bytes(0, 0, b"")), Fault.COMPRESSED),
        (wrapper(1, 1, 1, wrapper(1, 0, 1, old_bytes(1, 0, b""))), Fault.COMPRESSED),
        (wrapper(1, 1, 1, old_bytes(1, 2, b"")), Fault.COMPRESSED),
        (old_bytes(1, 0, None, attributes=1), Fault.COMPRESSED),
    ],
)
def test_batch_when_damaged_or_a_lie_then_the_fault_is_named(
    engine: Engine, data: bytes, fault: Fault
) -> None:
    good = engine.encode_batch([Record(0, 0, None, b"good")])

    found = engine.decode_records(good + data)

    assert (len(found.records), found.valid_bytes, found.fault) == (1, len(good), fault)


@given(RECORDS, FIELDS, st.data())
def test_records_when_damaged_under_a_right_crc_then_engines_find_the_same(
    engines: tuple[Engine, Engine], found: list[Any], fields: RecordBatch, data: st.DataObject
) -> None:
    plain = fields._replace(attributes=fields.attributes & ~7)
    whole = engines[0].encode_batch(records_from(fields.base_offset, found), plain)
    content = bytearray(whole[HEADER_BYTES:] or b"\0")
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    codec = data.draw(CODECS)
    lies = fields._replace(
        attributes=codec | data.draw(st.sampled_from((0, 8, 32))),
        record_count=data.draw(st.integers(0, len(found) + 1)),
        last_offset_delta=data.draw(st.integers(0, 4000)),
    )
    packed = compress_batch(BATCH_CODECS[codec], bytes(content))

    assert_same_results(engines, batch_bytes(packed, lies) + whole, data.draw(st.integers(0, 400)))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_bomb_when_decoded_then_costs_no_more_than_the_limit(engine: Engine, codec: int) -> None:
    packed = compress_batch(BATCH_CODECS[codec], bytes(LIMIT_BYTES + 1))
    bomb = batch_bytes(packed, RecordBatch(attributes=codec, last_offset_delta=0, record_count=1))
    tracemalloc.start()
    try:
        found = engine.decode_records(bomb)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert found == ([], 0, Fault.COMPRESSED)
    assert peak_bytes < 3 * LIMIT_BYTES
    with pytest.raises(InvalidMessageError, match=f"unfolds to more than {LIMIT_BYTES} bytes"):
        unfold_batch(codec, 2, packed)


def test_headers_when_two_bytes_each_then_are_bounded_by_what_they_take(engine: Engine) -> None:
    def batch(headers: int) -> bytes:
        record = b"\0\0\0\x01\x01" + varint(headers) + b"\0\x01" * headers
        fields = RecordBatch(last_offset_delta=0, record_count=1)
        return batch_bytes(varint(len(record)) + record, fields)

    assert engine.decode_records(batch((1 << 20) + 1))[1:] == (0, Fault.RECORDS)
    first, second = batch(1), batch(100)
    assert len(second) < 1000
    found = engine.decode_records(first + second, max_bytes=6400)
    assert found[1:] == (len(first), Fault.NONE)
    assert len(engine.decode_records(first + second, max_bytes=8000).records) == 2


def test_decoding_when_a_limit_is_reached_then_ends_before_the_next_batch(engine: Engine) -> None:
    one = engine.encode_batch([Record(0, 0, None, b"x" * 500)], RecordBatch(attributes=4))

    found = engine.decode_records(one * 5, max_bytes=1100)
    least = engine.decode_record_columns(one * 5, max_bytes=0)

    assert (len(found.records), found.valid_bytes, found.fault) == (2, 2 * len(one), Fault.NONE)
    assert (least.record_count, least.valid_bytes, least.fault) == (1, len(one), Fault.NONE)


@given(RECORDS)
def test_columns_when_made_then_have_what_the_records_have(
    engines: tuple[Engine, Engine], found: list[Any]
) -> None:
    records = records_from(5, found)
    data = b"".join(engines[0].encode_batch([one], RecordBatch(base_offset=5)) for one in records)
    for engine in engines:
        columns = engine.decode_record_columns(data)

        assert columns.record_count == len(records)
        assert array("q", columns.offsets).tolist() == [one.offset for one in records]
        assert array("q", columns.timestamps).tolist() == [one.timestamp for one in records]
        assert fields_of(columns, "key") == [one.key for one in records]
        assert fields_of(columns, "value") == [one.value for one in records]
        ends = [0, *accumulate(len(one.headers) for one in records)]
        assert array("i", columns.header_offsets).tolist() == ends
        headers = [header for one in records for header in one.headers]
        assert fields_of(columns, "header_value") == [content for _, content in headers]
        starts = [0, *accumulate(len(name.encode()) for name, _ in headers)]
        assert array("i", columns.header_key_offsets).tolist() == starts
        assert columns.header_keys == "".join(name for name, _ in headers).encode()
        some = engine.decode_record_columns(data, columns={"values"})
        assert (some.values, some.keys, some.offsets) == (columns.values, b"", b"")


def fields_of(columns: RecordColumns, name: str) -> list[bytes | None]:
    """Return the values of a column."""
    starts = array("i", getattr(columns, f"{name}_offsets"))
    data, validity = getattr(columns, f"{name}s"), getattr(columns, f"{name}_validity")
    return [
        data[start:end] if validity[row // 8] >> row % 8 & 1 else None
        for row, (start, end) in enumerate(pairwise(starts))
    ]


def test_stamp_when_batches_come_from_a_producer_then_their_crc_stays_right(engine: Engine) -> None:
    two = engine.encode_batch([Record(0, 0, None, b"a"), Record(1, 0, None, b"b")])
    one = engine.encode_batch([Record(0, 0, None, b"c")])

    stamped, next_offset = engine.stamp_batches(memoryview(two + one), 1000, 7)

    found = engine.scan_batches(stamped)
    assert [(one.base_offset, one.leader_epoch) for one in found.batches] == [(1000, 7), (1002, 7)]
    assert (found.fault, next_offset) == (Fault.NONE, 1003)
    assert [one.offset for one in engine.decode_records(stamped).records] == [1000, 1001, 1002]


@pytest.mark.parametrize("data", [LIBRDKAFKA[:-1], FORMAT_1, bytes(61)])
def test_stamp_when_there_are_no_whole_batches_then_refuses(engine: Engine, data: bytes) -> None:
    with pytest.raises(ValueError, match="whole record batches"):
        engine.stamp_batches(data, 0, 0)
    with pytest.raises(OverflowError):
        engine.stamp_batches(LIBRDKAFKA, 2**63 - 1, 0)


@pytest.mark.parametrize(
    ("records", "batch"),
    [
        ([], NEW_BATCH),
        ([Record(1, 0, None, None)], RecordBatch(base_offset=2)),
        ([Record(1, 0, None, None), Record(1, 0, None, None)], NEW_BATCH),
        ([Record(2**31, 0, None, None)], NEW_BATCH),
        ([Record(0, -(2**63), None, None)], RecordBatch(base_timestamp=1)),
        ([Record(0, 0, None, None, (("\ud800", b""),))], NEW_BATCH),
        ([Record(n, 0, None, None, (("", None),) * 2**19) for n in range(3)], NEW_BATCH),
        ([Record(0, 0, None, None)], RecordBatch(attributes=5)),
        ([Record(0, 0, None, None)], RecordBatch(magic=1)),
        ([Record(0, 0, None, None)], RecordBatch(producer_epoch=2**15)),
    ],
)
def test_encoding_when_the_format_cannot_hold_it_then_refuses(
    engine: Engine, records: list[Record], batch: RecordBatch
) -> None:
    with pytest.raises(ValueError):
        engine.encode_batch(records, batch)


def test_header_name_when_not_utf8_then_is_read_as_java_does(engine: Engine) -> None:
    record = b"\0\0\0\1\1\x02\x04a\xff\x01"
    content = bytes((len(record) * 2,)) + record
    data = batch_bytes(content, RecordBatch(last_offset_delta=0, record_count=1))

    assert engine.decode_records(data).records[0].headers == (("a\ufffd", None),)
    assert engine.decode_record_columns(data).header_keys == b"a\xff"


def segments_of(folder: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """Return the bytes of each segment with what its manifest says."""
    topics = json.loads((folder / "manifest.json").read_text())["topics"]
    segments = [one for topic in topics.values() for one in topic["segments"]]
    return [((folder / one["file"]).read_bytes(), one) for one in segments]


def digest_of(records: list[Record]) -> str:
    """Return what the manifest calls `records_sha256`."""

    def text(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data).decode()

    digest = hashlib.sha256()
    for one in records:
        headers = [[name, text(content)] for name, content in one.headers]
        fields = {"offset": one.offset, "timestamp": one.timestamp, "key": text(one.key)}
        line = {**fields, "value": text(one.value), "headers": headers}
        digest.update(json.dumps(line, separators=(",", ":")).encode() + b"\n")
    return digest.hexdigest()


def test_segment_when_written_by_kafka_then_every_record_comes_out(
    engine: Engine, kafka_logs: Path
) -> None:
    for data, expected in segments_of(kafka_logs):
        scanned, found = engine.scan_batches(data), engine.decode_records(data)

        assert (scanned.fault, found.fault, found.valid_bytes) == (0, 0, len(data))
        assert len(scanned.batches) == expected["batches"]
        assert sum(one.is_control for one in scanned.batches) == expected["control_batches"]
        assert scanned.batches[-1].last_offset == expected["last_offset"]
        assert digest_of(found.records) == expected["records_sha256"], expected["file"]
        for batch, told in zip(scanned.batches, expected.get("batch_list", []), strict=False):
            names = {"position", "size", "magic", "attributes", "last_offset"} & set(told)
            assert {name: getattr(batch, name) for name in names} == {
                name: told[name] for name in names
            }


def test_segment_when_a_byte_is_flipped_then_that_is_found_or_does_no_harm(
    engines: tuple[Engine, Engine], kafka_logs: Path
) -> None:
    for segment, _ in segments_of(kafka_logs):
        good = engines[1].scan_batches(segment)
        first = good.batches[0]
        whole = segment[: first.size * 2]
        for at in range(first.size) if first.size < 400 else range(0, first.size, 7):
            data = whole[:at] + bytes((whole[at] ^ 1 << at % 8,)) + whole[at + 1 :]
            scanned = engines[1].scan_batches(data)
            has_no_crc = at < 8 or (first.magic == 2 and 12 <= at < 16)
            assert has_no_crc or (scanned.valid_bytes == 0 and scanned.fault), at
            assert_same_results(engines, data)


def test_batch_when_real_and_encoded_again_then_is_the_same(
    engine: Engine, kafka_logs: Path
) -> None:
    for segment, _ in segments_of(kafka_logs):
        for batch in engine.scan_batches(segment).batches:
            data = segment[batch.position : batch.end]
            if batch.magic < 2 or batch.has_append_time:  # which replaces the times of records
                continue
            records = engine.decode_records(data, with_control=True).records
            again = engine.encode_batch(records, batch)
            if batch.codec:
                assert engine.decode_records(again, with_control=True).records == records
                again, data = again[23:57], data[23:57]
            assert again == data


def test_wire_when_clients_produced_then_their_batches_are_read(engine: Engine) -> None:
    shared = Path(__file__).parents[5] / "shared" / "reference" / "kafka-modern-vectors.json"
    if not shared.is_file():
        pytest.skip("the frames of Kafka's clients are not in ../shared/reference")
    frames = [
        bytes.fromhex(one["request"])
        for one in json.loads(shared.read_text())["exchanges"]
        if one["api"] == "Produce"
    ]
    assert frames
    for frame in frames:
        # the one batch of such a frame: its magic byte, with a size that fits before it
        starts = [
            at - 16
            for at in range(16, len(frame) - 45)
            if frame[at] == 2 and 49 <= struct.unpack_from(">i", frame, at - 8)[0] <= len(frame)
        ]
        assert any(engine.decode_records(frame[start:]).records for start in starts)
