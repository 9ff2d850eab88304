from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from broker.consumer.chunk import Chunk, inner_index
from broker.consumer.committer import AssignedPartition
from broker.consumer.membership import Lease
from broker.consumer.stream import ConsumerStream
from broker.errors import ConsumerTimeoutError, InvalidMessageError, OffsetOutOfRangeError
from broker.protocol.codec import decode_delimited, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.topic import MessagePosition, TopicPartition
from tests.support.waiting import wait_until

PARTITION = TopicPartition("t", 0, 0)
OTHER = TopicPartition("t", 0, 1)
THREE = encode([b"a", b"b", b"c"])  # 11 bytes each
START = MessagePosition(0)


@pytest.fixture
def lease() -> Lease:
    lease = Lease()
    lease.renew(time.monotonic() + 1000)
    return lease


@pytest.fixture
def stream(lease: Lease) -> ConsumerStream:
    return make_stream(lease)


def make_stream(
    lease: Lease,
    *,
    timeout_s: float | None = 0.05,
    on_room: Callable[[], None] = lambda: None,
    is_wanted: Callable[[bytes], object] | None = None,
    behind: int | None = None,
) -> ConsumerStream:
    return ConsumerStream(
        "t-0",
        lease,
        max_chunks=2,
        timeout_s=timeout_s,
        on_room=on_room,
        on_restart=lambda _partition, _offset: None,
        is_wanted=is_wanted,
        next_good_message=lambda _partition, _offset: behind,
    )


def own(
    stream: ConsumerStream,
    partition: TopicPartition = PARTITION,
    at: MessagePosition | None = START,
) -> AssignedPartition:
    owned = AssignedPartition(partition, at or MessagePosition(-1), thread_id="g_c-0", committed=at)
    stream.assign(owned)
    return owned


def take(stream: ConsumerStream, count: int) -> list[bytes]:
    return [next(stream)[4] for _ in range(count)]


def test_stream_when_iterated_then_gives_topic_partition_offsets_and_payload(
    stream: ConsumerStream,
) -> None:
    owned = own(stream, at=MessagePosition(100))
    stream.put(owned, Chunk(owned.partition, 100, encode([b"hello"])))

    assert next(stream) == ("t", PARTITION, 100, 115, b"hello")


def test_stream_when_the_next_message_is_asked_for_then_the_one_before_is_finished(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))

    next(stream)
    assert owned.position == MessagePosition(0)
    next(stream)
    assert owned.position == MessagePosition(11)


def test_stream_when_a_message_is_finished_by_hand_then_it_counts_at_once(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))

    stream.finish(next(stream))

    assert owned.position == MessagePosition(11)


def test_stream_when_a_loop_is_left_and_another_begins_then_goes_on_behind_it(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))

    for _ in stream:
        break
    assert owned.position == MessagePosition(0)
    assert take(stream, 1) == [b"b"]
    assert owned.position == MessagePosition(11)


def test_stream_when_a_message_comes_in_pieces_then_is_given_whole(stream: ConsumerStream) -> None:
    owned = own(stream)
    for start in range(0, len(THREE), 5):
        stream.put(owned, Chunk(owned.partition, start, THREE[start : start + 5]))

    assert take(stream, 3) == [b"a", b"b", b"c"]


def test_stream_when_nothing_comes_then_times_out_and_can_be_used_again(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    with pytest.raises(ConsumerTimeoutError, match="nothing came to stream t-0"):
        next(stream)

    stream.put(owned, Chunk(owned.partition, 0, THREE))

    assert take(stream, 1) == [b"a"]


def test_stream_when_a_partition_is_revoked_then_nothing_of_it_is_given_any_more(
    stream: ConsumerStream,
) -> None:
    owned, kept = own(stream), own(stream, OTHER)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    stream.put(owned, Chunk(owned.partition, 33, THREE))
    stream.put(kept, Chunk(kept.partition, 0, encode([b"kept"])))
    next(stream)

    stream.revoke(owned)
    stream.put(owned, Chunk(owned.partition, 66, THREE))

    assert take(stream, 1) == [b"kept"]
    with pytest.raises(ConsumerTimeoutError):
        next(stream)


def test_stream_when_the_lease_has_run_out_then_gives_nothing_until_it_is_renewed(
    lease: Lease,
) -> None:
    stream = make_stream(lease, timeout_s=None)
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    next(stream)
    lease.lose()

    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.extend(take(stream, 2)))
    reader.start()
    wait_until(lambda: owned.position == MessagePosition(11), "the finish of the first message")
    assert received == []
    lease.renew(time.monotonic() + 1000)
    reader.join()

    assert received == [b"b", b"c"]


def test_stream_when_released_while_the_lease_has_run_out_then_gives_nothing_of_it(
    lease: Lease, stream: ConsumerStream
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    next(stream)
    lease.lose()
    with pytest.raises(ConsumerTimeoutError):
        next(stream)

    stream.revoke(owned)
    lease.renew(time.monotonic() + 1000)

    with pytest.raises(ConsumerTimeoutError):
        next(stream)


def test_stream_when_ended_then_iteration_ends(stream: ConsumerStream) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    next(stream)

    stream.end()

    assert list(stream) == []


def test_stream_when_a_set_is_compressed_then_finishes_inside_it_count_but_do_not_move_the_offset(
    stream: ConsumerStream,
) -> None:
    wrapper = build_set([b"a", b"b", b"c"], Codec.GZIP)
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, wrapper))

    positions = []
    for _ in range(3):
        next(stream)
        positions.append(owned.position)
    with pytest.raises(ConsumerTimeoutError):
        next(stream)

    assert positions == [MessagePosition(0), MessagePosition(0, 1), MessagePosition(0, 2)]
    assert owned.position == MessagePosition(len(wrapper))


def test_stream_when_messages_of_a_set_were_finished_before_then_leaves_them_out(
    stream: ConsumerStream,
) -> None:
    wrapper = build_set([b"a", b"b", b"c"], Codec.GZIP)
    owned = own(stream, at=MessagePosition(0, 1))
    stream.put(owned, Chunk(owned.partition, 0, wrapper))

    second = next(stream)
    assert (second[4], inner_index(second)) == (b"b", 1)
    stream.finish(second)
    assert owned.position == MessagePosition(0, 2)
    assert take(stream, 1) == [b"c"]


def test_stream_when_a_message_is_corrupt_then_says_where_and_goes_on_with_others(
    stream: ConsumerStream,
) -> None:
    damaged = bytearray(THREE)
    damaged[21] ^= 1  # the payload of the second message
    owned, other = own(stream), own(stream, OTHER)
    stream.put(owned, Chunk(owned.partition, 0, damaged))
    stream.put(other, Chunk(other.partition, 0, encode([b"x"])))

    assert take(stream, 1) == [b"a"]
    with pytest.raises(InvalidMessageError, match=r"t\[0-0\].* 11"):
        next(stream)

    assert take(stream, 1) == [b"x"]
    assert owned.position == MessagePosition(11)


def test_skip_corrupt_when_called_then_the_partition_goes_on_behind_the_message(
    stream: ConsumerStream,
) -> None:
    damaged = bytearray(THREE)
    damaged[21] ^= 1
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, damaged))
    take(stream, 1)
    with pytest.raises(InvalidMessageError):
        next(stream)

    assert stream.skip_corrupt(PARTITION) == 22
    assert owned.seek_offset == 22
    stream.put(owned, Chunk(owned.partition, 33, THREE))  # was on its way
    stream.put(owned, Chunk(owned.partition, 22, THREE[22:]))

    assert take(stream, 1) == [b"c"]


@pytest.mark.parametrize("damage", [b"\x7f", b"\xff"], ids=["too long", "negative"])
def test_stream_when_a_length_is_damaged_then_says_so_at_once_and_goes_on_with_others(
    lease: Lease, damage: bytes
) -> None:
    stream = make_stream(lease, behind=22)
    owned, other = own(stream), own(stream, OTHER)
    damaged = THREE[:11] + damage + THREE[12:]
    stream.put(owned, Chunk(owned.partition, 0, damaged, high_watermark=33))
    stream.put(other, Chunk(other.partition, 0, encode([b"x"]), high_watermark=11))

    assert take(stream, 1) == [b"a"]
    with pytest.raises(InvalidMessageError, match=r"t\[0-0\]: the message at 11 .*length.*skip"):
        next(stream)
    assert take(stream, 1) == [b"x"]
    assert owned.position == MessagePosition(11)

    assert stream.skip_corrupt(PARTITION) == 22
    stream.put(owned, Chunk(owned.partition, 22, THREE[22:], high_watermark=33))
    assert take(stream, 1) == [b"c"]


def test_stream_when_a_message_is_larger_than_what_came_then_waits_for_the_rest(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE[:5], high_watermark=11))
    with pytest.raises(ConsumerTimeoutError):
        next(stream)
    stream.put(owned, Chunk(owned.partition, 5, THREE[5:], high_watermark=33))

    assert take(stream, 3) == [b"a", b"b", b"c"]


def test_skip_corrupt_when_nobody_knows_where_the_next_message_is_then_says_how_to_find_it(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, b"\x7f" + THREE[1:], high_watermark=33))
    with pytest.raises(InvalidMessageError):
        next(stream)

    with pytest.raises(InvalidMessageError, match=r"t\[0-0\]: the message at 0 .*log verify"):
        stream.skip_corrupt(PARTITION)


def test_chunk_when_its_last_entry_goes_on_past_all_there_is_then_says_so(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE[:20], high_watermark=33))
    rest = THREE[20:22] + b"\x7f" + THREE[23:]
    stream.put(owned, Chunk(owned.partition, 20, rest, high_watermark=33))
    chunks = stream.chunks()

    assert not next(chunks).ends_beyond_log(11)
    assert next(chunks).ends_beyond_log(22)


def test_seek_when_called_in_a_loop_then_the_loop_goes_on_there(stream: ConsumerStream) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    given = []

    for message in stream:
        given.append(message[4])
        if given == [b"a"]:
            stream.seek(PARTITION, 22)
            stream.put(owned, Chunk(owned.partition, 33, THREE))  # was on its way
            stream.put(owned, Chunk(owned.partition, 22, THREE[22:]))
        if message[4] == b"c":
            break

    assert given == [b"a", b"c"]
    assert (owned.seek_offset, owned.position) == (22, MessagePosition(22))


def test_release_when_a_message_of_a_set_is_in_hand_then_it_is_finished_with_the_next_asked_for(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, build_set([b"a", b"b", b"c", b"d"], Codec.GZIP)))
    take(stream, 2)

    stream.revoke(owned)
    assert owned.position == MessagePosition(0, 1)
    with pytest.raises(ConsumerTimeoutError):
        next(stream)

    assert owned.position == MessagePosition(0, 2)


def test_stream_when_sets_and_others_come_then_tells_each_ones_place_in_its_set(
    stream: ConsumerStream,
) -> None:
    parts = [
        encode([b"a", b"b"]),
        build_set([b"c", b"d", b"e"], Codec.GZIP),
        build_set([b"f"], Codec.GZIP),
        build_set([b"g", b"h"], Codec.GZIP),
        encode([b"i"]),
    ]
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, b"".join(parts)))

    found = []
    for _ in range(9):  # each in a loop of its own
        for message in stream:
            found.append((message[4], inner_index(message)))
            break

    names = [b"%c" % one for one in b"abcdefghi"]
    assert found == list(zip(names, [0, 0, 0, 1, 2, 0, 0, 1, 0], strict=True))


def test_seek_when_back_to_a_set_that_was_begun_then_counts_from_its_start(
    stream: ConsumerStream,
) -> None:
    wrapper = build_set([b"a", b"b", b"c"], Codec.GZIP)
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, wrapper))
    take(stream, 3)

    stream.seek(PARTITION, 0)
    stream.put(owned, Chunk(owned.partition, 0, wrapper))

    assert take(stream, 1) == [b"a"]
    assert owned.position == MessagePosition(0)
    stream.finish(next(stream))
    assert owned.position == MessagePosition(0, 2)


def test_stream_when_bytes_are_a_slice_of_others_then_reads_only_the_slice(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, memoryview(b"frame" + THREE)[5:]))

    assert take(stream, 3) == [b"a", b"b", b"c"]


def test_stream_when_a_jump_arrives_then_everything_before_counts_as_finished(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, MessagePosition(500))
    stream.put(owned, Chunk(owned.partition, 500, encode([b"x"])))

    assert next(stream)[2] == 500
    assert owned.position == MessagePosition(500)


def test_stream_when_an_error_arrives_then_raises_it_once(stream: ConsumerStream) -> None:
    stream.put(own(stream), OffsetOutOfRangeError("no such offset"))

    with pytest.raises(OffsetOutOfRangeError):
        next(stream)
    with pytest.raises(ConsumerTimeoutError):
        next(stream)


def test_stream_when_it_fills_and_empties_then_tells_fetchers(lease: Lease) -> None:
    told: list[bool] = []
    stream = make_stream(lease, on_room=lambda: told.append(True))
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    stream.put(owned, Chunk(owned.partition, 33, THREE))
    assert (stream.is_full, told) == (True, [])

    next(stream)

    assert (stream.is_full, told) == (False, [True])


def test_chunks_when_part_is_taken_then_the_rest_comes_in_front_of_the_next(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE[:15]))
    stream.put(owned, Chunk(owned.partition, 15, THREE[15:]))
    chunks = stream.chunks()

    first = next(chunks)
    offset, decoded = first.offset, decode_delimited(first.data, b"\n")
    first.take(decoded.valid_bytes)
    second = next(chunks)

    assert (offset, decoded.text) == (0, b"a\n")
    assert (second.offset, decode_delimited(second.data, b"\n").text) == (11, b"b\nc\n")
    second.take(11)
    assert owned.position == MessagePosition(0)
    assert second.finish(22)
    assert owned.position == MessagePosition(22)


def test_finish_when_messages_before_the_offset_were_not_taken_then_refused(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    assigned = next(stream.chunks())
    assigned.take(11)

    with pytest.raises(ValueError, match="taken up to 11 only"):
        assigned.finish(22)

    assert owned.position == MessagePosition(0)


def test_chunk_when_its_partition_was_released_then_cannot_be_finished(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    assigned = next(stream.chunks())
    assigned.take(33)

    stream.revoke(owned)

    assert not assigned.finish(33)
    assert owned.position == MessagePosition(0)


def test_stream_when_messages_were_left_out_then_they_are_finished_after_those_before_them(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    stream.put(owned, Chunk(owned.partition, 33, skip_to=500))
    stream.put(owned, Chunk(owned.partition, 500, encode([b"d"])))

    assert take(stream, 3) == [b"a", b"b", b"c"]
    assert owned.position == MessagePosition(22)
    assert next(stream)[2:] == (500, 511, b"d")
    assert owned.position == MessagePosition(500)
    with pytest.raises(ConsumerTimeoutError):
        next(stream)
    assert owned.position == MessagePosition(511)


def test_stream_when_all_is_left_out_then_times_out_and_has_got_on(stream: ConsumerStream) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, skip_to=500))
    stream.put(owned, Chunk(owned.partition, 500, skip_to=900))

    with pytest.raises(ConsumerTimeoutError):
        next(stream)

    assert owned.position == MessagePosition(900)


def test_stream_when_no_end_of_what_is_left_out_comes_then_times_out_nevertheless(
    lease: Lease,
) -> None:
    stream = make_stream(lease, timeout_s=0.01)
    owned = own(stream)
    offset = 0
    with pytest.raises(ConsumerTimeoutError):
        while offset < 10**9:
            for _ in range(5000):
                stream.put(owned, Chunk(owned.partition, offset, skip_to=offset + 1))
                offset += 1
            next(stream)

    assert owned.finished <= offset


def test_stream_when_what_was_left_out_is_no_continuation_then_is_dropped(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 70, skip_to=500))
    stream.put(owned, Chunk(owned.partition, 0, THREE))

    assert take(stream, 1) == [b"a"]


def test_stream_when_a_message_does_not_end_before_what_was_left_out_then_says_where(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE[:15]))
    stream.put(owned, Chunk(owned.partition, 15, skip_to=500))

    assert take(stream, 1) == [b"a"]
    with pytest.raises(InvalidMessageError, match=r"t\[0-0\]: the message at 11 is invalid"):
        next(stream)
    assert owned.position == MessagePosition(11)
    assert owned.is_blocked


def test_stream_when_some_messages_are_wanted_then_others_are_finished_without_being_given(
    lease: Lease,
) -> None:
    stream = make_stream(lease, is_wanted=lambda payload: payload in b"bd")
    wrapper = build_set([b"a", b"b", b"c", b"d", b"e"], Codec.GZIP)
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, wrapper))

    assert take(stream, 1) == [b"b"]
    assert owned.position == MessagePosition(0, 1)
    assert take(stream, 1) == [b"d"]
    assert owned.position == MessagePosition(0, 3)
    with pytest.raises(ConsumerTimeoutError):
        next(stream)
    assert owned.position == MessagePosition(len(wrapper))


def test_stream_when_it_starts_inside_a_set_then_those_finished_before_count_wanted_or_not(
    lease: Lease,
) -> None:
    stream = make_stream(lease, is_wanted=lambda payload: payload in b"bd")
    owned = own(stream, at=MessagePosition(0, 2))
    stream.put(owned, Chunk(owned.partition, 0, build_set([b"a", b"b", b"c", b"d"], Codec.GZIP)))

    assert take(stream, 1) == [b"d"]


def test_chunks_when_messages_were_left_out_then_an_empty_one_tells_how_far(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    stream.put(owned, Chunk(owned.partition, 33, skip_to=500))
    chunks = stream.chunks()

    first = next(chunks)
    first.take(33)
    second = next(chunks)
    assert owned.position == MessagePosition(0)
    assert first.finish(33)
    assert (second.offset, bytes(second.data)) == (500, b"")
    assert second.finish(500)
    assert owned.position == MessagePosition(500)


def test_position_when_nothing_is_known_yet_then_is_none(stream: ConsumerStream) -> None:
    assert own(stream, at=None).position is None


def test_chunks_when_a_partition_is_revoked_then_the_chunk_in_hand_may_be_finished(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    stream.put(owned, Chunk(owned.partition, 33, THREE))
    chunks = stream.chunks()
    next(chunks)
    revoking = threading.Thread(target=stream.revoke, args=(owned, 60))
    revoking.start()
    wait_until(lambda: owned.is_leaving, "the revocation")

    owned.take(33)
    assert owned.finish(33)
    with pytest.raises(ConsumerTimeoutError):
        next(chunks)

    revoking.join(60)
    assert not revoking.is_alive()
    assert owned.position == MessagePosition(33)


def test_chunks_when_a_chunk_in_hand_is_not_finished_in_time_then_it_is_the_next_owners(
    stream: ConsumerStream,
) -> None:
    owned = own(stream)
    stream.put(owned, Chunk(owned.partition, 0, THREE))
    chunks = stream.chunks()
    next(chunks)

    stream.revoke(owned, 0.01)

    owned.take(33)
    assert not owned.finish(33)
    assert owned.position == MessagePosition(0)


def test_stream_when_revoked_before_it_came_to_its_start_then_that_is_to_be_committed(
    stream: ConsumerStream,
) -> None:
    owned = own(stream, at=None)
    stream.put_start(owned, MessagePosition(22))

    stream.revoke(owned)

    assert owned.position == MessagePosition(22)
