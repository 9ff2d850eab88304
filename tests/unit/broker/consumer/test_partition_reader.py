from __future__ import annotations

import pytest

from broker.consumer.chunk import Chunk
from broker.consumer.partition_reader import PartitionReader, naming_partition
from broker.errors import InvalidMessageError
from broker.protocol.codec import Fault, decode, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.topic import MessagePosition, TopicPartition

PARTITION = TopicPartition("events", 0, 0)
ONE = encode([b"abc"])
SIZE = len(ONE)
THREE = ONE * 3


def reader_at(offset: int, end: MessagePosition | None = None, inner: int = 0) -> PartitionReader:
    return PartitionReader(PARTITION, MessagePosition(offset, inner), end)


def test_data_when_messages_are_cut_by_chunks_then_joined_with_offsets_from_the_start() -> None:
    reader = reader_at(1000)
    seen: list[int] = []
    for place in range(0, len(THREE), 5):
        assert reader.add(Chunk(PARTITION, 1000 + place, THREE[place : place + 5]))
        decoded = decode(reader.data, reader.offset)
        seen += [offset for offset, _, _ in decoded.messages]
        reader.take(decoded.valid_bytes)

    assert seen == [1000, 1000 + SIZE, 1000 + 2 * SIZE]
    assert reader.offset == 1000 + 3 * SIZE


def test_take_when_little_is_left_then_the_chunk_is_not_kept_in_memory() -> None:
    reader = reader_at(0)
    reader.add(Chunk(PARTITION, 0, ONE * 100 + ONE[:5]))

    reader.take(100 * SIZE)

    assert bytes(reader.data) == ONE[:5]
    assert isinstance(reader.data.obj, bytes)
    assert len(reader.data.obj) == 5


@pytest.mark.parametrize(
    ("high_watermark", "after_bytes", "expected"),
    [
        (-1, 0, False),
        (1000 + SIZE, 0, False),
        (999 + SIZE, 0, True),
        (1000 + SIZE, SIZE, True),
        (9999, SIZE, False),
    ],
)
def test_ends_beyond_log_when_an_entry_ends_past_the_high_watermark_then_true(
    high_watermark: int, after_bytes: int, expected: bool
) -> None:
    reader = reader_at(1000)
    reader.add(Chunk(PARTITION, 1000, THREE[: SIZE + 7], high_watermark=high_watermark))

    assert reader.ends_beyond_log(after_bytes) is expected


def test_add_when_a_chunk_does_not_continue_the_data_then_refused() -> None:
    reader = reader_at(0)
    reader.add(Chunk(PARTITION, 0, ONE))

    assert not reader.add(Chunk(PARTITION, 2 * SIZE, ONE))
    assert not reader.add(Chunk(PARTITION, SIZE, b""))
    assert bytes(reader.data) == ONE


def test_data_when_the_chunk_goes_past_the_end_then_ends_there_and_reading_is_done() -> None:
    reader = reader_at(0, MessagePosition(2 * SIZE))
    reader.add(Chunk(PARTITION, 0, THREE))
    assert len(reader.data) == 2 * SIZE

    reader.take(2 * SIZE)

    assert reader.is_done
    assert not reader.add(Chunk(PARTITION, 3 * SIZE, ONE))


def test_data_when_the_end_lies_inside_a_compressed_set_then_holds_all_of_the_set() -> None:
    reader = reader_at(0, MessagePosition(SIZE, 1))
    reader.add(Chunk(PARTITION, 0, THREE))

    reader.take(SIZE)

    assert len(reader.data) == 2 * SIZE
    done = [reader.is_done]
    reader.take(SIZE)
    assert [*done, reader.is_done] == [False, True]


def test_skip_when_the_first_entry_is_taken_or_filtered_out_then_zero() -> None:
    taken, filtered = reader_at(0, inner=2), reader_at(0, inner=2)
    taken.add(Chunk(PARTITION, 0, ONE))
    assert taken.inner == 2

    taken.take(SIZE)
    filtered.add(Chunk(PARTITION, 0, skip_to=SIZE))

    assert (taken.inner, filtered.inner, filtered.offset) == (0, 0, SIZE)


def test_add_when_a_filter_skips_inside_a_message_then_the_message_is_corrupt() -> None:
    reader = reader_at(0)
    reader.add(Chunk(PARTITION, 0, ONE[:5]))

    with pytest.raises(InvalidMessageError, match=r"events\[0-0\]: the message at 0 is invalid"):
        reader.add(Chunk(PARTITION, 5, skip_to=50))


def test_take_valid_when_the_next_entry_is_corrupt_then_named_behind_the_good_ones() -> None:
    reader = reader_at(0)
    reader.add(Chunk(PARTITION, 0, ONE + b"\xff" * 20))

    with pytest.raises(
        InvalidMessageError, match=rf"events\[0-0\]: the message at {SIZE}"
    ) as caught:
        reader.take_valid(SIZE, Fault.SIZE)

    assert caught.value.partition == PARTITION
    assert reader.offset == SIZE


def test_take_valid_when_the_next_entry_is_incomplete_then_waits_for_the_rest() -> None:
    reader = reader_at(0)
    reader.add(Chunk(PARTITION, 0, ONE + ONE[:5], high_watermark=2 * SIZE))

    reader.take_valid(SIZE, Fault.PARTIAL)

    assert bytes(reader.data) == ONE[:5]


def test_take_valid_when_the_next_entry_can_never_be_complete_then_corrupt() -> None:
    reader = reader_at(0)
    reader.add(Chunk(PARTITION, 0, ONE + ONE[:5], high_watermark=SIZE + 5))

    with pytest.raises(InvalidMessageError, match="its length is corrupt"):
        reader.take_valid(SIZE, Fault.PARTIAL)


def test_restart_when_data_is_left_then_dropped() -> None:
    reader = reader_at(0, inner=1)
    reader.add(Chunk(PARTITION, 0, ONE[:5], high_watermark=5))

    reader.restart_at(500)

    assert (reader.offset, reader.inner, len(reader.data)) == (500, 0, 0)
    assert not reader.ends_beyond_log()


def test_naming_partition_when_a_message_is_corrupt_then_the_error_names_it() -> None:
    with (
        pytest.raises(InvalidMessageError, match=r"^events\[0-0\]: bad$") as caught,
        naming_partition(PARTITION),
    ):
        raise InvalidMessageError("bad")

    assert caught.value.partition == PARTITION


def test_take_messages_when_the_range_cuts_wrappers_then_gives_only_what_lies_in_it() -> None:
    wrapper = build_set([b"a", b"b", b"c"], Codec.GZIP)
    reader = reader_at(0, MessagePosition(len(wrapper), 2), inner=1)
    reader.add(Chunk(PARTITION, 0, wrapper + wrapper + ONE))

    assert [payload for _, _, payload in reader.take_messages()] == [b"b", b"c", b"a", b"b"]
    assert reader.is_done


def test_take_messages_when_a_message_is_corrupt_then_raises_unless_it_is_behind_the_end() -> None:
    wrapper = build_set([b"a", b"b"], Codec.GZIP)
    damaged = wrapper + ONE[:-1] + b"X"
    reader = reader_at(0, MessagePosition(0, 1))
    reader.add(Chunk(PARTITION, 0, damaged))
    assert [payload for _, _, payload in reader.take_messages()] == [b"a"]

    reader = reader_at(0)
    reader.add(Chunk(PARTITION, 0, damaged))
    with pytest.raises(InvalidMessageError, match=f"the message at {len(wrapper)} is invalid"):
        reader.take_messages()
