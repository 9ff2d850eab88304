from __future__ import annotations

from broker.metrics import ManagedObject, counter, gauge, times, times_attributes
from broker.stats import WindowedStats
from tests.doubles import FakeClock

QUEUE: ManagedObject[list[str]] = ManagedObject(
    "Queue.{topic}-{index}",
    gauge("Size", len, "messages that wait", healthy="few"),
    counter(
        "Bytes",
        lambda it: sum(map(len, it)),
        "put into it",
        unit="bytes",
        series="queue_bytes_total",
    ),
    times("Flush", lambda _: [], "of the disk"),
)


def test_object_when_read_then_is_named_after_its_labels_and_has_the_values_of_its_source() -> None:
    name, attributes = QUEUE.read(["a", "bc"], "t", 3)
    assert name == "Queue.t-3"
    assert list(attributes)[:3] == ["Size", "Bytes", "FlushesPerSecond"]
    assert (attributes["Size"], attributes["Bytes"]) == (2, 3)


def test_object_when_documented_then_each_metric_has_a_row() -> None:
    assert QUEUE.title == "Queue.TOPIC-INDEX"
    assert list(QUEUE.rows()) == [
        "| `Size` | | gauge | few | messages that wait |",
        "| `Bytes` | `queue_bytes_total` | counter, bytes | | put into it |",
        "| `FlushesPerSecond`, `AvgFlushMs`, `MaxFlushMs`, `TotalFlushMs`, `NumFlushes` "
        "| | times, ms | short | of the disk |",
    ]


def test_times_when_several_threads_count_then_added_up() -> None:
    clock = FakeClock()
    shards = [WindowedStats(clock, 600.0) for _ in range(2)]
    clock.advance(10)
    shards[0].record(0.010, 2)
    shards[1].record(0.040, 2)
    rounded = {name: round(one, 6) for name, one in times_attributes("Order", shards).items()}
    assert rounded == {
        "OrdersPerSecond": 0.4,
        "AvgOrderMs": 12.5,
        "MaxOrderMs": 20,
        "TotalOrderMs": 50,
        "NumOrders": 4,
    }


def test_times_when_nothing_happened_then_all_0() -> None:
    assert set(times_attributes("Order", [WindowedStats(FakeClock(), 600.0)]).values()) == {0}
