"""Terms of acknowledged sets: what a producer learns of a log after its broker has come back."""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path

import pytest

from broker.leader_epochs import is_of_replicas
from broker.protocol.client_requests import (
    Acks,
    ListOffsetsRequest,
    OffsetKind,
    OffsetQuery,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
)
from broker.protocol.responses import LISTED_OFFSETS, NO_TERM, Published, decode_publish_response
from broker.topic import TopicPartition
from tests.integration.process.broker_process import BrokerProcess
from tests.integration.process.conftest import ProcessFactory

PARTITION = TopicPartition("events", 0, 0)
ONE = encode([b"one"])
NEVER_FLUSHED = ("-X", "log.default.flush.interval.ms=3600000", "-X", "log.flush.interval=1000000")


def stop(broker: BrokerProcess) -> None:
    broker.signal(signal.SIGTERM)
    assert broker.wait() == 0


def publish(broker: BrokerProcess, acks: Acks = Acks.AUTO) -> Published:
    with closing(broker.connect()) as connection:
        connection.call(CreateTopicRequest(PARTITION.topic))
        request = PublishRequest(acks, 60_000, (PartitionSet(PARTITION, ONE),))
        (published,) = decode_publish_response(connection.call(request))
        assert published.error == 0
        return published


def end_of(broker: BrokerProcess, term: int) -> int:
    with closing(broker.connect()) as connection:
        query = OffsetQuery(PARTITION, OffsetKind.TERM_END, term)
        (found,) = LISTED_OFFSETS.decode(connection.call(ListOffsetsRequest((query,))))
        assert found.error == 0
        return found.offset


def test_term_when_the_broker_is_stopped_and_started_then_is_the_same(
    start_process: ProcessFactory,
) -> None:
    broker = start_process()
    term = publish(broker).term
    assert not is_of_replicas(term)
    stop(broker)
    broker = start_process()
    assert end_of(broker, term) == len(ONE)
    again = publish(broker)
    assert (again.base_offset, again.term) == (len(ONE), term)
    assert end_of(broker, term) == 2 * len(ONE)


def test_term_when_the_broker_is_killed_then_ends_where_the_next_one_begins(
    start_process: ProcessFactory,
) -> None:
    broker = start_process()
    term = publish(broker).term
    broker.kill()
    broker = start_process()
    assert publish(broker).term != term
    assert end_of(broker, term) == len(ONE)
    broker.kill()
    broker = start_process()
    assert end_of(broker, term) <= 0  # of two incarnations before this one nothing is known


def test_term_when_a_crash_took_its_end_then_ends_before_that(
    start_process: ProcessFactory, tmp_path: Path
) -> None:
    broker = start_process(*NEVER_FLUSHED)
    first, second = publish(broker), publish(broker)
    assert first.term == second.term
    broker.kill()
    (segment,) = (tmp_path / "data" / "events_0").glob("*.pylog")
    segment.write_bytes(segment.read_bytes()[: len(ONE) + 5])  # as after a power failure
    broker = start_process()
    assert publish(broker).base_offset == len(ONE)  # the log is as long as it was
    assert end_of(broker, first.term) == len(ONE)


def test_term_when_a_segment_got_shorter_between_runs_then_is_another(
    start_process: ProcessFactory, tmp_path: Path
) -> None:
    broker = start_process()
    term = publish(broker).term
    publish(broker)
    stop(broker)
    (segment,) = (tmp_path / "data" / "events_0").glob("*.pylog")
    segment.write_bytes(ONE)
    broker = start_process()
    assert publish(broker).term != term
    assert end_of(broker, term) == len(ONE)


def test_term_when_the_topic_is_made_again_then_is_another(start_process: ProcessFactory) -> None:
    broker = start_process()
    term = publish(broker).term
    with closing(broker.connect()) as connection:
        connection.call(DeleteTopicRequest(PARTITION.topic))
    assert publish(broker).term != term
    assert end_of(broker, term) == -1


@pytest.mark.parametrize("acks", [Acks.WRITTEN, Acks.COMMITTED])
def test_term_when_a_set_is_refused_then_there_is_none(
    start_process: ProcessFactory, acks: Acks
) -> None:
    broker = start_process()
    with closing(broker.connect()) as connection:
        connection.call(CreateTopicRequest("events"))
        request = PublishRequest(acks, 1000, (PartitionSet(TopicPartition("events", 0, 7), ONE),))
        (published,) = decode_publish_response(connection.call(request))
    assert (published.error, published.term) == (3, NO_TERM)
