from __future__ import annotations

from pathlib import Path

from broker.config import BrokerConfig
from broker.protocol.requests import RequestType
from broker.server.broker import Broker
from broker.server.requests.metrics import (
    ALL_TOPICS,
    REQUESTS,
    ProcessorMetrics,
    request_readings,
    topic_readings,
    total_of,
)
from broker.server.requests.purgatory import RequestGroup
from tests.doubles import FakeClock


def test_requests_when_there_are_several_processors_then_added_up() -> None:
    clock = FakeClock()
    shards = [ProcessorMetrics(clock, 600.0) for _ in range(2)]
    shards[0].times[RequestGroup.PRODUCE].local.record(0.010, 2)
    shards[1].times[RequestGroup.PRODUCE].local.record(0.040, 2)
    shards[0].times[RequestGroup.FETCH].local.record(0.002)
    shards[0].bytes_read, shards[1].bytes_read = 5, 6
    shards[1].bytes_written = 7
    shards[0].bad_frames, shards[1].bad_frames = 1, 2
    _, attributes = REQUESTS.read(shards)
    assert attributes["NumProduceRequests"] == 4
    assert attributes["NumFetchRequests"] == 1
    assert attributes["TotalBytesRead"] == 11
    assert attributes["TotalBytesWritten"] == 7
    assert attributes["BadFrames"] == 3


def test_topics_when_there_are_several_processors_then_by_topic_and_in_all() -> None:
    clock = FakeClock()
    shards = [ProcessorMetrics(clock, 600.0) for _ in range(2)]
    shards[0].topics["events"].messages_in = 1
    shards[1].topics["events"].messages_in = 2
    shards[1].topics["audit"].bytes_out = 10
    shards[1].topics["audit"].failed_fetch = 1
    shards[1].topics["audit"].messages_filtered_out = 4
    objects = dict(one.attributes() for one in topic_readings(shards))
    assert objects["BrokerTopicStat.events"]["MessagesIn"] == 3
    assert objects["BrokerTopicStat.audit"]["BytesOut"] == 10
    assert ALL_TOPICS.read(total_of(shards))[1] == {
        "MessagesIn": 3,
        "BytesIn": 0,
        "BytesOut": 10,
        "FailedProduceRequest": 0,
        "FailedFetchRequest": 1,
        "MessagesFilteredOut": 4,
    }


def test_status_when_broker_is_not_started_then_tells_so(tmp_path: Path) -> None:
    broker = Broker(BrokerConfig(data_dirs=(tmp_path / "data",)))
    assert broker.status()["phase"] == "starting"
    broker.stop()
    assert broker.status()["phase"] == "stopped"


def test_requests_when_counted_by_type_then_added_up_by_their_names() -> None:
    shards = [ProcessorMetrics(FakeClock(), 600.0) for _ in range(2)]
    for shard in shards:
        shard.requests[RequestType.PUBLISH] += 2
    assert [one.attributes() for one in request_readings(shards)] == [
        ("RequestMetrics.publish", {"Requests": 4}),
    ]
