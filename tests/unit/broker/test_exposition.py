from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from broker.exposition import Scrapes, exposition_text, label_text, lines
from broker.metrics import ManagedObject, Reading, counter, gauge, times
from broker.stats import WindowedStats
from tests.doubles import FakeClock

QUEUE: ManagedObject[list[str]] = ManagedObject(
    "Queue.{topic}",
    gauge("Size", len, "messages that wait", series="queue_size"),
    gauge("AgeMs", lambda it: None if not it else 1500, "of the oldest", unit="ms",
        series="queue_age_seconds"),
    counter("Bytes", lambda it: sum(map(len, it)), "put into it", series="queue_bytes_total"),
    gauge("Name", lambda _: "q", "not for Prometheus"),
)  # fmt: skip


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("pylogctl_")
    }


def of_topic(name: str, topic: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return f"pylogctl_queue_{name}", frozenset({("topic", topic)})


def test_text_when_objects_have_labels_then_has_a_sample_of_each_in_base_units() -> None:
    text = exposition_text([Reading(QUEUE, ["a", "bc"], ("t",)), Reading(QUEUE, [], ("u",))])
    assert samples(text) == {
        of_topic("size", "t"): 2,
        of_topic("age_seconds", "t"): 1.5,
        of_topic("bytes_total", "t"): 3,
        of_topic("size", "u"): 0,
        of_topic("bytes_total", "u"): 0,
    }
    assert "# HELP pylogctl_queue_bytes_total Bytes: put into it" in text.splitlines()
    assert "python_info" in text


def test_text_when_a_metric_cannot_be_read_then_is_left_out_and_counted() -> None:
    scrapes = Scrapes()
    broken: ManagedObject[list[str]] = ManagedObject(
        "Broken", gauge("First", lambda it: it[0], "of an empty list", series="broken")
    )
    text = exposition_text([Reading(broken, []), Reading(QUEUE, ["a"], ("t",))], scrapes)
    found = samples(text)
    assert found[of_topic("size", "t")] == 1
    assert found["pylogctl_scrape_errors_total", frozenset()] == 1
    assert "pylogctl_broken" not in {name for name, _ in found}


def test_text_when_threads_have_counted_times_then_has_one_cumulative_histogram() -> None:
    clock = FakeClock()
    shards = [WindowedStats(clock, 60.0, bounds_s=(0.1, 1.0)) for _ in range(2)]
    shards[0].record(0.1)
    shards[1].record(0.5, count=2)
    shards[1].record(3.0)
    flushes: ManagedObject[list[WindowedStats]] = ManagedObject(
        "Disk", times("Flush", lambda it: it, "of logs", series='flush_seconds{disk="a"}')
    )
    found = {
        (name, dict(labels).get("le")): value
        for (name, labels), value in samples(exposition_text([Reading(flushes, shards)])).items()
    }
    assert found == {
        ("pylogctl_flush_seconds_bucket", "0.1"): 1,
        ("pylogctl_flush_seconds_bucket", "1.0"): 3,
        ("pylogctl_flush_seconds_bucket", "+Inf"): 4,
        ("pylogctl_flush_seconds_count", None): 4,
        ("pylogctl_flush_seconds_sum", None): 3.6,
    }


def test_lines_when_labels_have_any_text_then_say_the_same_as_the_families_of_the_library() -> None:
    topics = ['a"b\\c\n', "\u00e9 {}", "t"]
    sources = [["x"] * number for number in range(3)]
    readings = [
        Reading(QUEUE, source, (topic,)) for topic, source in zip(topics, sources, strict=True)
    ]
    own = lines(
        QUEUE.metrics,
        [(label_text(topic=topic), source) for topic, source in zip(topics, sources, strict=True)],
    )
    assert samples("".join(own)) == samples(exposition_text(readings))
