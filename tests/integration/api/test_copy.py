"""Copies of topics by the Python API."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import pylogctl
from pylogctl.testing import Broker


def values(client: pylogctl.Client, topic: str) -> list[str]:
    return sorted(one.text() for one in client.read(topic))


def test_copy_when_to_another_cluster_then_partitions_and_compressed_sets_are_the_same(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    with pylog.producer(codec="gzip") as producer:
        producer.send_many(pylog_topic, [f"m{n}" for n in range(100)])
    with Broker() as broker, broker.connect() as other:
        plan = pylog.copy(pylog_topic, "copied", to=other, plan=True)
        assert [one.message_count for one in plan.partitions] == [0]
        assert other.topics() == []

        report = pylog.copy(pylog_topic, "copied", to=other)
        assert (report.message_count, report.corrupt_count) == (100, 0)
        (one,) = report.partitions
        assert (one.source, one.start, one.next_offset) == (
            plan.partitions[0].source,
            0,
            one.end,
        )
        # not written again, so as large as in the source
        assert report.size_bytes == one.next_offset
        assert values(other, "copied") == values(pylog, pylog_topic)


def test_copy_when_told_where_then_copies_that_and_goes_on_there(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send_many(pylog_topic, list("abcdef"), partition=0)
    target = f"{pylog_topic}-to"

    first = pylog.copy(pylog_topic, target, start="+1", limit=2)
    assert values(pylog, target) == ["b", "c"]
    rest = {one.source: one.next_offset for one in first.partitions}
    pylog.copy(pylog_topic, target, start=rest, stop="-1", keep_partitions=True)
    assert values(pylog, target) == list("bcde")


def test_copy_when_a_message_is_corrupt_then_raises_after_those_before_it_or_skips_it(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    with Broker() as broker, broker.connect() as client:
        receipts = client.send_many("t", ["good", "bad", "fine"], partition=0)
        (segment,) = broker.data_dir.glob("t_*/*.pylog")
        data = bytearray(segment.read_bytes())
        data[receipts[1].next_offset - 1] ^= 1
        segment.write_bytes(data)

        with pytest.raises(pylogctl.CorruptMessage, match=re.escape("t[0-0]")) as caught:
            client.copy("t", pylog_topic, to=pylog)
        assert caught.value.details == {
            "offset": receipts[1].offset,
            "next_offset": receipts[2].offset,
            "confirmed": 1,
            "next_offsets": {"0-0": receipts[1].offset},
        }
        assert values(pylog, pylog_topic) == ["good"]
        report = client.copy(
            "t", pylog_topic, to=pylog, start=receipts[1].offset, skip_corrupt=True
        )
        assert (report.message_count, report.corrupt_count) == (1, 1)
        assert values(pylog, pylog_topic) == ["fine", "good"]


def test_copy_when_the_target_is_away_then_raises_unreachable(
    pylog: pylogctl.Client, pylog_topic: str
) -> None:
    pylog.send(pylog_topic, "x")
    with Broker() as broker:
        other = broker.connect(timeout=2)
        other.send("t", "made")
        broker.stop()  # the port stays its own: another program could answer there
        with other, pytest.raises(pylogctl.Unreachable):
            pylog.copy(pylog_topic, "t", to=other, timeout=2)


BAD: list[tuple[Callable[[pylogctl.Client], object], type[Exception], str]] = [
    (lambda c: c.copy("t", "t"), ValueError, "cannot copy topic 't' to itself"),
    (lambda c: c.copy("absent", "u"), pylogctl.UnknownTopic, "'absent' not found"),
    (lambda c: c.copy("t", "a/b"), pylogctl.InvalidName, "'/' is not allowed"),
    (lambda c: c.copy(5, "u"), TypeError, "the topic as str, not int"),  # type: ignore[arg-type]
    (lambda c: c.copy("t", 5), TypeError, "the topic as str, not int"),  # type: ignore[arg-type]
    (lambda c: c.copy("t", "u", to="h:9092"), TypeError, "`to` as a client, not str"),  # type: ignore[arg-type]
    (lambda c: c.copy("t", "u", limit=1.5), TypeError, "limit as an int"),  # type: ignore[arg-type]
    (lambda c: c.copy("t", "u", stop=None), ValueError, "a copy ends"),
    (lambda c: c.copy("t", "u", start=3), pylogctl.NotABoundary, "nearest are 0 and 11"),
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD, ids=[text for _, _, text in BAD])
def test_copy_when_given_bad_input_then_says_what_is_wrong(
    call: Callable[[pylogctl.Client], object], kind: type[Exception], text: str
) -> None:
    with Broker() as broker, broker.connect() as client:
        client.send("t", "x")
        with pytest.raises(kind, match=re.escape(text)):
            call(client)


def test_copy_when_a_topic_is_of_the_format_kafka_then_is_refused_and_none_is_made() -> None:
    with Broker() as broker, broker.connect() as client:
        client.create_topic("batches", format="kafka")
        client.send("t", "x")
        for source, target in (("batches", "new"), ("t", "batches")):
            with pytest.raises(pylogctl.NotSupported, match="'batches' is of the format kafka"):
                client.copy(source, target)
        assert [one.name for one in client.topics()] == ["batches", "t"]


def test_copy_when_a_client_is_closed_then_raises_closed(pylog: pylogctl.Client) -> None:
    with Broker() as broker:
        other = broker.connect()
        other.close()
        for one, to in ((pylog, other), (other, pylog)):
            with pytest.raises(pylogctl.Closed):
                one.copy("t", "u", to=to)
