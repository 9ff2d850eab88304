"""When messages are lost, as batches, streams and loads ask; these are tested with brokers."""

from __future__ import annotations

import pytest

from broker.client.list_offsets import Watermarks
from broker.errors import DataLossError, OffsetNotAvailableError
from broker.spark.options import ReadOptions, Where
from broker.spark.reading import loss
from broker.spark.reading.ranges import ByteRange, Reached
from broker.spark.reading.report import Cause, Omission
from broker.topic import TopicPartition

P = TopicPartition("web", 0, 0)
LOG = Watermarks(10, 50, None)
IDS = {("web", 0): "a"}


@pytest.mark.parametrize(
    ("wanted", "kept", "lost"),
    [
        ((10, 50), (10, 50), []),
        ((0, 50), (10, 50), [(0, 10)]),
        ((20, 70), (20, 50), [(50, 70)]),
        ((0, 70), (10, 50), [(0, 10), (50, 70)]),
        ((0, 5), (10, 10), [(0, 5)]),
        ((60, 70), (50, 50), [(60, 70)]),
    ],
)
def test_range_when_clipped_then_every_byte_is_kept_or_lost(
    wanted: tuple[int, int], kept: tuple[int, int], lost: list[tuple[int, int]]
) -> None:
    found = loss.clip(ByteRange(P, *wanted), LOG)

    assert found.range == ByteRange(P, *kept)
    assert [(one.start, one.end) for one in found.omissions] == lost


def test_offset_when_in_the_log_or_never_reached_then_nothing_is_lost() -> None:
    assert loss.since_reached(P, Reached({P: 50}, IDS), LOG, IDS) is None
    assert loss.since_reached(P, Reached({P: 5}, IDS), LOG, IDS) is None  # retention: see `clip`
    assert loss.since_reached(P, Reached({}, {}), LOG, IDS) is None


def test_offset_when_of_a_former_topic_then_is_lost_though_it_is_valid() -> None:
    lost = loss.since_reached(P, Reached({P: 20}, IDS), LOG, {("web", 0): "b"})

    assert lost is not None
    assert (lost.cause, lost.start, lost.end) == (Cause.LOST, 10, 10)
    assert "deleted and created again" in lost.text


def test_offset_when_past_the_end_of_the_same_topic_then_its_leader_is_behind() -> None:
    with pytest.raises(OffsetNotAvailableError, match="a high watermark of 50 in the same topic"):
        loss.since_reached(P, Reached({P: 60}, IDS), LOG, IDS)


def test_offset_when_past_the_end_of_a_topic_without_creation_id_then_is_lost() -> None:
    lost = loss.since_reached(P, Reached({P: 60}, {}), LOG, {})

    assert lost is not None
    assert "the log ends at 50 now" in lost.text


def test_loss_when_it_is_borne_or_only_an_incomplete_message_then_is_no_error() -> None:
    lost = Omission(Cause.LOST, P, 0, 10, "gone")
    incomplete = Omission(Cause.INCOMPLETE, P, 50, 55, "half")
    strict = ReadOptions(Where(zookeeper="z:1"))

    loss.refuse([incomplete], strict)
    loss.refuse([lost], ReadOptions(Where(zookeeper="z:1"), fail_on_data_loss=False))
    with pytest.raises(DataLossError, match=r"web\[0-0\]: gone; failOnDataLoss=false reads what"):
        loss.refuse([incomplete, lost], strict)
