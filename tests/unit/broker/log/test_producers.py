"""Producers of a log: what they send again is found, also after a restart, and order is kept."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import (
    InvalidMessageError,
    InvalidProducerEpochError,
    InvalidRequestError,
    OutOfOrderSequenceError,
)
from broker.log.producers import (
    KEPT_BATCHES,
    KnownBatch,
    Producers,
    rebuild,
    snapshot_path,
    stale_snapshots,
    truncated,
)
from broker.log.side_files import (
    AbortedTransaction,
    ProducerState,
    append_aborted,
    read_aborted,
    read_snapshot,
    write_snapshot,
)
from broker.protocol import codec
from broker.protocol.codec import Record, RecordBatch
from broker.topic import TopicPartition

PARTITION = TopicPartition("orders", -1, 0)
PRODUCER = 1000
LAST_SEQUENCE = 2**31 - 1
NOW_MS = 1_700_000_000_000
TRANSACTIONAL, CONTROL = 0x10, 0x20
ABORT, COMMIT = 0, 1


def batch(
    sequence: int,
    count: int = 1,
    *,
    producer_id: int = PRODUCER,
    epoch: int = 0,
    offset: int = 0,
    attributes: int = 0,
) -> RecordBatch:
    return RecordBatch(
        base_offset=offset,
        attributes=attributes,
        last_offset_delta=count - 1,
        max_timestamp=NOW_MS + offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=count,
    )


def encoded(head: RecordBatch) -> bytes:
    """Return a batch with this head, of records without content."""
    records = [
        Record(head.base_offset + n, head.max_timestamp, None, b"x")
        for n in range(head.record_count)
    ]
    return codec.encode_batch(records, head)


def mark(
    kind: int, offset: int, *, producer_id: int = PRODUCER, epoch: int = 0, coordinator: int = 3
) -> bytes:
    """Return a control batch that ends a transaction."""
    key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, coordinator)
    head = batch(
        -1,
        producer_id=producer_id,
        epoch=epoch,
        offset=offset,
        attributes=TRANSACTIONAL | CONTROL,
    )
    return codec.encode_batch([Record(offset, NOW_MS + offset, key, value)], head)


def note_all(producers: Producers, *content: bytes) -> list[AbortedTransaction]:
    """Note batches as a follower does; return the transactions that they abort."""
    data = b"".join(content)
    found = [
        producers.note(one, one.base_offset, NOW_MS, data)
        for one in codec.scan_batches(data).batches
    ]
    return [one for one in found if one is not None]


def states(producers: Producers) -> list[ProducerState]:
    return sorted(producers.states())


class Part(NamedTuple):
    path: Path
    base_offset: int
    size: int


def parts_of(directory: Path) -> list[Part]:
    """Return the segments of a partition."""
    paths = sorted(directory.glob("*.log"))
    return [Part(path, int(path.stem), path.stat().st_size) for path in paths]


def write_segments(directory: Path, *segments: Sequence[bytes]) -> list[Part]:
    """Write segments of the batches in each."""
    for content in segments:
        offset = codec.scan_batches(content[0]).batches[0].base_offset
        (directory / f"{offset:020d}.log").write_bytes(b"".join(content))
    return parts_of(directory)


def idempotent(offsets: Iterable[int], producer_id: int = PRODUCER) -> list[bytes]:
    """Return batches of one record each, whose sequences are their offsets."""
    return [encoded(batch(one, producer_id=producer_id, offset=one)) for one in offsets]


@pytest.fixture
def producers() -> Producers:
    return Producers(PARTITION)


def test_batch_when_of_no_producer_then_is_not_remembered(producers: Producers) -> None:
    one = RecordBatch(last_offset_delta=0)
    assert producers.check([one, one]) is None
    assert producers.note(one, 0, NOW_MS) is None
    assert len(producers) == 0


def test_batch_when_its_producer_is_unknown_then_may_have_any_sequence(
    producers: Producers,
) -> None:
    assert producers.check([batch(77)]) is None


@pytest.mark.parametrize(
    ("sequence", "epoch", "error"),
    [
        (10, 4, InvalidProducerEpochError),
        (0, 4, InvalidProducerEpochError),
        (10, 6, OutOfOrderSequenceError),  # a new epoch starts at 0
        (11, 5, OutOfOrderSequenceError),
        (9, 5, OutOfOrderSequenceError),  # part of a known batch
        (-1, 5, InvalidMessageError),
    ],
)
def test_batch_when_it_does_not_follow_then_the_error_names_partition_and_producer(
    producers: Producers, sequence: int, epoch: int, error: type[Exception]
) -> None:
    producers.note(batch(0, 10, epoch=5), 0, NOW_MS)
    with pytest.raises(error, match=rf"orders\[0\]: .*producer {PRODUCER}"):
        producers.check([batch(sequence, epoch=epoch)])
    assert producers.check([batch(10, epoch=5)]) is None
    assert producers.check([batch(0, epoch=6)]) is None


def test_batch_when_one_of_the_last_five_then_is_found_and_an_older_one_is_out_of_order(
    producers: Producers,
) -> None:
    for n in range(KEPT_BATCHES + 1):
        producers.note(batch(10 * n, 10, offset=100 * n), 100 * n, NOW_MS)
    for n in range(1, KEPT_BATCHES + 1):
        assert producers.check([batch(10 * n, 10)]) == KnownBatch(
            100 * n, 100 * n + 10, NOW_MS + 100 * n
        )
    with pytest.raises(OutOfOrderSequenceError):
        producers.check([batch(0, 10)])


def test_batch_when_a_new_epoch_has_begun_then_those_of_the_old_one_are_fenced(
    producers: Producers,
) -> None:
    producers.note(batch(0), 0, NOW_MS)
    producers.note(batch(0, epoch=1), 1, NOW_MS)
    assert producers.check([batch(0, epoch=1)]) == (1, 2, NOW_MS)
    with pytest.raises(InvalidProducerEpochError):
        producers.check([batch(0)])


def test_sequence_when_it_is_the_last_number_then_0_follows(producers: Producers) -> None:
    producers.note(batch(LAST_SEQUENCE - 2, 2), 0, NOW_MS)
    wrapping = batch(LAST_SEQUENCE, 3)
    assert producers.check([wrapping]) is None
    producers.note(wrapping, 2, NOW_MS)
    assert producers.check([batch(2)]) is None
    assert producers.check([wrapping]) == (2, 5, NOW_MS)
    with pytest.raises(OutOfOrderSequenceError):
        producers.check([batch(1)])
    producers.note(batch(LAST_SEQUENCE), 5, NOW_MS)
    assert producers.check([batch(0)]) is None


def test_append_when_of_several_batches_then_each_follows_the_one_before(
    producers: Producers,
) -> None:
    both = [batch(0, 5), batch(7, 3, producer_id=2), batch(5, 5)]
    assert producers.check(both) is None
    for one, offset in zip(both, (0, 5, 8), strict=True):
        producers.note(one, offset, NOW_MS)
    assert producers.check(both) == (0, 13, NOW_MS)
    for wrong in (
        [batch(10), batch(12)],
        [batch(10), batch(5, 5)],
        [batch(10), batch(10)],
        [batch(10), batch(0, epoch=1), batch(2, epoch=1)],
        [batch(5, 5), batch(10)],  # partly a duplicate
        [batch(5, 5), RecordBatch(last_offset_delta=0)],
    ):
        with pytest.raises(OutOfOrderSequenceError):
            producers.check(wrong)
    assert producers.check([batch(10), batch(0, epoch=1), batch(1, epoch=1)]) is None


def test_append_when_it_has_more_batches_of_a_producer_than_are_kept_then_is_refused(
    producers: Producers,
) -> None:
    many = [batch(n) for n in range(KEPT_BATCHES + 1)]
    others = [batch(0, producer_id=n) for n in range(KEPT_BATCHES + 1)]
    assert producers.check([*many[:-1], *others]) is None
    with pytest.raises(InvalidMessageError, match="more than 5 batches"):
        producers.check(many)


@given(
    first_sequence=st.sampled_from([0, 5, LAST_SEQUENCE - 7]),
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    turns=st.lists(
        st.tuples(st.integers(1, KEPT_BATCHES), st.integers(0, 5), st.integers(0, 5)), max_size=12
    ),
    is_restarted=st.booleans(),
)
def test_producer_when_it_resends_after_any_loss_then_each_record_is_in_the_log_once(
    first_sequence: int,
    counts: list[int],
    turns: list[tuple[int, int, int]],
    is_restarted: bool,
) -> None:
    """A turn has up to five batches in flight, requests lost behind some, and answers too."""
    starts = [(first_sequence + n) & LAST_SEQUENCE for n in accumulate(counts, initial=0)]
    batches = [batch(start, count) for start, count in zip(starts, counts, strict=False)]
    log: list[tuple[int, RecordBatch]] = []  # base offsets and batches
    producers = Producers(PARTITION)
    acknowledged = 0
    for in_flight, received, answered in [*turns, *[(KEPT_BATCHES,) * 3] * len(batches)]:
        if is_restarted:
            producers = Producers(PARTITION)
            for offset, one in log:
                producers.note(one, offset, NOW_MS)
        for number in range(acknowledged, min(acknowledged + in_flight, len(batches)))[:received]:
            one = batches[number]
            end = log[-1][0] + log[-1][1].record_count if log else 0
            known = producers.check([one])
            if known is None:
                log.append((end, one))
                producers.note(one, end, NOW_MS)
            else:
                assert (known.base_offset, one) in log
                assert known.next_offset == known.base_offset + one.record_count
            if answered > 0 and number == acknowledged:
                acknowledged += 1
                answered -= 1
    assert [one for _, one in log] == batches


def test_producers_when_unused_for_a_day_then_are_forgotten(producers: Producers) -> None:
    for producer_id, time_ms in ((1, 0), (2, 10), (1, 20), (3, 30)):
        producers.note(batch(0, producer_id=producer_id, epoch=time_ms), 0, time_ms)
    producers.note(batch(0, producer_id=4, attributes=TRANSACTIONAL), 7, 0)
    producers.expire(119, 100)
    assert [one.producer_id for one in producers.states()] == [1, 3, 4]
    producers.expire(1000, 100)
    assert [one.producer_id for one in producers.states()] == [4]  # its transaction is open


def test_producers_when_too_many_then_those_not_used_for_longest_are_forgotten() -> None:
    producers = Producers(PARTITION, max_count=3)
    for producer_id in (1, 2, 3, 1, 4, 5):
        producers.note(batch(0, producer_id=producer_id), 0, NOW_MS)
    assert [one.producer_id for one in producers.states()] == [1, 4, 5]
    opening = encoded(batch(1, producer_id=4, attributes=TRANSACTIONAL))
    note_all(producers, opening, *idempotent([0], 6), mark(COMMIT, 1, producer_id=4))
    assert [one.producer_id for one in producers.states()] == [5, 6, 4]


def test_transactions_when_too_many_are_open_then_another_is_refused() -> None:
    producers = Producers(PARTITION, max_count=2)
    opening = [batch(0, producer_id=one, attributes=TRANSACTIONAL) for one in (1, 2, 3)]
    for one in opening[:2]:
        assert producers.check([one]) is None
        producers.note(one, one.producer_id, NOW_MS)
    with pytest.raises(InvalidRequestError, match="2 transactions are open"):
        producers.check(opening[2:])
    assert producers.check([batch(1, producer_id=2, attributes=TRANSACTIONAL)]) is None
    note_all(producers, mark(COMMIT, 9, producer_id=1))
    assert producers.check(opening[2:]) is None


def test_transaction_when_it_ends_then_the_first_open_offset_is_of_the_next(
    producers: Producers,
) -> None:
    one, other = (
        encoded(batch(0, producer_id=n, offset=10 * n, attributes=TRANSACTIONAL)) for n in (1, 2)
    )
    steps = [
        (one + other, []),
        (encoded(batch(1, producer_id=1, offset=25, attributes=TRANSACTIONAL)), []),
        (mark(ABORT, 30, producer_id=1), [(1, 10, 30, 20)]),
        (mark(COMMIT, 31, producer_id=2), []),
        (mark(ABORT, 32, producer_id=2), []),  # there was none
    ]
    first_open_offsets = []
    for content, aborted in steps:
        assert note_all(producers, content) == aborted
        first_open_offsets.append(producers.first_open_offset)
    assert first_open_offsets == [10, 10, 20, None, None]


def test_mark_when_of_a_later_epoch_then_its_producer_starts_at_0(producers: Producers) -> None:
    sent = encoded(batch(0, 5, attributes=TRANSACTIONAL))
    note_all(producers, sent, mark(COMMIT, 5))
    assert producers.check([batch(5)]) is None  # the same epoch goes on
    assert producers.check([batch(0, 5)]) == (0, 5, NOW_MS)
    note_all(producers, mark(COMMIT, 6, epoch=1))
    assert states(producers) == [(PRODUCER, 1, -1, -1, 0, NOW_MS + 6, 3, -1)]
    assert producers.check([batch(0, epoch=1)]) is None
    with pytest.raises(OutOfOrderSequenceError):
        producers.check([batch(5, epoch=1)])


def test_control_batch_when_it_has_no_mark_then_a_transaction_stays_open(
    producers: Producers,
) -> None:
    note_all(producers, encoded(batch(0, attributes=TRANSACTIONAL)))
    head = batch(-1, offset=1, attributes=TRANSACTIONAL | CONTROL)
    note_all(
        producers,
        codec.encode_batch([], head),  # compacted away
        mark(7, 2),
        codec.encode_batch([Record(3, 0, b"\0", None)], head._replace(base_offset=3)),
    )
    assert producers.first_open_offset == 0


def test_batch_when_noted_without_a_sequence_then_its_producer_starts_at_0(
    producers: Producers,
) -> None:
    producers.note(batch(-1, 3, offset=5), 5, NOW_MS)
    assert states(producers) == [(PRODUCER, 0, -1, 7, 2, NOW_MS + 5, -1, -1)]
    assert producers.check([batch(0)]) is None


def test_snapshot_when_loaded_then_the_last_batch_of_each_is_known(
    producers: Producers, tmp_path: Path
) -> None:
    for n in range(3):
        producers.note(batch(10 * n, 10), 10 * n, NOW_MS)
    open_ones = [
        encoded(batch(n, offset=n, producer_id=n, attributes=TRANSACTIONAL)) for n in (40, 30)
    ]
    note_all(producers, *open_ones[::-1])
    producers.write_snapshot(tmp_path / "snapshot")

    loaded = Producers(PARTITION)
    loaded.load(list(read_snapshot(tmp_path / "snapshot"))[::-1], NOW_MS)

    assert states(loaded) == states(producers)
    assert loaded.first_open_offset == 30
    assert loaded.check([batch(20, 10)]) == (20, 30, NOW_MS)
    assert loaded.check([batch(30)]) is None
    with pytest.raises(OutOfOrderSequenceError):
        loaded.check([batch(10, 10)])


def test_rebuild_when_kafka_wrote_the_log_then_has_the_producers_of_its_snapshots(
    kafka_logs: Path, tmp_path: Path
) -> None:
    seen = 0
    for snapshot in sorted(kafka_logs.glob("*/*.snapshot")):
        directory = tmp_path / snapshot.parent.name
        directory.mkdir(exist_ok=True)
        for path in snapshot.parent.glob("*.log"):
            (directory / path.name).write_bytes(path.read_bytes())
        end = int(snapshot.stem)
        parts = [one for one in parts_of(directory) if one.base_offset < end]

        found = rebuild(PARTITION, parts, end, NOW_MS)

        expected = list(read_snapshot(snapshot))
        assert states(found) == sorted(expected), snapshot
        again = snapshot_path(directory, end)
        if len(expected) < 2:
            found.write_snapshot(again)
        else:
            write_snapshot(again, expected)  # the order is that of a hash table of Java
        assert again.read_bytes() == snapshot.read_bytes()
        again.unlink()
        seen += len(expected)
    assert seen >= 14


def test_rebuild_when_kafka_wrote_transactions_then_its_index_of_aborted_ones_comes_out(
    kafka_logs: Path, tmp_path: Path
) -> None:
    source = kafka_logs / "v2-txn-0"
    for path in source.glob("*.log"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for end in (66, 54, 66):
        found = rebuild(PARTITION, parts_of(tmp_path), end, NOW_MS)
        (index,) = tmp_path.glob("*.txnindex")
        whole = (source / index.name).read_bytes()
        assert index.read_bytes() == (whole if end == 66 else whole[:34])
        assert found.first_open_offset == (None if end == 66 else 44)


def test_rebuild_when_a_snapshot_is_there_then_batches_before_it_are_not_read(
    tmp_path: Path,
) -> None:
    parts = write_segments(tmp_path, idempotent(range(10)), idempotent(range(10, 20)))
    write_snapshot(snapshot_path(tmp_path, 10), [ProducerState(7, 0, 3, 3, 0, 1, -1, -1)])
    parts[0].path.unlink()
    found = rebuild(PARTITION, parts, 20, NOW_MS)
    assert [one[:4] for one in states(found)] == [(7, 0, 3, 3), (PRODUCER, 0, 19, 19)]
    for n in range(15, 20):
        assert found.check([batch(n)]) == (n, n + 1, NOW_MS + n)


@pytest.mark.parametrize("batches", [None, 3, 3.5, 7])  # 3.5 and 7: the index lies
def test_rebuild_when_the_snapshot_is_inside_a_segment_then_goes_on_there(
    tmp_path: Path, batches: float | None
) -> None:
    content = idempotent(range(10))
    parts = write_segments(tmp_path, content)
    write_snapshot(snapshot_path(tmp_path, 5), [])
    if batches is not None:
        entry = struct.pack(">ii", 3, int(batches * len(content[0])))
        parts[0].path.with_suffix(".index").write_bytes(entry)
    found = rebuild(PARTITION, parts, 8, NOW_MS)
    assert found.check([batch(5)]) == (5, 6, NOW_MS + 5)
    assert [one[:4] for one in states(found)] == [(PRODUCER, 0, 7, 7)]
    with pytest.raises(OutOfOrderSequenceError):
        found.check([batch(4)])


def test_rebuild_when_a_snapshot_is_damaged_then_the_one_before_it_is_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    parts = write_segments(tmp_path, idempotent(range(10)))
    write_snapshot(snapshot_path(tmp_path, 4), [ProducerState(7, 0, 3, 3, 0, 1, -1, -1)])
    damaged = snapshot_path(tmp_path, 8)
    damaged.write_bytes(snapshot_path(tmp_path, 4).read_bytes()[:-1])
    found = rebuild(PARTITION, parts, 10, NOW_MS)
    assert [one[:4] for one in states(found)] == [(7, 0, 3, 3), (PRODUCER, 0, 9, 9)]
    assert not damaged.exists()
    assert f"{damaged}: position 2: expected CRC" in caplog.text


def test_rebuild_when_snapshots_are_outside_the_log_then_are_removed(tmp_path: Path) -> None:
    write_segments(tmp_path, idempotent(range(5)))
    parts = write_segments(tmp_path, idempotent(range(5, 10)))[1:]
    for offset in (0, 3, 5, 10, 11):
        write_snapshot(snapshot_path(tmp_path, offset), [ProducerState(*[offset] * 8)])
    found = rebuild(PARTITION, parts, 10, NOW_MS)
    assert sorted(int(one.stem) for one in tmp_path.glob("*.snapshot")) == [5, 10]
    assert [one.producer_id for one in states(found)] == [10]


def test_rebuild_when_a_batch_is_damaged_then_those_behind_it_are_noted(tmp_path: Path) -> None:
    content = idempotent(range(10))
    content[4] = content[4][:-1] + b"?"
    parts = write_segments(tmp_path, content)
    found = rebuild(PARTITION, parts, 10, NOW_MS)
    assert found.check([batch(5)]) == (5, 6, NOW_MS + 5)
    assert found.check([batch(10)]) is None


def test_rebuild_when_aborted_transactions_are_not_in_the_log_then_are_taken_out(
    tmp_path: Path,
) -> None:
    parts = write_segments(
        tmp_path, [encoded(batch(0, attributes=TRANSACTIONAL)), mark(ABORT, 1)], idempotent([5])
    )
    write_snapshot(snapshot_path(tmp_path, 5), [])
    indexes = [one.path.with_suffix(".txnindex") for one in parts]
    early, lost = AbortedTransaction(9, 0, 1, 2), AbortedTransaction(9, 5, 6, 7)
    append_aborted(indexes[0], early)
    append_aborted(indexes[1], lost)
    indexes[1].write_bytes(indexes[1].read_bytes() + b"torn")
    rebuild(PARTITION, parts, 6, NOW_MS)
    assert list(read_aborted(indexes[0])) == [early]  # it is before the snapshot
    assert list(read_aborted(indexes[1])) == []
    snapshot_path(tmp_path, 5).unlink()
    rebuild(PARTITION, parts, 6, NOW_MS)
    assert list(read_aborted(indexes[0])) == [(PRODUCER, 0, 1, 2)]


@given(
    rows=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), max_size=15),
    end=st.integers(0, 15),
)
def test_cut_when_it_is_done_then_is_as_if_the_batches_had_not_been(
    rows: list[tuple[int, int]], end: int
) -> None:
    producers, shorter = Producers(PARTITION), Producers(PARTITION)
    sequences = dict.fromkeys((1, 2, 3), 0)
    offset = 0
    batches = []
    for number, (producer_id, count) in enumerate(rows):
        one = batch(sequences[producer_id], count, producer_id=producer_id, offset=offset)
        batches.append(one)
        producers.note(one, offset, NOW_MS)
        if number < end:
            shorter.note(one, offset, NOW_MS)
        sequences[producer_id] += count
        offset += count
    end_offset = batches[end].base_offset if end < len(batches) else offset
    before = states(producers)

    if producers.cut(end_offset):
        assert states(producers) == states(shorter)
        for one in batches[end:]:
            assert producers.check([one]) is None
            producers.note(one, one.base_offset, NOW_MS)
        assert states(producers) == before
    else:
        assert states(producers) == before


def test_truncated_when_more_than_the_kept_batches_are_cut_then_the_log_is_read(
    tmp_path: Path,
) -> None:
    parts = write_segments(tmp_path, idempotent(range(10)))
    producers = rebuild(PARTITION, parts, 10, NOW_MS)
    for offset in (2, 4, 8, 10):
        producers.write_snapshot(snapshot_path(tmp_path, offset))
    index = parts[0].path.with_suffix(".txnindex")
    for offset in (6, 7):
        append_aborted(index, AbortedTransaction(9, 0, offset, 8))
    kept = truncated(producers, parts, 7, NOW_MS)
    assert [one.last_offset for one in read_aborted(index)] == [6]
    assert kept is producers
    assert [one[:4] for one in states(kept)] == [(PRODUCER, 0, 6, 6)]
    assert kept.check([batch(7)]) is None
    assert sorted(int(one.stem) for one in tmp_path.glob("*.snapshot")) == [2, 4]
    for offset in (2, 4):
        snapshot_path(tmp_path, offset).unlink()
    read = truncated(kept, parts, 3, NOW_MS)
    assert [one[:4] for one in states(read)] == [(PRODUCER, 0, 2, 2)]


@pytest.mark.parametrize("is_open", [True, False])
def test_truncated_when_there_are_transactions_then_the_log_is_read(
    tmp_path: Path, is_open: bool
) -> None:
    sent = [
        encoded(batch(n, offset=2 * n, attributes=TRANSACTIONAL)) + mark(ABORT, 2 * n + 1)
        for n in range(3)
    ]
    if is_open:
        sent.append(encoded(batch(3, offset=6, attributes=TRANSACTIONAL)))
    parts = write_segments(tmp_path, sent)
    producers = rebuild(PARTITION, parts, 7 if is_open else 6, NOW_MS)
    found = truncated(producers, parts, 5, NOW_MS)
    assert found.first_open_offset == 4
    assert [one.last_offset for one in read_aborted(parts[0].path.with_suffix(".txnindex"))] == [
        1,
        3,
    ]


def test_stale_snapshots_when_segments_are_merged_then_are_all_but_those_at_starts_and_the_newest(
    tmp_path: Path,
) -> None:
    assert stale_snapshots(tmp_path, [0]) == []
    for offset in (0, 5, 10, 15, 17):
        write_snapshot(snapshot_path(tmp_path, offset), [])
    found = stale_snapshots(tmp_path, [0, 10])
    assert sorted(int(one.stem) for one in found) == [5, 15]


def test_producers_when_all_of_a_new_one_is_cut_off_then_the_log_is_not_read_again() -> None:
    producers = Producers(TopicPartition("orders", -1, 0))
    first, other = (
        codec.NEW_BATCH._replace(producer_id=one, last_offset_delta=2) for one in (7, 8)
    )
    for base_offset, head in ((0, first), (3, other)):
        producers.note(head._replace(producer_epoch=0, base_sequence=0), base_offset, 0)

    assert producers.cut(3)
    assert [one.producer_id for one in producers.states()] == [7]
