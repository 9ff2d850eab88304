from __future__ import annotations

from pathlib import Path

from broker.config import BrokerConfig
from broker.server.broker import Broker
from broker.server.metrics import (
    ProcessorMetrics,
    socket_server_attributes,
    stats_attributes,
    topic_attributes,
)
from broker.stats import WindowedStats
from tests.doubles import FakeClock


def test_socket_server_attributes_when_there_are_several_processors_then_added_up() -> None:
    clock = FakeClock()
    shards = [ProcessorMetrics(clock, 600.0) for _ in range(2)]
    clock.advance(10)
    shards[0].produce.record(0.010, 2)
    shards[1].produce.record(0.040, 2)
    shards[0].fetch.record(0.002)
    shards[0].bytes_read, shards[1].bytes_read = 5, 6
    shards[1].bytes_written = 7
    shards[0].bad_frames, shards[1].bad_frames = 1, 2
    attributes = socket_server_attributes(shards)
    assert attributes["NumProduceRequests"] == 4
    assert attributes["ProduceRequestsPerSecond"] == 0.4
    assert round(attributes["AvgProduceRequestMs"], 6) == 12.5
    assert round(attributes["MaxProduceRequestMs"], 6) == 20
    assert round(attributes["TotalProduceRequestMs"], 6) == 50
    assert attributes["NumFetchRequests"] == 1
    assert attributes["TotalBytesRead"] == 11
    assert attributes["TotalBytesWritten"] == 7
    assert attributes["BadFrames"] == 3


def test_socket_server_attributes_when_nothing_happened_then_all_0() -> None:
    clock = FakeClock()
    attributes = socket_server_attributes([ProcessorMetrics(clock, 600.0)])
    assert set(attributes.values()) == {0}


def test_topic_attributes_when_there_are_several_processors_then_by_topic_and_in_all() -> None:
    clock = FakeClock()
    shards = [ProcessorMetrics(clock, 600.0) for _ in range(2)]
    shards[0].topics["events"].messages_in = 1
    shards[1].topics["events"].messages_in = 2
    shards[1].topics["audit"].bytes_out = 10
    shards[1].topics["audit"].failed_fetch = 1
    shards[1].topics["audit"].messages_filtered_out = 4
    attributes = topic_attributes(shards)
    assert attributes["BrokerTopicStat.events"]["MessagesIn"] == 3
    assert attributes["BrokerTopicStat.audit"]["BytesOut"] == 10
    assert attributes["BrokerAllTopicStat"] == {
        "MessagesIn": 3,
        "BytesIn": 0,
        "BytesOut": 10,
        "FailedProduceRequest": 0,
        "FailedFetchRequest": 1,
        "MessagesFilteredOut": 4,
    }


def test_stats_attributes_when_events_were_recorded_then_under_the_names_of_0_7() -> None:
    clock = FakeClock()
    stats = WindowedStats(clock, 60.0)
    stats.record(0.5)
    stats.record(1.5)
    clock.advance(4)
    assert stats_attributes(stats, "Flush", "Flushes") == {
        "FlushesPerSecond": 0.5,
        "AvgFlushMs": 1000,
        "MaxFlushMs": 1500,
        "TotalFlushMs": 2000,
        "NumFlushes": 2,
    }


def test_status_when_broker_is_not_started_then_tells_so(tmp_path: Path) -> None:
    broker = Broker(BrokerConfig(data_dirs=(tmp_path / "data",)))
    assert broker.status()["phase"] == "starting"
    broker.stop()
    assert broker.status()["phase"] == "stopped"
