"""Which messages a sample has, whatever the log looks like; entries are real, the broker is not."""

from __future__ import annotations

from bisect import bisect_right
from random import Random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.admin.sampling import Sampler
from broker.consumer.boundaries import BoundaryFinder
from broker.errors import InvalidMessageError
from broker.protocol.compression import Codec
from broker.protocol.message_set import Entry, Message, build_set, iter_entries, messages_of
from broker.topic import MessagePosition, ReadRange, TopicPartition
from pylogctl.cli.environment import ExitStatus
from pylogctl.cli.report import failure_of

PARTITION = TopicPartition("t", 0, 0)
BASE = 1000
NEVER_WHOLE = -1


class LogInMemory:
    """The positions of a log that is one message set, from offset `BASE` on."""

    def __init__(self, message_set: bytes) -> None:
        self.entries = list(iter_entries(message_set, BASE))
        self.end = BASE + len(message_set)

    def message_counts(
        self, partition: TopicPartition, start: int, end: int
    ) -> list[tuple[int, int]]:
        return [
            (one.offset, sum(1 for _ in messages_of(one)))
            for one in self.entries
            if start <= one.offset < end
        ]

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        starts = [one.offset for one in self.entries]
        return starts[bisect_right(starts, position) - 1]

    def entry_at(self, partition: TopicPartition, offset: int) -> Entry:
        return next(one for one in self.entries if one.offset == offset)

    def points(self) -> list[MessagePosition]:
        """Every message there is."""
        return [
            MessagePosition(one.offset, m.inner) for one in self.entries for m in messages_of(one)
        ]

    def sample(
        self,
        start: MessagePosition,
        end: MessagePosition,
        count: int,
        chance: Random | None,
        whole_bytes: int,
    ) -> list[Message]:
        positions = cast(BoundaryFinder, self)
        sampler = Sampler(positions, PARTITION, chance, whole_bytes=whole_bytes)
        return sampler.sample(ReadRange(start, end), count)


def points_of(found: list[Message]) -> list[MessagePosition]:
    return [MessagePosition(one.offset, one.inner) for one in found]


sets = st.tuples(
    st.lists(st.binary(max_size=60), min_size=1, max_size=6),
    st.sampled_from([Codec.NONE, Codec.GZIP]),
).map(lambda both: build_set(*both))
logs = st.lists(sets, max_size=6).map(lambda parts: LogInMemory(b"".join(parts)))
chances = st.none() | st.integers().map(Random)


@given(
    log=logs, data=st.data(), chance=chances, whole_bytes=st.sampled_from([NEVER_WHOLE, 1 << 20])
)
def test_sample_of_any_range_has_different_messages_of_it_in_order(
    log: LogInMemory, data: st.DataObject, chance: Random | None, whole_bytes: int
) -> None:
    everything = [*log.points(), MessagePosition(log.end)]
    start, end = sorted(data.draw(st.tuples(*[st.sampled_from(everything)] * 2)))
    count = data.draw(st.integers(1, 12))
    found = points_of(log.sample(start, end, count, chance, whole_bytes))
    there = [one for one in log.points() if start <= one < end]
    assert found == sorted(set(found))
    assert set(found) <= set(there)
    if whole_bytes == NEVER_WHOLE:
        assert len(found) <= count
        assert bool(found) == (start.offset < end.offset)
    else:
        assert len(found) == min(count, len(there))


def test_sample_evenly_spaced_takes_the_first_message_and_equal_steps() -> None:
    log = LogInMemory(build_set([b"%d" % n for n in range(10)]))
    found = log.sample(MessagePosition(BASE), MessagePosition(log.end), 5, None, 1 << 20)
    assert [one.payload for one in found] == [b"0", b"2", b"4", b"6", b"8"]


def test_sample_of_a_large_range_spreads_over_the_messages_of_a_compressed_set() -> None:
    log = LogInMemory(build_set([b"%d" % n for n in range(10)], Codec.GZIP))
    found = log.sample(MessagePosition(BASE), MessagePosition(log.end), 5, None, NEVER_WHOLE)
    assert [one.payload for one in found] == [b"0", b"2", b"4", b"6", b"8"]


def test_sample_by_chance_depends_on_chance() -> None:
    log = LogInMemory(build_set([b"%d" % n for n in range(1000)]))
    samples = [
        points_of(
            log.sample(MessagePosition(BASE), MessagePosition(log.end), 5, Random(seed), 1 << 20)
        )
        for seed in (1, 1, 2)
    ]
    assert samples[0] == samples[1] != samples[2]


def test_sample_when_a_chosen_message_is_damaged_names_it() -> None:
    damaged = bytearray(build_set([b"good", b"bad"]))
    damaged[-1] ^= 1
    log = LogInMemory(bytes(damaged))
    named = r"t\[0-0\]: the message at 1014 is invalid"
    with pytest.raises(InvalidMessageError, match=named) as raised:
        log.sample(MessagePosition(BASE), MessagePosition(log.end), 2, None, NEVER_WHOLE)
    failure = failure_of(raised.value)
    assert failure is not None
    assert (failure.status, failure.details["partition"]) == (ExitStatus.CORRUPT, "0-0")
