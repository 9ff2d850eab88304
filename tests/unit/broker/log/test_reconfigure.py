"""Logs and their manager while their settings change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker.config import BrokerConfig
from broker.log.log import Log
from broker.topic_settings import TopicConfig, parse_overrides
from tests.doubles import FakeClock
from tests.support.log_doubles import RecordingSchedule
from tests.support.log_fixtures import LogFactory, ManagerFactory
from tests.support.log_formats import FormatExample


def changed(log: Log, **settings: object) -> TopicConfig:
    return replace(log._config, **settings)  # type: ignore[arg-type]  # settings by name


def test_log_when_the_flush_interval_becomes_shorter_then_what_waits_is_flushed_by_it(
    make_log: LogFactory, log_format: FormatExample, schedule: RecordingSchedule, clock: FakeClock
) -> None:
    log = make_log(flush_interval_ms=3_600_000)
    log.append(log_format.one, 1)

    log.reconfigure(changed(log, flush_interval_ms=50))

    assert schedule.due_s[-1] == clock.monotonic_s() + 0.05


def test_log_when_fewer_messages_are_to_be_flushed_then_that_many_are_due_at_once(
    make_log: LogFactory, log_format: FormatExample, schedule: RecordingSchedule, clock: FakeClock
) -> None:
    log = make_log()
    for _ in range(3):
        log.append(log_format.one, 1)

    log.reconfigure(changed(log, flush_interval_messages=3))

    assert schedule.due_s[-1] == clock.monotonic_s()


def test_log_when_nothing_waits_or_changes_then_no_flush_is_scheduled(
    make_log: LogFactory, log_format: FormatExample, schedule: RecordingSchedule
) -> None:
    log = make_log()
    log.append(log_format.one, 1)
    scheduled = len(schedule.due_s)
    log.reconfigure(changed(log))
    log.flush()
    log.reconfigure(changed(log, flush_interval_ms=1))

    assert len(schedule.due_s) == scheduled


def test_log_when_consumers_see_what_is_written_or_no_more_then_the_high_watermark_never_falls(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = make_log()
    seen = []
    log.add_listener(lambda: seen.append(log.high_watermark))
    log.append(log_format.one, 1)
    assert log.high_watermark == 0

    log.reconfigure(changed(log, flush_before_read=False))
    step = log_format.step
    assert log.high_watermark == seen[-1] == step
    log.append(log_format.one, 1)
    assert (log.high_watermark, log.flushed_offset) == (2 * step, 0)

    log.reconfigure(changed(log, flush_before_read=True))
    log.append(log_format.one, 1)
    assert log.high_watermark == 2 * step
    log.flush()
    assert log.high_watermark == 3 * step


@pytest.mark.parametrize(
    ("explicit", "settings", "override", "count"),
    [
        (None, {}, 3, 3),
        (None, {"num_partitions": 4}, 3, 3),
        (None, {"topic_partition_counts": {"t": 4}}, 3, 3),
        (5, {}, 3, 5),
        (2, {}, 3, 3),
    ],
)
def test_topic_when_its_partition_count_is_set_then_goes_over_the_broker_but_loses_none(
    make_manager: ManagerFactory,
    explicit: int | None,
    settings: dict[str, object],
    override: int,
    count: int,
) -> None:
    manager = make_manager(**settings)
    manager.open()
    if explicit is not None:
        manager.creation.create_topic("t", explicit)
    before = manager.topics.partition_count("t")

    found = manager.reconfigure(
        BrokerConfig(data_dirs=manager.settings.broker.data_dirs, **settings),  # type: ignore[arg-type]
        {"t": parse_overrides({"partition.count": str(override)})},
    )

    assert manager.topics.partition_count("t") == count
    assert found == (["t"] if explicit is not None and before != count else [])


def test_topic_when_its_partition_count_is_lowered_then_those_with_a_log_stay(
    make_manager: ManagerFactory,
) -> None:
    manager = make_manager(num_partitions=4)
    manager.open()
    manager.creation.get_or_create("t", 2)
    config = BrokerConfig(data_dirs=manager.settings.broker.data_dirs, num_partitions=4)

    assert manager.reconfigure(config, {"t": {"partition_count": 1}}) == ["t"]
    assert manager.topics.partition_count("t") == 3
