"""Lines of the state-change logs, and the order of those of several brokers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.state_changes import ChangeKind, LoggedChange, decode_changes, merged
from broker.topic import TopicPartition

P, Q = TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)
IDS = st.integers(0, 1 << 31)
CHANGES = st.builds(
    LoggedChange,
    st.sampled_from([*ChangeKind, "unheard-of"]).map(str),
    IDS,
    IDS,
    st.none() | IDS,
    st.none() | st.builds(TopicPartition, st.text(), IDS, IDS),
    st.none() | IDS,
    st.none() | st.integers(-1, 9),
    st.none() | st.lists(IDS).map(tuple),
    st.none() | IDS,
    st.none() | IDS,
    st.text(),
)


def change(
    kind: ChangeKind,
    time_ms: int,
    broker: int = 0,
    *,
    controller: int | None = 1,
    epoch: int | None = None,
    version: int | None = None,
    partition: TopicPartition | None = P,
) -> LoggedChange:
    return LoggedChange(
        kind, time_ms, broker, controller, partition, leader_epoch=epoch, version=version
    )


@given(CHANGES)
def test_change_when_written_and_read_then_is_the_same(one: LoggedChange) -> None:
    line = one.encode()

    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert decode_changes([line]) == ([one], 0)


@pytest.mark.parametrize(
    "line", [b"", b"{", b"7", b"[]", b'{"kind":"leads"}', b'{"kind":"leads","ms":"x","broker":0}']
)
def test_lines_when_one_is_damaged_then_it_is_counted_and_left_out(line: bytes) -> None:
    good = change(ChangeKind.LEADS, 1)

    assert decode_changes([good.encode(), line]) == ([good], 1)


def test_merged_when_clocks_differ_then_epochs_and_versions_count() -> None:
    decided = change(ChangeKind.DECIDED, 5_000, 0, epoch=1, version=3)
    leads = change(ChangeKind.LEADS, 1_000, 1, epoch=1, version=3)
    joined = change(ChangeKind.DECIDED, 5_001, 0, epoch=1, version=4)
    grown = change(ChangeKind.ISR, 1_001, 1, epoch=1, version=4)
    later = change(ChangeKind.DECIDED, 5_002, 0, epoch=2, version=5)
    cut = change(ChangeKind.TRUNCATED, 900, 2, epoch=2, version=5)

    expected = [decided, leads, joined, grown, later, cut]
    assert merged([leads, grown, cut, decided, joined, later]) == expected


def test_merged_when_there_is_another_controller_then_its_changes_come_later() -> None:
    first = change(ChangeKind.DECIDED, 9_000, 0, controller=1, epoch=7, version=9)
    elected = change(ChangeKind.ELECTED, 2_000, 1, controller=2, partition=None)
    second = change(ChangeKind.DECIDED, 2_001, 1, controller=2, epoch=1, version=1, partition=Q)
    told = change(ChangeKind.FOLLOWS, 1_000, 2, controller=2, epoch=1, version=1, partition=P)

    assert merged([told, second, elected, first])[:2] == [first, elected]


def test_merged_when_partitions_are_others_then_time_counts() -> None:
    changes = [
        change(ChangeKind.DECIDED, ms, epoch=epoch, version=epoch, partition=partition)
        for ms, epoch, partition in ((1, 8, P), (2, 0, Q), (3, 9, P), (4, 1, Q))
    ]

    assert merged(reversed(changes)) == changes


def test_merged_when_no_controller_is_known_then_as_what_the_broker_wrote_before() -> None:
    before = change(ChangeKind.FOLLOWS, 10, 1, controller=4, epoch=1, version=1)
    failed = change(ChangeKind.DIRECTORY_FAILED, 11, 1, controller=None, partition=None)
    earlier = change(ChangeKind.DECIDED, 12, 0, controller=3, epoch=0, version=0)

    assert merged([before, failed, earlier]) == [earlier, before, failed]
